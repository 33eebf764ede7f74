"""Killswitches of a resumed run: what the dead run spent, called and failed counts, and from there on they guard.

Times do not count on: a run that lay dead for a day has not lasted a day. They begin anew.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from playhead.kernel.session import Guard
from playhead.trace.events import (
    ApprovalRequested,
    BudgetReserved,
    KillswitchFired,
    LlmFailed,
    LlmResponded,
    ToolCallCompleted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from playhead.kernel.hooks import Refuse, Stop, Terminate, Wait
    from playhead.kernel.session import Session
    from playhead.kernel.state import PlannedCall
    from playhead.replay.resume_world import ResumeWorld
    from playhead.trace.events import EventBase
    from playhead.trace.recording import OwnerRecording
    from playhead.trace.types import Request, ToolSpec


class CatchUpGate(Guard):
    """Keeps what is new waiting until the run has caught up: no killswitch may decide on half of what was spent."""

    name = "catch-up"

    def __init__(self, session: Session, world: ResumeWorld) -> None:
        super().__init__(session)
        self._world = world

    async def measure(self, session: Session, request: Request) -> None:
        """Wait before a request that has no recorded answer."""
        if not self._world.is_answered(session.owner, request.number, request.attempt):
            await self._world.go_live(session.owner)

    async def before_call(self, session: Session, planned: PlannedCall) -> None:
        """Wait before a call that is not recorded."""
        if not self._world.was_started(session.owner, planned.call.id):
            await self._world.go_live(session.owner)


class ResumedGuard(Guard):
    """Stands for a killswitch: it hears what is served, and is asked about what is new."""

    def __init__(self, guard: Guard, world: ResumeWorld) -> None:
        super().__init__(guard.session)
        self._guard = guard
        self._world = world
        self.name = guard.name
        self.approver = guard.approver
        self.approval_timeout_s = guard.approval_timeout_s

    @property
    def inner(self) -> Guard:
        """Return the killswitch itself."""
        return self._guard.inner

    def start(self) -> None:
        """Begin to look."""
        self._guard.start()

    def stop(self) -> None:
        """Look no more."""
        self._guard.stop()

    def look(self) -> bool:
        """Look, as the killswitch does."""
        return self._guard.look()

    async def measure(self, session: Session, request: Request) -> None:
        """Measure what is to be sent; when it was sent before and not answered, that may have been billed."""
        if self._is_served(session, request):
            return
        lost = self._world.set_aside(session.owner, request.number, request.attempt)
        if lost is not None:
            self._guard.recall(session, lost, lost)
        await self._guard.measure(session, request)

    def admit_request(self, session: Session, request: Request) -> Request | Stop | Terminate | Wait:
        """Ask about what is to be sent."""
        return request if self._is_served(session, request) else self._guard.admit_request(session, request)

    def withdraw_request(self, session: Session, request: Request) -> None:
        """Take it back."""
        self._guard.withdraw_request(session, request)

    def admitted(self, session: Session, request: Request) -> tuple[EventBase, ...]:
        """Return what is to be recorded of it."""
        return () if self._is_served(session, request) else self._guard.admitted(session, request)

    async def before_call(self, session: Session, planned: PlannedCall) -> None:
        """Let what is to run wait."""
        if not self._has_ended(session, planned):
            await self._guard.before_call(session, planned)

    def admit_call(self, session: Session, planned: PlannedCall, spec: ToolSpec) -> Stop | Terminate | Refuse | None:
        """Ask about what is to run."""
        return None if self._has_ended(session, planned) else self._guard.admit_call(session, planned, spec)

    def wants_approval(self, session: Session, planned: PlannedCall, spec: ToolSpec) -> bool:
        """Ask whether somebody has to allow it."""
        return not self._has_ended(session, planned) and self._guard.wants_approval(session, planned, spec)

    def denied(self, session: Session, planned: PlannedCall, why: str) -> Stop | Terminate | None:
        """Ask whether a no ends the agent."""
        return None if self._has_ended(session, planned) else self._guard.denied(session, planned, why)

    def heard(self, session: Session, event: EventBase) -> Stop | Terminate | None:
        """Hear how something ended. What was served only counts, unless the recording ends with it: then it may fire."""
        if not self._world.was_recorded(session.owner, event):
            return self._guard.heard(session, event)
        answer = self._guard.recall(session, event, self._world.reserved(session.owner, event))
        return answer if self._world.follower.caught_up else None

    def _is_served(self, session: Session, request: Request) -> bool:
        return self._world.is_answered(session.owner, request.number, request.attempt)

    def _has_ended(self, session: Session, planned: PlannedCall) -> bool:
        return self._world.has_ended(session.owner, planned.call.id)


def without_open_calls(owner: OwnerRecording) -> OwnerRecording:
    """Return what was recorded of an agent without what switches did at calls that have no answer: they are asked again."""
    ended = {call_id for call_id, call in owner.calls.items() if call.completed is not None}

    def kept(event: EventBase) -> bool:
        if isinstance(event, ApprovalRequested) or (isinstance(event, KillswitchFired) and event.call_id):
            return event.call_id in ended
        return True

    return replace(owner, records=[record for record in owner.records if kept(record.event)])


def reserved_for(owner: OwnerRecording) -> Callable[[EventBase], BudgetReserved | None]:
    """Return a function that finds what a budget had set aside for the request that an event answers."""
    found: dict[tuple[int, int], BudgetReserved] = {}
    for record in owner.records:
        event = record.event
        if isinstance(event, BudgetReserved):
            found.setdefault((event.request, event.attempt), event)

    def find(event: EventBase) -> BudgetReserved | None:
        if isinstance(event, (LlmFailed, LlmResponded)):
            return found.get((event.request, event.attempt))
        return None

    return find


def recall_all(session: Session, owner: OwnerRecording, lost: Iterable[BudgetReserved]) -> None:
    """Let the killswitches count what the body of a call did, which does not run again: what was open may have happened."""
    reserved = reserved_for(owner)
    events: list[EventBase] = [
        record.event
        for record in owner.records
        if isinstance(record.event, (LlmFailed, LlmResponded, ToolCallCompleted))
    ]
    for call in owner.calls.values():
        if call.completed is None:
            started = call.started
            events.append(
                ToolCallCompleted(
                    call_id=started.call_id, tool=started.tool, position=started.position, ok=False, ended="cancelled"
                )
            )
    for guard in session.gate.guards:
        if isinstance(guard, ResumedGuard):
            for event in events:
                guard.inner.recall(session, event, reserved(event))
            for each in lost:
                guard.inner.recall(session, each, each)
