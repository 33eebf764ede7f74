"""Agents that something ended from outside of their loop (a deadline, a file, another process), in a reproduction.

Such an end came at a moment, not at a place. Of the root there is nothing to compare from that moment on. An agent below
the root is ended again, when everything that was recorded of it has come out, because the one above it went on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from anyio import sleep_forever
from anyio.lowlevel import checkpoint

from playhead.kernel.guards import termination_of
from playhead.replay.guards import ending_of
from playhead.trace.events import KillswitchFired

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.kernel.session import Session
    from playhead.trace.recording import Recording

QUIET: Final = 25
"""Turns of the event loop in which nothing is asked, after which everything has gone as far as it went."""


class Interrupts:
    """Ends agents below the root as they were ended."""

    def __init__(self, recording: Recording) -> None:
        self.sessions: dict[str, Session] = {}
        """The agents that run, by owner."""
        self._events = {event.ends or "": event for event in _fired(recording) if _goes_on(recording, event.ends or "")}
        self._done: set[str] = set()
        self.asked = 0
        """Questions that the recording has answered."""

    async def reached(self, owner: str) -> None:
        """End the agent that an owner belongs to, and wait for that; return at once when nothing ended it so."""
        name = next((each for each in self._events if f"{owner}/".startswith(f"{each}/")), None)
        if name is None:
            return
        session = self.sessions[name]
        await self._quiet()
        if name not in self._done:
            self._done.add(name)
            event = self._events[name]
            session.interrupt(termination_of(event.switch, ending_of(event)), event)
        await sleep_forever()

    async def _quiet(self) -> None:
        """Let what runs beside it go as far as it goes."""
        quiet, seen = 0, -1
        while quiet < QUIET:
            await checkpoint()
            quiet, seen = (quiet + 1, seen) if self.asked == seen else (0, self.asked)


def ended_from_outside(recording: Recording) -> set[str]:
    """Return the agents whose end cannot be made again: the root, and agents that the recording holds no end of."""
    ended = {event.ends or "" for event in _fired(recording) if not _goes_on(recording, event.ends or "")}
    if recording.ending is not None and recording.ending.terminated_by == "cancelled":
        ended.add(recording.root.owner)
    return ended


def _fired(recording: Recording) -> Iterator[KillswitchFired]:
    for record in recording.records:
        event = record.event
        if isinstance(event, KillswitchFired) and event.at == "outside":
            yield event if event.ends else event.model_copy(update={"ends": record.owner})


def _goes_on(recording: Recording, owner: str) -> bool:
    """Return whether an agent above this one went on."""
    recorded = recording.owners.get(owner)
    return owner != recording.root.owner and recorded is not None and recorded.completed is not None
