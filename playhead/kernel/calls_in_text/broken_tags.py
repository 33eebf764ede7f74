"""Calls in tags that are lost, swapped or left open, where the names say all that the tags should have said.

One reading for every dialect: whatever the tags are, what they part has to be the name of a tool, then by turns the name of a
parameter and a value, to the last tag and without anything left. Where a value could be a name, or a tag part of a value, it is
no call.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from playhead.kernel.calls_in_text.found import Found, Written
from playhead.kernel.healing.schema import properties, required
from playhead.kernel.healing.words import folded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.trace.types import ToolSpec

MAX_TEXT: Final = 50_000
"""Characters of a text that is looked at."""
MAX_PIECES: Final = 200
"""Names and values of one call."""
_TAG: Final = re.compile(
    r"<(?P<closing>/?)(?P<kind>[|\uff5c]?[A-Za-z_][\w-]{0,40}[|\uff5c]?)(?:\s{0,2}=\s{0,2}[\"']?(?P<label>[A-Za-z_][\w.-]{0,80})[\"']?|"
    r"\s{1,3}name\s{0,2}=\s{0,2}[\"']?(?P<named>[A-Za-z_][\w.-]{0,80})[\"']?)?\s{0,3}>"
)
_MARK: Final = re.compile(
    r"^[ \t]*(?P<closing>END_ARG)[ \t]*$|^[ \t]*(?P<kind>TOOL_NAME|BEGIN_ARG)[ \t]*:[ \t]*(?P<label>[A-Za-z_][\w.-]{0,80})[ \t]*$",
    re.MULTILINE,
)
"""Continue's tools in the system message."""
_KINDS: Final = frozenset(
    ("toolcall", "toolcalls", "functioncall", "functioncalls", "function", "functions", "invoke", "tool", "tooluse", "call", "name", "toolname",
     "parameter", "parameters", "param", "params", "arg", "args", "argument", "arguments", "argkey", "argvalue", "key", "value", "input",
     "beginarg", "endarg", "toolcallbegin", "toolcallend", "toolcallsbegin", "toolcallsend", "toolsep")
)  # fmt: skip
"""Tags of calls, folded, in any dialect."""
_FENCES: Final = re.compile(r"\A\s*```\w{0,20}[ \t]*\n|\n[ \t]*```\s*\Z")
_NAME_AND_KEY: Final = re.compile(r"([A-Za-z_][\w.-]{0,80})\s+([A-Za-z_][\w.-]{0,80})")
_LINE: Final = re.compile(
    r"[ \t]*(?P<name>[A-Za-z_][\w.-]{0,80}):[ \t]+(?:\"(?P<quoted>[^\"\\]+)\"|(?P<value>[^\s\"'|>&*!#{\[][^#]*?))[ \t]*"
)
"""A name and a value of which nothing else can be said than that it is this text."""
_ENTITY: Final = re.compile(r"&(?:lt|gt|amp|quot|apos|#\d{1,6});")


def broken_tag_calls(text: str, specs: Mapping[str, ToolSpec], *, cut_off: bool) -> Iterator[Found]:
    """Yield the one call that a text ends with, from its first tag, or from the tool's name that the text begins with."""
    if cut_off or len(text) > MAX_TEXT:
        return
    form = _MARK if "TOOL_NAME" in text else _TAG
    marks = list(form.finditer(text))[: MAX_PIECES + 1]
    if not marks or len(marks) > MAX_PIECES or _FENCES.sub("", text[marks[-1].end() :]).strip():
        return
    leading = _FENCES.sub("", text[: marks[0].start()]).strip()
    pieces = _pieces(text, marks, leading if leading in specs else "", specs)
    call = None if pieces is None else _call(pieces, specs)
    if call is not None:
        yield Found(0 if leading in specs or not leading else marks[0].start(), len(text), (call,), explicit=True)


def _pieces(text: str, marks: list[re.Match[str]], leading: str, specs: Mapping[str, ToolSpec]) -> list[str] | None:
    """Return the names and values between the tags; None where one is no tag of a call, or the last one closes nothing."""
    if not marks[-1]["closing"]:
        return None
    found = [leading] if leading else []
    for place, mark in enumerate(marks):
        kind, label = mark["kind"] or "", mark["label"] or mark.groupdict().get("named")
        if folded(kind) not in _KINDS and kind and not _is_named(kind, specs):
            return None
        if label:
            found.append(label)
        elif kind and not mark["closing"] and _is_named(kind, specs):
            found.append(kind)
        if place + 1 < len(marks):
            found.append(text[mark.end() : marks[place + 1].start()])
    return [piece for piece in found if piece.strip()]


def _is_named(kind: str, specs: Mapping[str, ToolSpec]) -> bool:
    """Return whether a tag is named like a tool, or like a parameter of one."""
    return kind in specs or any(kind in properties(spec.parameters) for spec in specs.values())


def _call(pieces: list[str], specs: Mapping[str, ToolSpec]) -> Written | None:
    """Return the call that the pieces are: a tool, then names and values by turns, and nothing of it in doubt."""
    pieces = _apart(_with_lines(pieces, specs), specs)
    first = pieces[0].strip() if pieces else ""
    both = _NAME_AND_KEY.fullmatch(first)
    if first not in specs and both is not None and both[1] in specs:
        pieces = [both[1], both[2], *pieces[1:]]
        first = both[1]
    if first not in specs or len(pieces) % 2 == 0 or len(pieces) < 3:  # noqa: PLR2004 - a tool, a name, a value
        return None
    known = properties(specs[first].parameters)
    names, values = [piece.strip() for piece in pieces[1::2]], [_bare(piece) for piece in pieces[2::2]]
    if (
        len({*names}) != len(names)
        or not known.keys() >= {*names}
        or not {*required(specs[first].parameters)} <= {*names}
    ):
        return None
    if any(value.strip() in known or value.strip() in specs or _is_unclear(value) for value in values):
        return None
    return Written(first, dict(zip(names, values, strict=True)))


def _apart(pieces: list[str], specs: Mapping[str, ToolSpec]) -> list[str]:
    """Return the pieces with a tool's name and the first parameter's apart, where the tag between them is missing."""
    first = pieces[0].strip() if pieces else ""
    both = [
        (tool, name)
        for tool in specs
        if first.startswith(tool)
        for name in properties(specs[tool].parameters)
        if first == tool + name
    ]
    return [*both[0], *pieces[1:]] if len(both) == 1 and first not in specs else pieces


def _with_lines(pieces: list[str], specs: Mapping[str, ToolSpec]) -> list[str]:
    """Return the pieces, with names and values apart that stand as `name: value` in lines behind the tool's name."""
    lines = [line for piece in pieces for line in piece.strip().splitlines()] if len(pieces) <= 2 else []  # noqa: PLR2004 - name, lines
    spec = specs.get(lines[0].strip()) if lines else None
    found = [_LINE.fullmatch(line) for line in lines[1:]]
    if spec is None or not found or not all(each and each["name"] in properties(spec.parameters) for each in found):
        return pieces
    return [
        spec.name,
        *(part for each in found if each for part in (each["name"], each["quoted"] or each["value"] or "")),
    ]


def _is_unclear(value: str) -> bool:
    """Return whether a value may have held a tag, or an entity that stands for its character."""
    return "<" in value or ">" in value or _ENTITY.search(value) is not None


def _bare(piece: str) -> str:
    """Return a value without the line breaks of its tags."""
    return piece.removeprefix("\n").removesuffix("\n")
