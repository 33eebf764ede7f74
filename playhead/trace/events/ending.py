"""The answer, and the account of how it came about."""

from __future__ import annotations

from typing import Literal

from playhead.trace.events.base import EventBase
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


class DebriefCompleted(EventBase):
    """The account of the run's decisions was made."""

    kind: Literal["debrief-completed"] = "debrief-completed"
    debrief: JsonValue
    """The debrief."""
