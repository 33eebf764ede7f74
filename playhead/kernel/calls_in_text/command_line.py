"""Calls written as commands of a shell: `send_parcel --weight 3 --insured`. Nothing is run, and nothing of a shell is in them."""

from __future__ import annotations

import re
import shlex
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

from playhead.kernel.calls_in_text.found import Found, Written
from playhead.kernel.calls_in_text.standing import segments
from playhead.kernel.healing.schema import properties

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.trace.types import ToolSpec

MAX_LINE: Final = 2000
"""Characters of such a command."""
_COMMAND: Final = re.compile(
    r"\s*(?:\$ )?(?P<name>[A-Za-z_][\w-]{0,100})(?P<rest>[ \t]+(?:--?[a-z]|[a-z]\w{0,60}=)[^\n]*)\s*", re.IGNORECASE
)
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
        if spec is not None and arguments is not None:
            yield Found(part.outer_start, part.outer_end, (Written(spec.name, arguments, sure=False),), explicit=True)


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
