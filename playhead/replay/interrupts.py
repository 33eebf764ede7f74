"""Agents that were ended while something else went on beside what ended them, in a reproduction.

Such an end came at a moment, and what went on beside it had got as far as it had. So an end waits here until everything
has gone as far as it is recorded, and whatever would go further waits for the end.

Of the root that was ended from outside (by a deadline, a file, another process) there is nothing to compare from that
moment on. An agent below the root is ended again, because the one above it went on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from anyio import sleep_forever
from anyio.lowlevel import checkpoint

from playhead.kernel.guards import termination_of
from playhead.kernel.session import Guard
from playhead.replay.guards import ending_of
from playhead.replay.recorded import outermost_scope, scope_of
from playhead.trace.events import (
    AgentCompleted,
    AgentStarted,
    KillswitchFired,
    LlmFailed,
    ToolCallCompleted,
    ToolCallStarted,
)
from playhead.trace.owners import is_within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from playhead.kernel.session import Session
    from playhead.kernel.state import PlannedCall
    from playhead.trace.events import EventBase
    from playhead.trace.line import Record
    from playhead.trace.recording import OwnerRecording, Recording
    from playhead.trace.types import Request

QUIET: Final = 40
"""Turns of the event loop in which nothing is asked, after which everything has gone as far as it went."""


class Interrupts:
    """Ends agents below the root as they were ended."""

    def __init__(self, recording: Recording) -> None:
        self.sessions: dict[str, Session] = {}
        """The agents that run, by owner."""
        self._events = {event.ends or "": event for event in _fired(recording) if _goes_on(recording, event.ends or "")}
        self._done: set[str] = set()
        self._after = _after_one_above(recording, self._events)
        self._order = _fired_at(recording)
        """Where switches fired at ports, in the order in which they did."""
        self.asked = 0
        """Questions that the recording has answered."""

    async def reached(self, owner: str) -> None:
        """End the agent that an owner belongs to, and wait for that; return at once when nothing ended it so."""
        name = next((each for each in self._events if is_within(owner, each)), None)
        if name is None:
            return
        session = self.sessions[name]
        await self.quiet()
        if name not in self._done:
            self._done.add(name)
            event = self._events[name]
            session.interrupt(termination_of(event.switch, ending_of(event)), event)
        await sleep_forever()

    def follow(self, record: Record) -> None:
        """End the agents that were ended from outside in the moment after one above them had ended at a port."""
        for name in self._after.pop((record.owner, record.event), ()):
            if name in self.sessions and name not in self._done:
                self._done.add(name)
                event = self._events[name]
                self.sessions[name].interrupt(termination_of(event.switch, ending_of(event)), event)

    async def quiet(self, turns: int = QUIET, until: Callable[[], bool] = lambda: False) -> None:
        """Let what runs beside go as far as it goes."""
        quiet, seen = 0, -1
        while quiet < turns and not until():
            await checkpoint()
            quiet, seen = (quiet + 1, seen) if self.asked == seen else (0, self.asked)

    async def until_ended(self, session: Session) -> None:
        """Wait until a switch has ended an agent: longer than the switches do. If none fires, it was not for them."""
        if self._order:
            await self.quiet(20 * QUIET, lambda: session.ended)

    def gate(self, session: Session, recorded: OwnerRecording) -> tuple[Guard, ...]:
        """Return what keeps an agent from going further than it is recorded, in a run that a switch has ended."""
        return (_Gate(session, recorded, self),) if self._order or self._events else ()

    async def fires(self, place: Place) -> bool:
        """Wait, where a switch fired, until all that came before it has come; False where none did."""
        if place not in self._order:
            return False
        for _ in range(len(self._order)):
            await self.quiet()
            if place == self._order[0]:
                break
        self._order = [each for each in self._order if each != place]
        return True


class _Gate(Guard):
    """Waits where a switch fired, until all else has come so far; and where the recording ends, until a switch has."""

    name = "gate"

    def __init__(self, session: Session, recorded: OwnerRecording, interrupts: Interrupts) -> None:
        super().__init__(session)
        self._interrupts = interrupts
        self._known: set[object] = {(each.requested.request, each.requested.attempt) for each in recorded.exchanges}
        self._known |= {call.started.call_id for call in recorded.calls.values()}

    async def measure(self, session: Session, request: Request) -> None:
        """Wait before a request."""
        await self._wait(session, (request.number, request.attempt), "request")

    async def before_call(self, session: Session, planned: PlannedCall) -> None:
        """Wait before a call."""
        await self._wait(session, planned.call.id, "call")

    async def _wait(self, session: Session, what: object, at: str) -> None:
        fired = await self._interrupts.fires((session.owner, what, at))
        if not fired and what not in self._known:
            await self._interrupts.reached(session.owner)
            await self._interrupts.until_ended(session)


Place = tuple[str, object, str]
"""An agent, its request and attempt or its call, and when: `request`, `response`, `call`, `approval` or `result`."""


def _fired_at(recording: Recording) -> list[Place]:
    """Return where switches fired at ports, in order; one inside a tool's body at the call, for bodies do not run."""
    calls = {
        scope_of(owner.owner, call): (owner.owner, call.started.call_id, "result")
        for owner in recording.owners.values()
        for call in owner.calls.values()
    }
    found: list[Place] = []
    for record in recording.records:
        event = record.event
        if isinstance(event, KillswitchFired) and event.at not in ("outside", "phase"):
            scope = outermost_scope(record.owner, recording.owners) or ""
            what = event.call_id or (event.request, event.attempt)
            found.append(calls.get(scope) or (record.owner, what, event.at))
    return found


