"""How a tool call ended, before it is recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from playhead.trace.events import ErrorInfo
from playhead.trace.values import JsonValue, scrub

if TYPE_CHECKING:
    from playhead.trace.events.tools import CallEnd, Rung


@dataclass(slots=True)
class Outcome:
    """How a call ended."""

    ok: bool
    result: JsonValue = None
    error: ErrorInfo | None = None
    cached: bool = False
    abandoned: bool = False
    ended: CallEnd | None = None
    rung: Rung | None = None
    """In a replay, how the result was obtained."""
    stack: str | None = None
    """The stack trace of the body's exception."""

    @staticmethod
    def failure(kind: str, message: str, stack: str | None = None) -> Outcome:
        """Return the outcome of a call that has no result."""
        return Outcome(ok=False, error=ErrorInfo(type=kind, message=scrub(message)), stack=stack)

    @staticmethod
    def refusal(kind: str, message: str) -> Outcome:
        """Return the outcome of a call whose body the kernel did not run."""
        return replace(Outcome.failure(kind, message), ended="refused")
