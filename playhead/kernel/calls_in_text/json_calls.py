"""Calls in JSON: where in a text they stand, under which keys, and which tool a sentence names for arguments alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.calls_in_text.any_keys import call_in
from playhead.kernel.calls_in_text.found import Found, Written, as_mended
from playhead.kernel.calls_in_text.json_form import calls_of
from playhead.kernel.calls_in_text.sentences import is_told_of, tool_of_sentence
from playhead.kernel.calls_in_text.standing import (
    MAX_BROKEN,
    MAX_LINE,
    is_announced,
    is_item_alone,
    outer_of,
    segments,
    stands_alone,
    stands_between,
    starts_line,
)
from playhead.kernel.healing.json_reading import value_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from playhead.trace.types import ToolSpec

_TOO_MANY: Final = re.compile(r"\s{0,4}[}\]](?:\s{0,4}[}\]])?")
_CLOSES: Final = re.compile(r"\s{0,20},?\s{0,20}[)\]]|\s*\Z|[ \t]*[`*]")
_OPENING: Final = re.compile(r"[{\[]")
_NAME_BEFORE: Final = re.compile(
    r"(?<![\w./:-])[`*\"']{0,3}(?P<name>[A-Za-z_][\w.:-]{0,80}?)[`*\"']{0,3}"
    r"(?:[ \t]*(?:tool|function|with|using|the|these|this|given|specified|provided|and|following|arguments|args|input|inputs|parameters|params|json)\b){0,5}"
    r"[ \t]*[:=(>-]{0,2}[ \t]*"
    r"(?:\n+#{1,6}[ \t]*(?:action input|tool input|arguments|args|inputs?|parameters|params)[ \t]*\n|"
    r"\n+[ \t*#-]{0,6}(?:action[ _]?input|tool[ _]?input|arguments|args|input|inputs|parameters|params)[ \t*`]{0,4}[:=][ \t*]{0,4})?"
    r"(?:\n{0,2}```\w{0,10}\s|\n)?[ \t]*\Z",
    re.IGNORECASE,
)

_LISTED: Final = re.compile(r"\n[ \t*#]{0,6}-")
_ITEM: Final = re.compile(r"[ \t]{0,20}[-•][ \t]")


def json_calls(
    text: str, specs: Mapping[str, ToolSpec], is_tool: Callable[[str], bool], *, cut_off: bool
) -> Iterator[Found]:
    """Yield the calls that JSON values of a text are, and the arguments whose tool is named before them."""
    last = len(text.rstrip(" \t\n\r;`"))
    for part in segments(text):
        piece, place, broken, row = text[: part.end], part.start, 0, part.start
        while broken < MAX_BROKEN and (opening := _OPENING.search(piece, place)):
            start = opening.start()
            if place == part.start or piece[place:start].strip(" \t,;"):
                row = start
            found = value_at(piece, start, may_end=part.closed or not cut_off)
            if found is None:
                place, broken = start + 1, broken + 1
                continue
            place = found[1]
            is_last = place >= last
            leads = part.fenced and not piece[part.start : start].strip()  # the tool's name may stand before the fence
            read = _json_call(piece, 0 if leads else part.start, (row, start), found, is_tool)
            if stands_alone(piece, row, place) and (read is None or _is_unknown(read, is_tool)):
                read = _in_other_form(text, (start, place), found[0], specs, is_last=is_last) or read
            if read is not None:
                yield outer_of(part, text, read.start, place, as_mended(read.calls, piece, start, place))


def _json_call(
    piece: str, begin: int, place: tuple[int, int], found: tuple[Any, int], is_tool: Callable[[str], bool]
) -> Found | None:
    """Return the calls that a JSON value is, or the call whose arguments it is: the tool's name stands before it.

    `place` is where the row of values begins that this one stands in, and where it begins itself.
    """
    (row, start), (value, end) = place, found
    calls = calls_of(value)
    is_whole = bool(calls) and all(call.sure and call.name for call in calls)
    alone = stands_alone(piece, row, end) or is_item_alone(piece, begin, row, end)
    alone = alone or (is_whole and _closes_too_often(piece, row, end))
    if is_whole and (alone or is_announced(piece, start, end) or stands_between(piece, start, end)):
        return Found(start, end, calls)
    named = _NAME_BEFORE.search(piece, max(begin, start - 160), start) if isinstance(value, dict) else None
    if named is not None and "(" in piece[named.end("name") : start] and _CLOSES.match(piece, end) is None:
        return None  # of a call with more than this object
    if named is not None and _LISTED.search(named[0]) and _has_more_items(piece, named.start(), end):
        return None
    if named is not None and is_tool(named["name"]):
        opens = starts_line(piece, begin, named.start())
        if not opens and is_told_of(piece, start, named["name"]):
            return None
        if alone or opens or is_announced(piece, named.start(), end):
            return Found(named.start(), end, (Written(named["name"], value),))
    return Found(start, end, calls) if alone and calls else None


def _has_more_items(piece: str, start: int, end: int) -> bool:
    """Return whether a list has items before the one that a place is in, or behind another place: its calls may be choices."""
    before = piece[max(0, start - MAX_LINE) : start].rpartition("\n")[0].rstrip().rpartition("\n")[2]
    return _ITEM.match(before) is not None or _ITEM.match(piece[end : end + MAX_LINE].lstrip("`* \t\n")) is not None


def _is_unknown(found: Found, is_tool: Callable[[str], bool]) -> bool:
    """Return whether what was found calls no tool, or has other fields than a call."""
    return not any(call.sure and call.name and is_tool(call.name) for call in found.calls)


def _in_other_form(
    text: str, place: tuple[int, int], value: Any, specs: Mapping[str, ToolSpec], *, is_last: bool  # noqa: ANN401 - any JSON value
) -> Found | None:  # fmt: skip
    """Return the call that a value is under other keys, or with the tool that the sentence before it names."""
    call = call_in(value, specs)
    tool = tool_of_sentence(text, place[0], specs) if call is None and is_last and isinstance(value, dict) else None
    call = Written(tool, value, sure=False) if tool is not None else call
    return None if call is None else Found(*place, (call,))


def _closes_too_often(piece: str, row: int, end: int) -> bool:
    """Return whether one or two brackets too many are all that keeps a call from standing alone."""
    more = _TOO_MANY.match(piece, end)
    return more is not None and stands_alone(piece, row, more.end())