def raced(recording: Recording) -> dict[str, int]:
    """Return the agents whose last moments are timing, each with the `seq` up to which it is compared."""
    return {**_cancelled_after_the_end(recording), **_ended_beside(recording)}


def _cancelled_after_the_end(recording: Recording) -> dict[str, int]:
    """Return the agents that a switch at a port had ended when something outside, too late to be the cause, cancelled them.

    Nothing tells of that but that things were cancelled.
    """
    ends: dict[str, int] = {}
    found: dict[str, int] = {}
    for record in recording.records:
        match record.event:
            case KillswitchFired() as event if event.at != "outside":
                ends.setdefault(event.ends or record.owner, record.seq)
            case ToolCallCompleted(ended="cancelled") | LlmFailed(cancelled=True):
                above = [seq for owner, seq in ends.items() if is_within(record.owner, owner)]
                if above:
                    found.setdefault(record.owner, min(above))
    return found


def _ended_beside(recording: Recording) -> dict[str, int]:
    """Return the agents that a switch ended which fired beside them, each with the `seq` at which it did.

    What they still got to before they noticed is timing, and so is the turn in which they did.
    """
    found: dict[str, int] = {}
    ends: dict[str, int] = {}
    running: dict[str, set[str]] = {recording.root.owner: set()}
    for record in recording.records:
        event = record.event
        match event:
            case AgentStarted():
                running[record.owner] = set()
                late = [seq for owner, seq in ends.items() if is_within(record.owner, owner)]
                if late:
                    found[record.owner] = min(late)
            case AgentCompleted():
                running.pop(record.owner, None)
            case ToolCallStarted():
                running.setdefault(record.owner, set()).add(event.call_id)
            case ToolCallCompleted():
                running.setdefault(record.owner, set()).discard(event.call_id)
            case KillswitchFired():
                ended = event.ends or record.owner
                ends.setdefault(ended, record.seq)
                below = {owner: calls for owner, calls in running.items() if is_within(owner, ended)}
                if event.at == "outside":
                    found |= {owner: record.seq - 1 for owner in below if owner not in found}
                elif any(len(calls) > 1 for calls in below.values()):
                    beside = {owner for owner, calls in below.items() if owner != record.owner or len(calls) > 1}
                    found |= {owner: record.seq for owner in beside if owner not in found}
    return found


def ended_from_outside(recording: Recording) -> set[str]:
    """Return the agents whose end cannot be made again: the root, and agents that the recording holds no end of."""
    ended = {event.ends or "" for event in _fired(recording) if not _goes_on(recording, event.ends or "")}
    if recording.ending is not None and recording.ending.terminated_by == "cancelled":
        ended.add(recording.root.owner)
    return ended


def _after_one_above(
    recording: Recording, outside: Mapping[str, KillswitchFired]
) -> dict[tuple[str, EventBase], list[str]]:
    """Return, by who fired and what, the agents below that something outside ended before they had noticed that."""
    ended: dict[str, tuple[str, EventBase]] = {}
    found: dict[tuple[str, EventBase], list[str]] = {}
    for record in recording.records:
        event = record.event
        if not isinstance(event, KillswitchFired):
            continue
        name = event.ends or record.owner
        above = next((fired for owner, fired in ended.items() if name.startswith(f"{owner}/")), None)
        if event.at != "outside":
            ended.setdefault(name, (record.owner, event))
        elif above is not None and name in outside:
            found.setdefault(above, []).append(name)
    return found


def _fired(recording: Recording) -> Iterator[KillswitchFired]:
    for record in recording.records:
        event = record.event
        if isinstance(event, KillswitchFired) and event.at == "outside":
            yield event if event.ends else event.model_copy(update={"ends": record.owner})


def _goes_on(recording: Recording, owner: str) -> bool:
    """Return whether an agent above this one went on."""
    recorded = recording.owners.get(owner)
    return owner != recording.root.owner and recorded is not None and recorded.completed is not None
