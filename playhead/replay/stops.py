"""Agents that their caller stopped, in a replay: each stops where it was stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.kernel.lifecycle.steering import STOP

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.trace.recording import Recording


def recorded_stops(recording: Recording) -> RecordedStops | None:
    """Return what stops the agents again; None when none was stopped. A pause is time, and a replay has none."""
    stops = {
        (owner.owner, fact.key): str(fact.value)
        for owner in recording.owners.values()
        for fact in owner.facts
        if fact.name == STOP
    }
    return RecordedStops(stops) if stops else None


class RecordedStops:
    """In place of whoever held the handle."""

    def __init__(self, stops: dict[tuple[str, str], str]) -> None:
        self._stops = stops

    def attach(self, session: Session) -> None:
        """Nothing ends the run from outside."""

    async def reached(self, session: Session) -> None:
        """Nothing pauses it."""

    def stops(self, session: Session, before: str) -> str | None:
        """Return why it was stopped before this turn or request, if it was."""
        return self._stops.get((session.owner, before))

    def begins(self, state: KernelState, session: Session) -> None:
        """Nobody hears of it."""
