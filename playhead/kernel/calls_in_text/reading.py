"""The cascade: XML, else a header and JSON, else JSON, call syntax, YAML; of what is found, what names a tool and is meant as a call."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.calls_in_text.broken_tags import broken_tag_calls
from playhead.kernel.calls_in_text.call_syntax import call_at
from playhead.kernel.calls_in_text.found import Found, Written, as_mended
from playhead.kernel.calls_in_text.headed import headed_calls
from playhead.kernel.calls_in_text.json_form import calls_of
from playhead.kernel.calls_in_text.markup import without_template
from playhead.kernel.calls_in_text.meaning import echoes, is_deed, is_introduced, is_meant, is_step
from playhead.kernel.calls_in_text.pairs import paired_calls
from playhead.kernel.calls_in_text.standing import (
    Segment,
    is_announced,
    is_only_item,
    segments,
    stands_alone,
    stands_between,
    starts_line,
)
from playhead.kernel.calls_in_text.xml_form import xml_calls
from playhead.kernel.calls_in_text.yaml_form import yaml_calls
from playhead.kernel.healing.json_reading import parsed, value_at
from playhead.kernel.healing.names import meant_tool
from playhead.kernel.healing.noise import is_beside
from playhead.kernel.healing.pipeline import heal, is_healthy
from playhead.kernel.healing.schema import properties, required
from playhead.kernel.healing.shapes import filled_in
from playhead.kernel.healing.values import is_empty
from playhead.kernel.healing.words import folded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from playhead.trace.types import ToolSpec

MAX_TEXT: Final = 400_000
"""Characters; what stands behind them is not looked at."""
MAX_BROKEN: Final = 50
"""Beginnings of something that is no call, in one part of the text, and more of them are not tried."""
MAX_CALLS: Final = 50
"""Calls in one text."""
MAX_LOOKED_AT: Final = 200
"""What has the form of a call, of one kind of form; what comes behind them is not looked at."""
_REST: Final = re.compile(
    r"[`*\])]*+[ \t]*+[;.]?[ \t]*+(?:<(?:[/|\uff5c][^<>\n]{1,40}|\w{1,20}\|)>[ \t]*){0,4}(?=\n|\Z)"
)
_PLACEHOLDER: Final = re.compile(
    r"<[^<>]{1,60}>|\.{3}|…|\[[a-z _-]{2,40}\]|\{[a-z _-]{2,40}\}|your[ _-].{1,60}|path/to/.{0,100}|/path/to/.{0,100}",
    re.IGNORECASE,
)
_TOO_MANY: Final = re.compile(r"\s{0,4}[}\]](?:\s{0,4}[}\]])?")
_OPENING: Final = re.compile(r"[{\[]")
_LINE: Final = re.compile(r"^[ \t]*(?P<bullet>[-*•][ \t])?(?=[A-Za-z_])", re.MULTILINE)
_NAME_BEFORE: Final = re.compile(
    r"(?<![\w./:-])[`*\"']{0,3}(?P<name>[A-Za-z_][\w.:-]{0,80}?)[`*\"']{0,3}"
    r"(?:[ \t]*(?:tool|function|with|using|the|these|this|given|and|following|arguments|args|input|inputs|parameters|params|json)\b){0,5}"
    r"[ \t]*[:=(>-]{0,2}[ \t]*"
    r"(?:\n+[ \t*#]{0,6}(?:action[ _]?input|tool[ _]?input|arguments|args|input|inputs|parameters|params)[ \t*`]{0,4}[:=][ \t*]{0,4})?"
    r"(?:\n{0,2}```\w{0,10}\s|\n)?[ \t]*\Z",
    re.IGNORECASE,
)
_PROGRAM: Final = re.compile(
    r"^[ \t]*(?:def |class |import (?!tools\b|functions\b)|from (?!(?:\w{1,40}\.)?(?:tools|functions) import )\w+ import |(?:for|if|while|with|try|else|elif|except)\b[^\n]{0,200}:[ \t]*$)",
    re.MULTILINE,
)
"""Lines of a program: the calls in it are not made."""
_SAID: Final = frozenset(
    ("content", "text", "message", "response", "answer", "description", "summary", "note", "comment", "status", "state", "step",
     "plan", "timestamp", "server", "servername", "namespace", "label", "title", "next", "final", "isfinal", "done", "observation",
     "task", "context", "metadata", "meta", "finishreason", "stopreason", "toolname", "tool", "function")
)  # fmt: skip
"""Fields beside a call that say something to the reader, or of the turn, folded."""
_STATES: Final = frozenset(("status", "state"))
_OVER: Final = frozenset(
    ("done", "ok", "success", "succeeded", "successful", "executed", "finished", "failed", "failure", "error")
)
"""What a field beside a call says of one that was made; `completed` is also what an API says of the message."""
_BETWEEN: Final = re.compile(r"[\s,;]+")
_LAST: Final = re.compile(r"[.:/]|__")
_CALL_NAME: Final = re.compile(r"(?<![\w.:-])(?:print\()?([A-Za-z_][\w.:-]{0,100})\(")
_EMPTY_WRAP: Final = re.compile(
    r"```[a-z_]*\s*```|<(\w{1,30})>\s*</\1>|\[/?TOOL_CALLS\]|</?tool_call>|<\|[\w-]{1,30}\|>", re.IGNORECASE
)


def read_calls(
    text: str, specs: Mapping[str, ToolSpec], *, cut_off: bool = False, nameless: bool = True
) -> tuple[list[Written], str]:
    """Return the calls that stand in a text as calls, in order, and the text without them; never raises.

    Args:
        text: the model's reply.
        specs: the tools that it may call.
        cut_off: whether the reply reached its longest length: then nothing is completed.
        nameless: whether arguments alone may be a call: of the one tool without side effects that they fit.
    """
    if len(text) > MAX_TEXT or not any(mark in text for mark in "{[(<:"):
        return [], text
    whole, text = text, without_template(text)
    same = {folded(name) for name in specs}

    def is_tool(name: str) -> bool:
        name = name.removesuffix(".call")
        return folded(name) in same or folded(_LAST.split(name)[-1]) in same

    zones = echoes(text)
    tiers: tuple[Callable[[], Iterator[Found]], ...] = (
        lambda: xml_calls(text, is_tool, cut_off=cut_off),
        lambda: iter(sorted(headed_calls(text, cut_off=cut_off), key=lambda each: each.start)),
        lambda: paired_calls(text, specs, cut_off=cut_off),
        lambda: _json_calls(text, is_tool, cut_off=cut_off),
        lambda: _syntax_calls(text, is_tool),
        lambda: yaml_calls(text, cut_off=cut_off),
        lambda: broken_tag_calls(text, specs, cut_off=cut_off),
    )
    for tier in tiers:
        known = _known(islice(tier(), MAX_LOOKED_AT), specs, nameless=nameless, whole=text)
        found = list(islice(_meant(text, known, zones, specs), MAX_CALLS))
        if found:
            return [call for each in found for call in each.calls][:MAX_CALLS], _without(text, found)
    return [], whole


def _meant(
    text: str, known: Iterator[Found], zones: list[tuple[int, int]], specs: Mapping[str, ToolSpec]
) -> Iterator[Found]:
    """Yield what is meant as a call; of calls right behind each other one introduction speaks for all."""
    last: Found | None = None
    was_meant = True
    for each in known:
        follows = last is not None and not _BETWEEN.sub("", text[last.end : each.start])
        was_meant = _is_call(text, each, zones, specs) and (was_meant or not follows)
        last = each
        if was_meant:
            yield each


def _is_call(text: str, found: Found, zones: list[tuple[int, int]], specs: Mapping[str, ToolSpec]) -> bool:
    if any(start <= found.start < end for start, end in zones):
        return False
    if found.explicit and not stands_alone(text, found.start, found.end):
        return False
    if any(_has_gap(call.arguments) for call in found.calls):
        return False
    is_exact = all(call.name in specs and call.written is None for call in found.calls)
    if found.step and is_exact and is_step(text, found.start, found.end):
        return True
    looks_only = all((spec := specs.get(call.name or "")) is not None and spec.read_only for call in found.calls)
    is_whole = is_exact and len(found.calls) == 1 and is_deed(text, found.start, found.end, found.calls[0].name or "")
    if not looks_only and not is_whole and not is_introduced(text, found.start):
        return False
    return is_meant(text, found.start, found.end)


def _has_gap(arguments: object) -> bool:
    """Return whether some argument is only the place for one, as in `<path>` or `...`."""
    values = arguments.values() if isinstance(arguments, dict) else ()
    return any(isinstance(value, str) and _PLACEHOLDER.fullmatch(value) is not None for value in values)


def _known(
    each_found: Iterator[Found], specs: Mapping[str, ToolSpec], *, nameless: bool, whole: str
) -> Iterator[Found]:
    """Yield what holds calls of known tools only, with the names that arguments alone stand for."""
    for found in each_found:
        is_fenced = whole.startswith("```", found.start) and len(found.calls) == 1 and not whole[found.end :].strip()
        named = [_in_order(call, specs) if call.in_order and is_fenced else call for call in found.calls]
        if any(call is None or call.in_order for call in named):
            continue
        calls = [
            _known_call(call, specs, nameless=nameless and _is_all(whole, found)) for call in named if call is not None
        ]
        if calls and all(calls):
            yield replace(found, calls=tuple(call for call in calls if call is not None))


def _in_order(call: Written, specs: Mapping[str, ToolSpec]) -> Written | None:
    """Return a call with the names of its values, where all of them fit as they stand: what has to be there comes first."""
    spec = specs.get(call.name or "")
    if spec is None or len(call.arguments) > len(properties(spec.parameters)):
        return None
    known, needed = [*properties(spec.parameters)], required(spec.parameters)
    arguments = dict(zip(known, call.arguments, strict=False))
    is_first = {*known[: len(needed)]} == {*needed}
    return replace(call, arguments=arguments, in_order=False) if is_first and is_healthy(spec, arguments) else None


def _known_call(call: Written, specs: Mapping[str, ToolSpec], *, nameless: bool) -> Written | None:
    if call.name is None:
        return _named_by_type(call, specs) or (_nameless(call, specs) if nameless else None)
    call = _with_beside(call, specs) if call.beside else call
    healed = heal(call.name or "", call.arguments, specs)
    if healed.arguments is not None:
        return call
    if not call.sure:
        return None
    meant = meant_tool(call.name or "", specs, lambda _: False)
    return None if meant.name is None else call  # the model is told why it does not run


def _with_beside(call: Written, specs: Mapping[str, ToolSpec]) -> Written:
    """Return a call with what stands beside its arguments among them, but for what is only said: nothing is left out in silence."""
    name = heal(call.name or "", call.arguments, specs).name
    known = {folded(own) for own in properties(specs[name].parameters)} if name in specs else set()
    arguments = parsed(call.arguments) if isinstance(call.arguments, str) else call.arguments
    beside = {
        key: item
        for key, item in call.beside.items()
        if folded(key) in known
        or not (is_empty(item) or folded(key) in _SAID or (name in specs and is_beside(specs[name], key, item, known)))
    }
    told = [item for key, item in call.beside.items() if folded(key) in _STATES and folded(key) not in known]
    if any(folded(str(item)) in _OVER for item in told):
        return replace(call, arguments=[arguments, call.beside], beside={})  # it tells of a call that was made
    if not beside:
        return call
    both = {folded(key) for key in beside} & {folded(key) for key in (arguments if isinstance(arguments, dict) else ())}
    is_one = isinstance(arguments, dict) and not both
    return replace(call, arguments={**arguments, **beside} if is_one else [arguments, beside], beside={})


def _named_by_type(call: Written, specs: Mapping[str, ToolSpec]) -> Written | None:
    """Return the call of the tool that the field `type` names, which has no parameter of this name, if the rest fits it."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    spec = specs.get(arguments["type"]) if isinstance(arguments.get("type"), str) else None
    rest = {name: item for name, item in arguments.items() if name != "type"}
    is_named = spec is not None and "type" not in properties(spec.parameters) and is_healthy(spec, rest)
    return Written(spec.name, rest, written=call.written) if spec is not None and is_named else None


