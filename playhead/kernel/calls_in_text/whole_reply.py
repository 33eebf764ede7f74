"""A reply that is one call and nothing besides, with pairs of name and value without quotes: `get_weather{city:Oslo,days:3}`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from playhead.kernel.calls_in_text.found import Found, Written
from playhead.kernel.calls_in_text.pairs import call_of_pairs
from playhead.kernel.healing.json_reading import value_at
from playhead.kernel.healing.schema import properties

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.trace.types import ToolSpec

MAX_TEXT: Final = 5_000
"""Characters of such a reply."""
_NAME: Final = r"(?:default_api\s?[:.]\s?)?(?P<name>[A-Za-z_]\w{0,100})"
_FENCE: Final = re.compile(r"\s*```\w{0,12}\n(?P<inner>[^`]*)```\s*")
_BRACKETS: Final = re.compile(
    rf"\s*<?(?:(?:call|declaration|tool_call|function_call)\s?:\s?)?{_NAME}(?P<pairs>\{{[^\n]*\}}|\([^\n]*\))\s*/?>?\s*"
)
"""Gemini's own language, and code without quotes."""
_ADDRESS: Final = re.compile(
    rf"\s*(?:call\s+)?{_NAME}\?(?P<pairs>[A-Za-z_]\w{{0,60}}=[^\s?&]+(?:[?&][A-Za-z_]\w{{0,60}}=[^\s?&]+)*)\s*"
)
_BEHIND: Final = re.compile(rf"\s*(?:call|calling|invoke|use|run)\s+`?{_NAME}`?\s*[,:]\s*(?=\{{)", re.IGNORECASE)
_BARE: Final = re.compile(r"([A-Za-z_]\w{0,60})\s?=\s?([a-z_][a-z0-9_]*)\s?(?=[,)])")
"""A name, and a word without quotes in code."""
_WORDS: Final = frozenset(("true", "false", "null", "none"))
_SIGN: Final = re.compile(r"[?&]")


def whole_reply(text: str, specs: Mapping[str, ToolSpec], *, cut_off: bool) -> Iterator[Found]:
    """Yield the one call that a reply is; where it ends with a value without brackets, that has to show its end."""
    fenced = _FENCE.fullmatch(text)
    inner = fenced["inner"] if fenced else text
    if cut_off or len(inner) > MAX_TEXT:
        return
    call = _call(inner, specs)
    if call is not None:
        yield Found(0, len(text), (call,), explicit=True)


def _call(text: str, specs: Mapping[str, ToolSpec]) -> Written | None:
    if (found := _BRACKETS.fullmatch(text)) is not None:
        call = call_of_pairs(found["name"], found["pairs"], specs)
        return call if call is not None and _is_data(found["pairs"], call, specs) else None
    if (found := _ADDRESS.fullmatch(text)) is not None:
        return call_of_pairs(found["name"], _SIGN.sub(", ", found["pairs"]), specs, is_last=True)
    found = _BEHIND.match(text)
    value = None if found is None else value_at(text, found.end(), may_end=False)
    is_whole = value is not None and not text[value[1] :].strip() and isinstance(value[0], dict)
    return Written(found["name"], value[0]) if found is not None and value is not None and is_whole else None


def _is_data(written: str, call: Written, specs: Mapping[str, ToolSpec]) -> bool:
    """Return whether no word without quotes in code may be the name of a value that stands elsewhere: it has to be a choice."""
    known = properties(specs[call.name or ""].parameters)
    bare = _BARE.findall(written) if written.startswith("(") else ()
    return all(word in _WORDS or word in known.get(name, {}).get("enum", ()) for name, word in bare)
