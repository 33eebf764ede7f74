"""The cascade: XML, else a header and JSON, else JSON, call syntax, YAML; of what is found, what names a tool and is meant as a call."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.calls_in_text.any_tags import tag_calls
from playhead.kernel.calls_in_text.bare_steps import bare_steps, ends_step
from playhead.kernel.calls_in_text.broken_tags import broken_tag_calls
from playhead.kernel.calls_in_text.call_syntax import FENCED_END, SHOWN_END, call_at, constants_of
from playhead.kernel.calls_in_text.command_line import commands, is_command_of_one, stepped_commands
from playhead.kernel.calls_in_text.found import Found, Written
from playhead.kernel.calls_in_text.headed import headed_calls
from playhead.kernel.calls_in_text.json_calls import json_calls
from playhead.kernel.calls_in_text.markup import without_template
from playhead.kernel.calls_in_text.meaning import echoes, is_deed, is_introduced, is_meant, is_step, without_result
from playhead.kernel.calls_in_text.pairs import paired_calls
from playhead.kernel.calls_in_text.standing import (
    MAX_BROKEN,
    Segment,
    is_announced,
    is_only_item,
    outer_of,
    segments,
    stands_alone,
    stands_between,
    starts_line,
)
from playhead.kernel.calls_in_text.whole_reply import whole_reply
from playhead.kernel.calls_in_text.yaml_form import yaml_calls
from playhead.kernel.healing.json_reading import parsed
from playhead.kernel.healing.names import meant_tool
from playhead.kernel.healing.noise import is_beside
from playhead.kernel.healing.pipeline import CALLERS, heal, is_healthy
from playhead.kernel.healing.schema import properties, required
from playhead.kernel.healing.shapes import filled_in
from playhead.kernel.healing.values import is_empty
from playhead.kernel.healing.words import folded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from playhead.trace.types import ToolSpec

MAX_TEXT: Final = 400_000
"""Characters; what stands behind them is not looked at."""
MAX_CALLS: Final = 50
"""Calls in one text."""
MAX_LOOKED_AT: Final = 200
"""What has the form of a call, of one kind of form; what comes behind them is not looked at."""
_REST: Final = re.compile(
    r"[`*\])]*+[ \t]*+[;.]?[ \t]*+(?:<(?:[/|\uff5c][^<>\n]{1,40}|\w{1,20}\|)>[ \t]*){0,4}(?=\n|\Z)"
)
_PLACEHOLDER: Final = re.compile(
    r"<[^<>]{1,60}>|\.{3}|…|\[[a-z _-]{2,40}\]|\{[a-z _-]{2,40}\}|your[_-]\w{1,60}|your (?:\w{1,20} ){0,2}(?:name|email|address|key|token|id|here|text|query|value|message)|path/to/.{0,100}|/path/to/.{0,100}",
    re.IGNORECASE,
)
_LINE: Final = re.compile(r"^[ \t]*(?P<bullet>[-*•][ \t])?(?=[A-Za-z_])", re.MULTILINE)
_PROGRAM: Final = re.compile(
    r"^[ \t]*(?:def |class |import (?!tools\b|functions\b)|from (?!(?:\w{1,40}\.)?(?:tools|functions) import )\w+ import |(?:for|if|while|with|try|else|elif|except)\b[^\n]{0,200}:[ \t]*$)",
    re.MULTILINE,
)
"""Lines of a program: the calls in it are not made."""
_SAID: Final = frozenset(
    ("content", "text", "message", "response", "answer", "description", "summary", "note", "comment", "status", "state", "step",
     "plan", "timestamp", "server", "servername", "service", "provider", "plugin", "namespace", "label", "title", "next", "final", "isfinal", "done", "observation",
     "task", "context", "metadata", "meta", "finishreason", "stopreason", "toolname", "tool", "function")
)  # fmt: skip
"""Fields beside a call that say something to the reader, or of the turn, folded."""
_CALLS: Final = CALLERS | {"call", "run", "use", "execute", "tool", "function"}
"""What a field beside a call says where it only says that this is one, folded."""
_STATES: Final = frozenset(("status", "state"))
_OVER: Final = frozenset(
    ("done", "ok", "success", "succeeded", "successful", "executed", "finished", "failed", "failure", "error")
)
"""What a field beside a call says of one that was made; `completed` is also what an API says of the message."""
_BETWEEN: Final = re.compile(r"[\s,;]+")
_LAST: Final = re.compile(r"[.:/]|__")
_PRINTED: Final = re.compile(r"[ \t]*\n\s{0,9}print\(\w{1,60}\)\s*\Z")
"""A last line that shows what the call gave."""
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
    if len(text) > MAX_TEXT or not (
        any(mark in text for mark in ("{", "[", "(", "<", ":", " -", "=")) or is_command_of_one(text, specs)
    ):
        return [], text
    whole, text = text, without_template(text)
    same = {folded(name) for name in specs}

    def is_tool(name: str) -> bool:
        name = name.removesuffix(".call")
        return folded(name) in same or folded(_LAST.split(name)[-1]) in same

    zones = echoes(text)
    tiers: tuple[Callable[[], Iterator[Found]], ...] = (
        lambda: tag_calls(text, specs, is_tool, cut_off=cut_off),
        lambda: iter(sorted(headed_calls(text, cut_off=cut_off), key=lambda each: each.start)),
        lambda: paired_calls(text, specs, cut_off=cut_off),
        lambda: bare_steps(text, specs, cut_off=cut_off),
        lambda: stepped_commands(text, specs, cut_off=cut_off),
        lambda: json_calls(text, specs, is_tool, cut_off=cut_off),
        lambda: _syntax_calls(text, is_tool, cut_off=cut_off),
        lambda: commands(text, specs, cut_off=cut_off),
        lambda: yaml_calls(text, cut_off=cut_off),
        lambda: broken_tag_calls(text, specs, cut_off=cut_off),
        lambda: whole_reply(text, specs, cut_off=cut_off),
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
    text = without_result(text, found.end) if found.step else text
    is_named = all(call.name in specs for call in found.calls)
    is_exact = is_named and all(call.written is None for call in found.calls)
    if found.step and is_named and is_step(text, found.start, found.end):
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
        is_fenced = whole.startswith("```", found.start) and not whole[found.end :].strip()
        is_one = len(found.calls) == 1 and (is_fenced or found.step or _is_all(whole, found) or _ends(whole, found))
        named = [_in_order(call, specs) if call.in_order and is_one else call for call in found.calls]
        if any(call is None or call.in_order for call in named):
            continue
        calls = [
            _known_call(call, specs, nameless=nameless and _is_all(whole, found)) for call in named if call is not None
        ]
        if calls and all(calls):
            yield replace(found, calls=tuple(call for call in calls if call is not None))


def _in_order(call: Written, specs: Mapping[str, ToolSpec]) -> Written | None:
    """Return a call with the names of its values, where all of them fit as they stand: what has to be there comes first."""
    spec = specs.get((call.name or "").removeprefix("tools.").removeprefix("functions."))
    if spec is None or len(call.arguments) > len(properties(spec.parameters)):
        return None
    known, needed = [*properties(spec.parameters)], required(spec.parameters)
    arguments = dict(zip(known, call.arguments, strict=False))
    if not arguments.keys().isdisjoint(call.beside):
        return None
    arguments |= call.beside
    if not {*map(str, call.arguments)}.isdisjoint(known):
        return None  # names of values, not values
    is_first = {*known[: len(needed)]} == {*needed}
    return (
        replace(call, name=spec.name, arguments=arguments, in_order=False, beside={})
        if is_first and heal(spec.name, arguments, specs).arguments is not None
        else None
    )


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
        or not (
            is_empty(item)
            or folded(key) in _SAID
            or (isinstance(item, str) and folded(item) in _CALLS)
            or (name in specs and is_beside(specs[name], key, item, known))
        )
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


def _ends(text: str, found: Found) -> bool:
    """Return whether a call stands on its own line at the end of a text."""
    return found.start > 0 and text[found.start - 1] == "\n" and not text[found.end :].strip()


def _is_all(text: str, found: Found) -> bool:
    """Return whether nothing else stands in the text."""
    return not _EMPTY_WRAP.sub("", text[: found.start] + text[found.end :]).strip()


def _syntax_calls(text: str, is_tool: Callable[[str], bool], *, cut_off: bool) -> Iterator[Found]:
    for part in segments(text):
        constants, begin = constants_of(text, part.start, part.end) if part.fenced else ({}, part.start)
        found = list(_lines_with_calls(text, part, begin, constants, cut_off=cut_off))
        if _PROGRAM.search(text, part.start, part.end) or (part.fenced and not _only_calls(text, part, begin, found)):
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
        if ends_step(piece, start, place) and part.end == len(text):
            yield Found(start, len(text), (call[0],), step=True)
            return
        listed = piece[start - 1 : start] in ("[", ",", " ") and piece[place : place + 1] in ("]", ",")
        opens, ends = starts_line(piece, part.start, start), _REST.match(piece, place)
        if (
            (opens and (listed or ends))
            or is_announced(piece, start, place)
            or (ends and stands_between(piece, start, place))
        ):
            yield outer_of(part, text, start, place, (call[0],))


def _lines_with_calls(
    text: str, part: Segment, begin: int, constants: Mapping[str, Any], *, cut_off: bool
) -> Iterator[Found]:
    begin = part.start if "#" in text[part.start : begin] else begin  # a comment may say something of the call
    piece, place, broken = text[: part.end], part.start, 0
    unclosed = None if not part.fenced else FENCED_END if part.closed else None if cut_off else SHOWN_END
    while broken < MAX_BROKEN and (line := _LINE.search(piece, place)):
        call = call_at(piece, line.end(), constants=constants, unclosed=unclosed)
        if call is None:
            place, broken = line.end() + 1, broken + (piece.find("(", line.end(), line.end() + 200) >= 0)
        else:
            place = call[1]
            if part.fenced and (shown := _PRINTED.match(piece, place)):
                place = shown.end()
            if line["bullet"] is None or is_only_item(piece, part.start, line.start(), place):
                start = line.start("bullet") if line["bullet"] else line.end()
                yield outer_of(replace(part, start=begin), text, start, place, (call[0],))


def _only_calls(text: str, part: Segment, begin: int, found: list[Found]) -> bool:
    rest, place = [], begin
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


def _without(text: str, found: list[Found]) -> str:
    rest, place = [], 0
    for each in found:
        rest.append(text[place : each.start])
        place = each.end
    return _EMPTY_WRAP.sub("", "".join([*rest, text[place:]])).strip()