def _nameless(call: Written, specs: Mapping[str, ToolSpec]) -> Written | None:
    """Return the call of the one tool that these arguments fit, if it changes nothing."""
    arguments = filled_in(call.arguments) or call.arguments if isinstance(call.arguments, dict) else {}
    if len(arguments) < 2:  # noqa: PLR2004 - one value says too little
        return None
    fitting = [name for name, spec in specs.items() if is_healthy(spec, arguments) and _all_known(spec, arguments)]
    if len(fitting) != 1 or not specs[fitting[0]].read_only:
        return None
    return Written(fitting[0], arguments, written=call.written)


def _all_known(spec: ToolSpec, arguments: dict[str, Any]) -> bool:
    return all(name in spec.parameters.get("properties", {}) for name in arguments)


def _is_all(text: str, found: Found) -> bool:
    """Return whether nothing else stands in the text."""
    return not _EMPTY_WRAP.sub("", text[: found.start] + text[found.end :]).strip()


def _json_calls(text: str, is_tool: Callable[[str], bool], *, cut_off: bool) -> Iterator[Found]:
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
            leads = part.fenced and not piece[part.start : start].strip()  # the tool's name may stand before the fence
            read = _json_call(piece, 0 if leads else part.start, (row, start), found, is_tool)
            if read is not None:
                yield _outer(part, text, read.start, place, as_mended(read.calls, piece, start, place))


