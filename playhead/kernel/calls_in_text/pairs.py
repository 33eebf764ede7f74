"""Calls whose arguments are pairs without quotes: `Action Input: town=Graz, free_only=true`, or in an attribute of a tag."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.calls_in_text.call_syntax import call_at
from playhead.kernel.calls_in_text.found import Found, Written
from playhead.kernel.healing.json_reading import parsed
from playhead.kernel.healing.schema import options, properties, resolved
from playhead.kernel.healing.words import folded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.trace.types import ToolSpec

MAX_TEXT: Final = 5_000
"""Characters of the pairs of one call."""
MAX_CALLS: Final = 50
"""Headers that are looked at."""
_HEADER: Final = re.compile(
    r"^[ \t*#]{0,6}action(?:[ \t]?#?\d{1,3})?[ \t*]{0,4}:[ \t*`\"]{0,6}(?P<name>[A-Za-z_][\w.:-]{0,100})[ \t*`\"()]{0,6}\n+"
    r"[ \t*#]{0,6}action[ _]?input(?:[ \t]?#?\d{1,3})?[ \t*]{0,4}:[ \t*]{0,4}(?P<pairs>[^\n]*(?:\n(?![ \t]{0,8}(?:observation|thought|action|final)\b)"
    r"[ \t]{0,8}[A-Za-z_]\w{0,60}[ \t]?[=:][^\n]*)*)",
    re.IGNORECASE | re.MULTILINE,
)
_TAG: Final = re.compile(
    r"<(?:tool|tool_call|call|function|invoke|tool_use|action)\s+(?:name|tool|call|function)\s{0,3}=\s{0,3}"
    r"(?P<quote>[\"'])(?P<name>[A-Za-z_][\w.:-]{0,100})(?P=quote)"
    r"\s+(?:parameters|params|arguments|args|input)\s{0,3}=\s{0,3}(?P<mark>[\"'])(?P<pairs>[^<>]{1,5000}?)(?P=mark)\s{0,3}/?>"
    r"(?:\s{0,4}</\w{1,30}>)?",
    re.IGNORECASE,
)
_PAIR: Final = re.compile(r"(?:\A|[,;\n])\s{0,9}([A-Za-z_]\w{0,60})[ \t]?([=:])(?!=)[ \t]?")
_HELD: Final = re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]|\"[^\"\n]*\"|(?<=[=: ])'[^'\n]*'")
"""What stands in brackets or quotes."""
_SPACED: Final = re.compile(r"[A-Za-z_]\w{0,60}=[^\s,;=]+(?:[ \t]+[A-Za-z_]\w{0,60}=[^\s,;=]+)+")
_SPACE: Final = re.compile(r"[ \t]+")
"""Pairs with only space between them, and none in their values."""
_FIELD: Final = re.compile(r"\s*[\"']?([A-Za-z_]\w{0,60})[\"']?\s?[=:]\s?([^{}]+)")
_BARE_LIST: Final = re.compile(r"\[[^\[\]{}\"']{1,500}\]")
_COMMA: Final = re.compile(r",(?=\s*[\"']?[A-Za-z_]\w{0,60}[\"']?\s?[=:])")
_FULL: Final = {
    "date": re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
    "date-time": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII),
}
_NONE: Final = ("None", "null")
"""Values without quotes that are none."""
_WHOLE: Final = frozenset(("true", "false", "none", "null"))
_GOES_ON: Final = re.compile(
    r"\s*+(?![ \t*#]{0,6}(?:observation|thought|action|final|question|user|human|assistant)\b|\Z|```|<)", re.IGNORECASE
)
_TURNS: Final = re.compile(r"\n[ \t*#]{0,6}(?:observation|thought|action|final answer)\b", re.IGNORECASE)


def paired_calls(text: str, specs: Mapping[str, ToolSpec], *, cut_off: bool) -> Iterator[Found]:
    """Yield calls with pairs of name and value; where the text ends with the last value, that has to show its end."""
    for form in (_HEADER, _TAG):
        for number, header in enumerate(form.finditer(text)):
            if number == MAX_CALLS:
                return
            turn = _TURNS.search(text, header.start("pairs"), header.end("pairs"))
            end = turn.start() if turn else header.end()
            written = header["pairs"] if turn is None else text[header.start("pairs") : end]
            if form is _HEADER and _GOES_ON.match(text, end):
                continue  # with lines that may be of the last value
            is_last = form is _HEADER and not text[end:].strip()
            found = call_of_pairs(header["name"], written, specs, is_last=is_last, cut_off=cut_off)
            if found is not None:
                yield Found(header.start(), end, (found,), explicit=True, step=form is _HEADER)


def call_of_pairs(
    name: str, written: str, specs: Mapping[str, ToolSpec], *, is_last: bool = False, cut_off: bool = False
) -> Written | None:
    """Return the call; None where its pairs cannot be told apart, or the last one may be cut off."""
    spec = next((each for each in specs.values() if folded(each.name) == folded(name)), None)
    written = _without_brackets(written.strip().strip("`").strip())
    if spec is None or not written or written[0] in "{[" or len(written) > MAX_TEXT or (is_last and cut_off):
        return None
    known = properties(spec.parameters)
    code = call_at(f"{name}({written})", 0)
    is_code = code is not None and code[1] == len(name) + len(written) + 2 and isinstance(code[0].arguments, dict)
    if code is not None and code[0].in_order and code[1] == len(name) + len(written) + 2:
        return replace(code[0], name=spec.name)
    arguments = code[0].arguments if code is not None and is_code else pairs_of(written, known)
    if not arguments or "0" in arguments:
        return None
    last = [*arguments][-1]
    is_closed = not isinstance(arguments[last], (int, float)) if is_code else _is_closed(written, last)
    arguments = {key: None if item in _NONE and not is_code else item for key, item in arguments.items()}
    if is_last and not is_closed and not _shows_end(str(arguments[last]), known.get(last, {}), spec):
        return None
    return Written(spec.name, arguments, written=written)


def _without_brackets(written: str) -> str:
    """Return pairs without the brackets around all of them, which are no object as it stands: `(a=1, b=2)`, `{a: x, b: y}`."""
    inner = written[1:-1]
    is_held = written[:1] + written[-1:] in ("()", "{}") and not set("(){}").intersection(_HELD.sub("", inner))
    return inner.strip() if is_held and parsed(written) is None else written


def pairs_of(written: str, known: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the values by name, each up to the next of the tool's names; None when a name stands twice, or no name is first.

    A name within brackets or quotes begins no value.
    """
    if _SPACED.fullmatch(written):
        written = _SPACE.sub(", ", written)
    found: dict[str, Any] = {}
    flat = _HELD.sub(lambda held: "\x00" * len(held[0]), written)
    starts = [each for each in _PAIR.finditer(flat) if each[1] in known or each.start() == 0]
    starts = [each for each in starts if each[2] == starts[0][2]]
    if not starts or starts[0].start() != 0:
        return None
    for pair, after in zip(starts, [*starts[1:], None], strict=True):
        value = written[pair.end() : after.start() if after else len(written)].strip()
        if pair[1] in found or not value:
            return None
        found[pair[1]] = _value(value)
    return None if any(value is None for value in found.values()) else found


