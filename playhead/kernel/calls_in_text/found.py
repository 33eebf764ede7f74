"""What the readers of each form find in a text."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.healing.json_reading import is_strict

if TYPE_CHECKING:
    from playhead.trace.types import Rationale

LONGEST: Final = 2000
"""Characters that are kept of the text of a call."""


@dataclass(frozen=True, slots=True)
class Found:
    """Something in the text that has the form of one call, or of several."""

    start: int
    """Where it begins."""
    end: int
    """Where it ends."""
    calls: tuple[Written, ...]
    """The calls, in order."""
    explicit: bool = False
    """Whether it stands in a form that is used for calls only, such as `<tool_call>`."""
    step: bool = False
    """Whether it is the `Action` of a step in the form of ReAct."""


@dataclass(frozen=True, slots=True)
class Written:
    """A call as it was written."""

    name: str | None
    """The tool's name; None when only arguments were written."""
    arguments: Any
    """The arguments: an object, text, or whatever stood there."""
    rationale: Rationale | None = None
    """The reason that stands in the call."""
    written: str | None = None
    """The text in which it stands, where that is broken JSON."""
    sure: bool = True
    """Whether it names its arguments as such; else every other field was taken for one, and has to fit."""
    in_order: bool = False
    """Whether the arguments are a tuple of values without names, in the order of the parameters."""
    beside: dict[str, Any] = field(default_factory=dict)
    """What stands beside the name and the arguments, and may be meant as an argument."""


def as_mended(calls: tuple[Written, ...], text: str, start: int, end: int) -> tuple[Written, ...]:
    """Return calls with the text that they were read from, where that is no JSON as it stands."""
    if is_strict(text, start):
        return calls
    return tuple(replace(call, written=text[start:end][:LONGEST]) for call in calls)