def _json_call(
    piece: str, begin: int, place: tuple[int, int], found: tuple[Any, int], is_tool: Callable[[str], bool]
) -> Found | None:
    """Return the calls that a JSON value is, or the call whose arguments it is: the tool's name stands before it.

    `place` is where the row of values begins that this one stands in, and where it begins itself.
    """
    (row, start), (value, end) = place, found
    calls = calls_of(value)
    is_whole = bool(calls) and all(call.sure and call.name for call in calls)
    alone = stands_alone(piece, row, end)
    alone = alone or (is_whole and _closes_too_often(piece, row, end))
    if is_whole and (alone or is_announced(piece, start, end) or stands_between(piece, start, end)):
        return Found(start, end, calls)
    named = _NAME_BEFORE.search(piece, max(begin, start - 160), start) if isinstance(value, dict) else None
    if named is not None and is_tool(named["name"]):
        opens = starts_line(piece, begin, named.start())
        if alone or opens or is_announced(piece, named.start(), end):
            return Found(named.start(), end, (Written(named["name"], value),))
    return Found(start, end, calls) if alone and calls else None


def _closes_too_often(piece: str, row: int, end: int) -> bool:
    """Return whether one or two brackets too many are all that keeps a call from standing alone."""
    more = _TOO_MANY.match(piece, end)
    return more is not None and stands_alone(piece, row, more.end())