def _value(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value without its quotes, or the object or list that it is; None where a quote or a bracket is left open."""
    if text[0] in "{[":
        inner = parsed(text)
        if inner is None and _BARE_LIST.fullmatch(text):
            return text
        return _object(text) if inner is None and text[0] == "{" and text[-1] == "}" else inner
    if text[0] in "\"'":
        inner = text[1:-1]
        return inner if len(text) > 1 and text[-1] == text[0] and text[0] not in inner and "\\" not in inner else None
    return text


def _object(text: str) -> dict[str, Any] | None:
    """Return the object whose fields stand as pairs: `{begins="22:00", dock=4}`; all of them have to be read."""
    parts = [_FIELD.fullmatch(part) for part in _COMMA.split(text[1:-1])]
    found = {each[1]: _value(each[2].strip()) for each in parts if each}
    is_read = len(found) == len(parts) and not any(item is None for item in found.values())
    return found if is_read else None


def _is_closed(written: str, last: str) -> bool:
    """Return whether the last value stands in quotes or brackets."""
    value = re.split(rf"(?:\A|[,;\s]){re.escape(last)}[ \t]?[=:]", written)[-1].strip()
    return len(value) > 1 and value[0] in "\"'{[" and value[-1] in "\"'}]"


def _shows_end(value: str, schema: Any, spec: ToolSpec) -> bool:  # noqa: ANN401 - of a schema
    """Return whether a value without quotes is whole: a word of its own, a full date, or a choice that no other one begins with."""
    if value.lower() in _WHOLE:
        return True
    for option in options(resolved(schema, spec.parameters), spec.parameters):
        form = _FULL.get(str(option.get("format")))
        if form is not None and form.fullmatch(value):
            return True
        choices = [each for each in option.get("enum", ()) if isinstance(each, str) and each.startswith(value)]
        if choices == [value]:
            return True
    return False
