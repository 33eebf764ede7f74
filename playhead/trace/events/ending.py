"""The answer, and the account of how it came about."""

from __future__ import annotations

from typing import ClassVar, Literal

from playhead.trace.events.base import EventBase
from playhead.trace.frozen import Integer, Value
from playhead.trace.values import JsonValue


class FinalAnswer(EventBase):
    """The agent's answer, as it leaves."""

    kind: Literal["final-answer"] = "final-answer"
    output: JsonValue = None
    """The answer."""
    format: str = "text"
    """`text`, `json`, `markdown`, `csv` or `html`."""
    summary: str | None = None
    """The model's summary of what it did."""
    confidence: Literal["high", "medium", "low"] | None = None
    """The model's confidence."""


class ErasedLine(Value):
    """A line of which something was erased."""

    seq: Integer
    """The event."""
    previous: str
    """Hash of the line before it, which nothing but this ties to the lines after it; empty for the first."""


class Erased(EventBase):
    """Content was erased on request, after the run: the only kind that may stand behind `run-completed`."""

    incidental: ClassVar = True
    kind: Literal["erased"] = "erased"
    lines: tuple[ErasedLine, ...]
    """The lines that are no longer what was written; each says `"erased":true` and keeps its `h`."""
    reason: str | None = None
    """Why, in the words of whoever asked for it."""


class DebriefCompleted(EventBase):
    """The account of the run's decisions was made: of the other events, with their times."""

    incidental: ClassVar = True
    kind: Literal["debrief-completed"] = "debrief-completed"
    debrief: JsonValue
    """The debrief."""