def _syntax_calls(text: str, is_tool: Callable[[str], bool]) -> Iterator[Found]:
    for part in segments(text):
        found = list(_lines_with_calls(text, part))
        if _PROGRAM.search(text, part.start, part.end) or (part.fenced and not _only_calls(text, part, found)):
            continue
        yield from found or _announced_calls(text, part, is_tool)


def _announced_calls(text: str, part: Segment, is_tool: Callable[[str], bool]) -> Iterator[Found]:
    """Yield calls inside a line: behind a colon or a mark of calls, in a list, or where the sentence says that it calls."""
    piece, place, broken = text[: part.end], part.start, 0
    while broken < MAX_BROKEN and (named := _CALL_NAME.search(piece, place)):
        place = named.end()
        if not is_tool(named[1]):
            continue
        call = call_at(piece, named.start(), ends_line=False)
        if call is None:
            broken += 1
            continue
        start, place = named.start(), call[1]
        listed = piece[start - 1 : start] in ("[", ",", " ") and piece[place : place + 1] in ("]", ",")
        opens, ends = starts_line(piece, part.start, start), _REST.match(piece, place)
        if (
            (opens and (listed or ends))
            or is_announced(piece, start, place)
            or (ends and stands_between(piece, start, place))
        ):
            yield _outer(part, text, start, place, (call[0],))


def _lines_with_calls(text: str, part: Segment) -> Iterator[Found]:
    piece, place, broken = text[: part.end], part.start, 0
    while broken < MAX_BROKEN and (line := _LINE.search(piece, place)):
        call = call_at(piece, line.end())
        if call is None:
            place, broken = line.end() + 1, broken + (piece.find("(", line.end(), line.end() + 200) >= 0)
        else:
            place = call[1]
            if line["bullet"] is None or is_only_item(piece, part.start, line.start(), place):
                yield _outer(part, text, line.start("bullet") if line["bullet"] else line.end(), place, (call[0],))


def _only_calls(text: str, part: Segment, found: list[Found]) -> bool:
    rest, place = [], part.start
    for each in found:
        if each.start >= part.start:
            rest.append(text[place : each.start])
            place = each.end
    rest.append(text[place : part.end])
    return not re.sub(
        r"#[^\n]*|^print\(\w{1,60}\)[ \t]*$|^(?:from [\w.]{1,80} )?import [\w, *]{1,200}$|[;)\s]",
        "",
        "".join(rest),
        flags=re.MULTILINE,
    ) or (len(found) == 1 and found[0].start == part.outer_start)


def _outer(part: Segment, text: str, start: int, end: int, calls: tuple[Written, ...]) -> Found:
    """Return what was found with its fence, where nothing else is fenced."""
    alone = part.fenced and not text[part.start : start].strip() and not text[end : part.end].strip(" \n\t;")
    return Found(part.outer_start, part.outer_end, calls) if alone else Found(start, end, calls)


def _without(text: str, found: list[Found]) -> str:
    rest, place = [], 0
    for each in found:
        rest.append(text[place : each.start])
        place = each.end
    return _EMPTY_WRAP.sub("", "".join([*rest, text[place:]])).strip()
