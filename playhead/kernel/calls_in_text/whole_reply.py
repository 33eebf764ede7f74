"""A reply that is one call and nothing besides, with pairs of name and value without quotes: `get_weather{city:Oslo,days:3}`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from playhead.kernel.calls_in_text.found import Found, Written
from playhead.kernel.calls_in_text.pairs import call_of_pairs
from playhead.kernel.healing.json_reading import parsed, value_at
from playhead.kernel.healing.schema import properties
from playhead.kernel.healing.words import folded

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
_VALUE: Final = re.compile(r"(?P<name>[A-Za-z_]\w{0,60})\s?[:=]\s?(?P<value>[^,{}()\[\]\"']+)")
"""A name, and what stands behind it without quotes or brackets."""
_SURE: Final = re.compile(
    r"-?\d+(?:\.\d+)?|true|false|null|none|\d{4}-\d\d-\d\d(?:T[\d:.]+Z?)?|[A-Z0-9]{1,20}-?\d{1,20}", re.IGNORECASE
)
"""What is a value and no name of one: a number, a switch, a day, a code with a number."""
_PROPER: Final = re.compile(r"[A-Z][a-z]+(?: [A-Z][a-z]+){0,3}")
"""A name of a place or a person, in a call that only looks."""
_TYPES: Final = frozenset(
    (
        "string",
        "str",
        "int",
        "integer",
        "number",
        "float",
        "bool",
        "boolean",
        "object",
        "array",
        "list",
        "dict",
        "date",
        "any",
    )
)
"""Words that stand for values in a signature."""
_QUOTED: Final = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'")
_SIGN: Final = re.compile(r"[?&]")


_LISTED: Final = re.compile(
    rf"\s*\**(?:tool(?: call)?|function(?: call)?|call(?:ing)?|action)\s?:\**\s?\**`?{_NAME}`?\**:?\s*\n"
    r"(?:\s*\**(?:parameters|arguments|args|input|inputs)\**\s?:?\**\s*\n)?(?P<lines>(?:\s*[-*•] [^\n]+(?:\n|\Z))+)\s*",
    re.IGNORECASE,
)
"""A heading with the tool's name, and a list of its arguments."""
_ITEM: Final = re.compile(
    r"\s*[-*•] \**`?(?P<name>[A-Za-z_]\w{0,60})`?\**\s?[:=]\**\s?(?:`(?P<code>[^`\n]*)`|\"(?P<quoted>[^\"\n]*)\")\s*"
)


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
        return _of_pairs(found["name"], found["pairs"], specs)
    if (found := _LISTED.fullmatch(text)) is not None:
        items = [_ITEM.fullmatch(line) for line in found["lines"].strip("\n").split("\n")]
        held = {each["name"]: each["code"] if each["quoted"] is None else each["quoted"] for each in items if each}
        return Written(found["name"], held) if len(held) == len(items) else None
    if (found := _ADDRESS.fullmatch(text)) is not None:
        return _of_pairs(found["name"], f"({_SIGN.sub(', ', found['pairs'])})", specs)
    found = _BEHIND.match(text)
    value = None if found is None else value_at(text, found.end(), may_end=False)
    is_whole = value is not None and not text[value[1] :].strip() and isinstance(value[0], dict)
    if found is None or value is None or not is_whole or not _TYPES.isdisjoint(map(str, value[0].values())):
        return None
    return Written(found["name"], value[0])


def _of_pairs(name: str, written: str, specs: Mapping[str, ToolSpec]) -> Written | None:
    """Return the call, where every value without quotes is one for sure, and none may be the name of one, or of its type."""
    spec = next((each for each in specs.values() if folded(each.name) == folded(name)), None)
    if spec is None:
        return None
    known = properties(spec.parameters)
    bare = [(each["name"], each["value"].strip()) for each in _VALUE.finditer(_QUOTED.sub('""', written))]
    if not all(_is_value(value, known.get(of, {}), reads=spec.read_only) for of, value in bare):
        return None
    held = parsed(written)
    call = Written(spec.name, held) if isinstance(held, dict) else call_of_pairs(name, written, specs)
    values = call.arguments.values() if call is not None and isinstance(call.arguments, dict) else ()
    return None if any(str(value).lower() in _TYPES for value in values) else call


def _is_value(text: str, schema: object, *, reads: bool) -> bool:
    choices = schema.get("enum", ()) if isinstance(schema, dict) else ()
    return (
        not text
        or text in choices
        or _SURE.fullmatch(text) is not None
        or (reads and _PROPER.fullmatch(text) is not None)
    )
