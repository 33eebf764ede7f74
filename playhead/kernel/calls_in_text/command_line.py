"""Calls written as commands of a shell: `send_parcel --weight 3 --insured`. Nothing is run, and nothing of a shell is in them."""

from __future__ import annotations

import re
import shlex
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

from playhead.kernel.calls_in_text.found import Found, Written
from playhead.kernel.calls_in_text.standing import segments
from playhead.kernel.healing.schema import fits, properties, required
from playhead.kernel.healing.values import is_empty

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.trace.types import ToolSpec

MAX_LINE: Final = 2000
"""Characters of such a command."""
_COMMAND: Final = re.compile(
    r"\s*(?:\$ )?(?P<name>[A-Za-z_][\w-]{0,100})(?P<rest>[ \t]+(?:--?[a-z]|[a-z]\w{0,60}=)[^\n]*)\s*", re.IGNORECASE
)
_OF_ONE: Final = re.compile(r"\s*(?P<name>[A-Za-z_]\w{0,100})[ \t]+(?P<value>[A-Za-z0-9_./@-]{0,200}[A-Za-z0-9])\s*")
"""A tool's name and one value."""
_OF_SHELL: Final = re.compile(r"[$`|&;<>*?~\\#]|\$\(")
"""What a shell would read, or write elsewhere."""
_OPTION: Final = re.compile(r"--?([A-Za-z][\w-]{0,60})(?:=(.*))?|([A-Za-z]\w{0,60})=(.*)", re.DOTALL)
_SWITCHED: Final = re.compile(r"--?[A-Za-z].*|[A-Za-z]\w{0,60}=.*|--", re.DOTALL)
"""What cannot be the value of the option before it."""
MAX_STEPS: Final = 50
_STEP: Final = re.compile(
    r"^[ \t*#]{0,6}action(?:[ \t]?#?\d{1,3})?[ \t*]{0,4}:[ \t*`]{0,4}(?P<name>[A-Za-z_][\w-]{0,100})(?P<rest>[ \t]+(?:--?[a-z]|[a-z]\w{0,60}=)[^\n]*)"
    r"(?=\s*\Z|\s*\n[ \t*#]{0,6}observation\b)",
    re.IGNORECASE | re.MULTILINE,
)
"""A step with its input behind the tool's name."""


def commands(text: str, specs: Mapping[str, ToolSpec], *, cut_off: bool) -> Iterator[Found]:
    """Yield the one command that a fence, or the whole text, is; its options are all of the tool's parameters."""
    for part in segments(text):
        piece = text[part.start : part.end]
        is_whole = part.closed if part.fenced else (part.start, part.end) == (0, len(text)) and not cut_off
        found = _COMMAND.fullmatch(piece) if is_whole and len(piece) <= MAX_LINE else None
        spec = specs.get(found["name"].replace("-", "_")) if found else None
        arguments = _options(found["rest"], spec) if found is not None and spec is not None else None
        if spec is None and is_whole:
            spec, arguments = _of_one(piece, specs) or (None, None)
        if spec is not None and arguments is not None:
            yield Found(part.outer_start, part.outer_end, (Written(spec.name, arguments, sure=False),), explicit=True)


def is_command_of_one(text: str, specs: Mapping[str, ToolSpec]) -> bool:
    """Return whether a text is a tool's name and the one value that it has to get."""
    return _of_one(text, specs) is not None


def _of_one(text: str, specs: Mapping[str, ToolSpec]) -> tuple[ToolSpec, dict[str, object]] | None:
    """Return the tool and its arguments; None where the value may be a word about the tool: it has to have a digit or a path's sign."""
    found = _OF_ONE.fullmatch(text) if len(text) <= MAX_LINE else None
    spec = specs.get(found["name"]) if found is not None else None
    if found is None or spec is None or not any(mark.isdigit() or mark in "/@" for mark in found["value"]):
        return None
    needed, known = required(spec.parameters), properties(spec.parameters)
    is_one = len(needed) == 1 and known.get(needed[0], {}).get("type") == "string"
    is_one = is_one and found["value"][:1] != "-" and not is_empty(found["value"])
    arguments: dict[str, object] = {needed[0]: found["value"]} if is_one else {}
    return (spec, arguments) if is_one and fits(spec.parameters, arguments, spec.parameters) else None


def stepped_commands(text: str, specs: Mapping[str, ToolSpec], *, cut_off: bool) -> Iterator[Found]:
    """Yield the steps of ReAct that have options right behind the tool's name."""
    for step in islice(() if cut_off else _STEP.finditer(text), MAX_STEPS):
        spec = specs.get(step["name"])
        arguments = (
            _options(step["rest"].rstrip("` "), spec) if spec is not None and len(step["rest"]) <= MAX_LINE else None
        )
        if spec is not None and arguments is not None:
            yield Found(
                step.start(), step.end(), (Written(spec.name, arguments, sure=False),), explicit=True, step=True
            )


def _options(written: str, spec: ToolSpec) -> dict[str, object] | None:
    """Return the values by name; None where one is no option of the tool's, stands twice, or a shell would read it."""
    try:
        parts = [] if _OF_SHELL.search(written) else shlex.split(written)
    except ValueError:
        return None
    found: dict[str, object] = {}
    used = -1
    for place, (part, after) in enumerate(pairwise([*parts, "--"])):
        option = _OPTION.fullmatch(part)
        if place == used and _SWITCHED.fullmatch(part) is None:
            continue
        name = (option[1] or option[3]).replace("-", "_") if option else ""
        held = (option[2] if option[1] else option[4]) if option else None
        if option is None or name not in properties(spec.parameters) or name in found:
            return None
        is_switch = held is None and _SWITCHED.fullmatch(after) is not None
        used = -1 if is_switch or held is not None else place + 1
        found[name] = True if is_switch else after if held is None else held
    return found or None
