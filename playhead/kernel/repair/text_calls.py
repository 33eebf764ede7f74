"""Calls that a reply has as JSON in its text, and which of them may run: prose never triggers a side effect.

The JSON may stand bare, in a fence, between tags or behind `[TOOL_CALLS]`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import did_you_mean
from playhead.kernel.rationale import parse_rationale
from playhead.kernel.repair.lenient_json import MAX_CHARACTERS, JsonBlock, json_blocks, unwrapped
from playhead.kernel.repair.names import folded, meant_tool, unknown_tool
from playhead.kernel.repair.repair import ARGUMENTS, NAMES, NOTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.trace.types import Rationale, ToolSpec

AS_TOOL_CALL: Final = (
    "Your reply holds a call of {} as text, and nothing was run. Make it a tool call, or reply without it."
)
ALONE: Final = (
    "Your reply holds a call of {}, and nothing was run: it changes something, so it has to be the whole reply, in the form "
    "that you were told. Send the block alone, or reply without it."
)
BROKEN: Final = (
    "Your reply is a call that could not be made: {} Make the call again as a whole, or reply with the answer."
)
_EMPTY: Final = re.compile(r"```\w{0,20}\s*```|<(\w{1,40})>\s*</\1>")
_FENCES: Final = re.compile(r"\s+|```(?:json)?(?=\s|\Z)")
_BEGUN: Final = re.compile(r"\[?\s*\{\s*[\"']?(\w{1,20})[\"']?\s*:\s*[\"']([^\"'\n]{1,100})")


@dataclass(frozen=True, slots=True)
class TextCall:
    """A call written in a text."""

    start: int
    """The position of its first character."""
    end: int
    """The position after its last character."""
    name: str
    """The tool's name, as it was written."""
    arguments: Any
    """The arguments, as they were written."""
    rationale: Rationale | None
    """The reason stated with them."""
    taught: bool
    """Whether it is complete JSON in the form that prompts teach."""
    broken: str | None
    """Its text, if that is not strict JSON."""


@dataclass(frozen=True, slots=True)
class Found:
    """The calls of a reply without native calls."""

    calls: tuple[TextCall, ...]
    """The calls that may run."""
    rest: str
    """The text without them."""
    problem: str | None = None
    """The message to the model where no apparent call may run."""


def read_text(text: str, specs: Mapping[str, ToolSpec], *, in_text: bool, strict: bool) -> Found:
    """Return the calls of a reply that may run, or why none may.

    If tools are called natively, a reply counts as a call only if it is a single call of a read-only tool and nothing else. If
    they are called in text, calls of read-only tools count anywhere in the reply; other calls only if the whole reply consists
    of blocks of the taught form.

    Args:
        text: the reply, without blocks of thinking and of rationale.
        specs: the tools that are offered, by name.
        in_text: whether the prompt told the model to call in text.
        strict: whether broken JSON and names that are nearly a tool's are left alone.
    """
    written = list(text_calls(text)) if specs and len(text) <= MAX_CHARACTERS else []
    tools = [None if strict and call.broken else meant_tool(call.name, specs, exact=strict) for call in written]
    calls = [(call, tool) for call, tool in zip(written, tools, strict=True) if tool or (in_text and call.taught)]
    rest = _without(text, [call for call, _ in calls])
    if not calls:
        return Found((), text, _unmade(text, written, specs, in_text=in_text))
    only_reads = all(not tool or specs[tool].read_only or specs[tool].kind == "meta" for _, tool in calls)
    if in_text:
        taught = all(call.taught and folded(call.name) == folded(tool or "") for call, tool in calls)
        may_run = only_reads or (taught and not _FENCES.sub("", rest))
    else:
        may_run = only_reads and len(calls) == 1 and not unwrapped(rest)
    if not may_run:
        return Found((), text, (ALONE if in_text else AS_TOOL_CALL).format(calls[0][1]))
    return Found(tuple(call for call, _ in calls), _EMPTY.sub("", rest).strip() if unwrapped(rest) else "")


def text_calls(text: str) -> Iterator[TextCall]:
    """Yield everything that looks like a call, in order; a list has to consist of calls."""
    for block in json_blocks(text):
        items = block.value if isinstance(block.value, list) else [block.value]
        calls = [call for item in items if isinstance(item, dict) and (call := _call(item, block, text))]
        yield from calls if len(calls) == len(items) else ()


def _without(text: str, calls: list[TextCall]) -> str:
    ends, starts = [0, *(call.end for call in calls)], [*(call.start for call in calls), len(text)]
    return "".join(text[end:start] for end, start in zip(ends, starts, strict=True))


def _unmade(text: str, written: list[TextCall], specs: Mapping[str, ToolSpec], *, in_text: bool) -> str | None:
    """Return the problem of a reply that consists of a call which cannot be made; None for an answer."""
    if written and did_you_mean(written[0].name, specs) and not unwrapped(_without(text, written)):
        return BROKEN.format(unknown_tool(written[0].name, specs))
    for block in json_blocks(text):
        begun = _BEGUN.match(text, block.start) if block.problem else None
        is_near = begun and folded(begun[1]) in NAMES and did_you_mean(begun[2], specs)
        if begun and ((in_text and begun[1] == "tool") or (is_near and not unwrapped(text[: block.start]))):
            return BROKEN.format(f"{block.problem}.")
    return None


def _call(value: dict[str, Any], block: JsonBlock, text: str) -> TextCall | None:
    """Return the call that an object describes: a name, arguments, and nothing else of meaning to the tool."""
    if isinstance(value.get("function"), dict):
        value = {**{key: item for key, item in value.items() if key != "function"}, **value["function"]}
    names = [key for key in value if folded(key) in NAMES and isinstance(value[key], str)]
    fields = [key for key in value if folded(key) in ARGUMENTS and isinstance(value[key], (dict, str))]
    others = value.keys() - {*names, *fields, "id", "type"}
    if len(names) != 1 or len(fields) != 1 or any(folded(key) not in NOTES for key in others):
        return None
    name, arguments, reason = value[names[0]], value[fields[0]], parse_rationale(value.get("rationale"))
    is_taught = isinstance(block.value, dict) and block.value.keys() <= {"tool", "arguments", "rationale"}
    taught = block.strict and is_taught and isinstance(arguments, dict)
    written = None if block.strict else text[block.start : block.end]
    return TextCall(block.start, block.end, name, arguments, reason, taught, written)
