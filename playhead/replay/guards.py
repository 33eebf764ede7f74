"""Repeats what killswitches did in a recorded run, at the same places and without their code.

What fired at a port fires there again. What came from outside (a deadline, a file, another process), or ended calls that
ran beside each other, is a race that no reproduction repeats: `Races` says how far such agents are compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from playhead.compose.killswitches.output_cap import with_output_cap
from playhead.kernel.guards import Place, termination_of
from playhead.kernel.hooks import Refuse, Stop, Terminate
from playhead.kernel.lifecycle.steering import STOP
from playhead.kernel.session import Guard
from playhead.replay.calls import inside_bodies, scope_of
from playhead.trace.events import (
    ApprovalRequested,
    BudgetReserved,
    ErrorInfo,
    KillswitchFired,
    LlmFailed,
    LlmRequested,
    LlmResponded,
    MessageAdded,
    ToolCallCompleted,
    ToolCallStarted,
)
from playhead.trace.owners import is_within, lineage, parent_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState, PlannedCall
    from playhead.trace.events import EventBase
    from playhead.trace.recording import OwnerRecording, Recording
    from playhead.trace.types import Request, ToolSpec


def recorded_guards(
    session: Session, owner: OwnerRecording, fired_inside: Mapping[str, Sequence[KillswitchFired]]
) -> tuple[Guard, ...]:
    """Return the guards that repeat the killswitches of an agent, and of those above it, at this agent's ports.

    `fired_inside` are the switches that fired in what is served as a whole, by its scope.
    """
    fired: dict[tuple[str, str], list[KillswitchFired]] = defaultdict(list)
    approvals: dict[str | None, Counter[str]] = defaultdict(Counter)
    ports = RecordedPorts(session, owner, fired_inside)
    for record in owner.records:
        match record.event:
            case KillswitchFired(at="request" | "response" | "call" | "approval" | "result") as event:
                fired[event.switch, event.ends or owner.owner].append(event)
            case ApprovalRequested() as event:
                approvals[event.switch][event.call_id] += 1
    guards: list[Guard] = [ports] if ports.needed else []
    by_tools = frozenset(approvals.pop(None, ()))
    known = {call_id for call_id, call in owner.calls.items() if call.completed is not None}
    known |= {call_id for calls in approvals.values() for call_id in calls} | by_tools
    for switch, ends in [*fired, *((switch, owner.owner) for switch in approvals if switch)]:
        endings, times = fired.pop((switch, ends), []), approvals.pop(switch, Counter())
        for stacked in range(max(times.values(), default=1)):  # as often as the switch is known to be stacked
            calls = {call for call, count in times.items() if count > stacked}
            guard = RecordedGuard(_above(session, ends), switch, endings, calls)
            guard.asked_by_tools = {call: call in by_tools for call in known}
            guards.append(guard)
    return tuple(guards)


class RecordedPorts(Guard):
    """Repeats what happened at an agent's ports without a switch that fired there: caps, refusals, and ends inside bodies."""

    name = "recorded"

    def __init__(
        self, session: Session, owner: OwnerRecording, fired_inside: Mapping[str, Sequence[KillswitchFired]]
    ) -> None:
        super().__init__(session)
        self._reserved: dict[tuple[int, int], list[BudgetReserved]] = defaultdict(list)
        self._refused: dict[str, str] = {}
        self._ended_by = {
            call_id: fired
            for call_id, call in (owner.calls.items() if fired_inside else ())
            if (fired := fired_inside.get(scope_of(owner.owner, call)))
        }
        for record in owner.records:
            match record.event:
                case BudgetReserved() as event:
                    self._reserved[event.request, event.attempt].append(event)
                case ToolCallCompleted(ended="refused", error=ErrorInfo(type="Refused", message=why)) as event:
                    self._refused[event.call_id] = why

    @property
    def needed(self) -> bool:
        """Whether anything has to be repeated."""
        return bool(self._reserved or self._refused or self._ended_by)

    def admit_request(self, session: Session, request: Request) -> Request:  # noqa: ARG002
        """Lower the output cap as the recorded budgets did."""
        for event in self._reserved[request.number, request.attempt]:
            if event.output_cap is not None:
                request = with_output_cap(request, event.output_cap)
        return request

    def admitted(self, session: Session, request: Request) -> tuple[EventBase, ...]:  # noqa: ARG002
        """Return the recorded reservations."""
        return tuple(self._reserved[request.number, request.attempt])

    def admit_call(self, session: Session, planned: PlannedCall, spec: ToolSpec) -> Refuse | None:  # noqa: ARG002
        """Refuse the call if it was refused in the recorded run."""
        why = self._refused.get(planned.call.id)
        return None if why is None else Refuse(why)

    def heard(self, session: Session, event: EventBase) -> None:
        """End the agents that a switch ended inside this call; the recording has the event there, so none is written here."""
        if isinstance(event, ToolCallCompleted):
            for each in self._ended_by.get(event.call_id, ()):
                if each.ends and is_within(session.owner, each.ends):
                    _above(session, each.ends).ending.end(termination_of(each.switch, ending_of(each)))


class RecordedGuard(Guard):
    """A killswitch that fires where it fired, and requires the approvals that it required."""

    def __init__(self, ends: Session, name: str, fired: list[KillswitchFired], asked: set[str]) -> None:
        super().__init__(ends)
        self.name = name
        self._fired: dict[tuple[str, int | None, int | None, str], KillswitchFired] = {
            (event.at, event.request, event.attempt, event.call_id): event for event in fired
        }
        self._asked = asked
        self.asked_by_tools: dict[str, bool] = {}
        """Whether the tool itself required approval, by call, where that is known."""

    def admit_request(self, session: Session, request: Request) -> Request | Stop | Terminate:  # noqa: ARG002
        """End the agent before this request if the switch did."""
        return self._again("request", request.number, request.attempt) or request

    def admit_call(self, session: Session, planned: PlannedCall, spec: ToolSpec) -> Stop | Terminate | None:  # noqa: ARG002
        """Stop where it stopped."""
        return self._again("call", call_id=planned.call.id)

    def wants_approval(self, session: Session, planned: PlannedCall, spec: ToolSpec) -> bool:  # noqa: ARG002
        """Return whether the switch required approval of this call."""
        return planned.call.id in self._asked

    def asked_by_tool(self, planned: PlannedCall) -> bool | None:
        """Return whether the tool itself required approval of this call."""
        return self.asked_by_tools.get(planned.call.id)

    def denied(self, session: Session, planned: PlannedCall, why: str) -> Stop | Terminate | None:  # noqa: ARG002
        """End the agent if that ended it."""
        return self._again("approval", call_id=planned.call.id)

    def heard(self, session: Session, event: EventBase) -> Stop | Terminate | None:  # noqa: ARG002
        """End the agent where it ended it."""
        if isinstance(event, (LlmFailed, LlmResponded)):
            return self._again("response", event.request, event.attempt)
        return self._again("result", call_id=event.call_id) if isinstance(event, ToolCallCompleted) else None

    def _again(
        self, at: Place, request: int | None = None, attempt: int | None = None, call_id: str = ""
    ) -> Stop | Terminate | None:
        event = self._fired.get((at, request, attempt, call_id))
        if event is None:
            return None
        return ending_of(event)


def ending_of(event: KillswitchFired) -> Stop | Terminate:
    """Return what a killswitch answered."""
    ending = Stop if event.on_trigger == "stop" else Terminate
    return ending(event.reason, event.switch, event.terminated_by or event.switch)


def _above(session: Session, owner: str) -> Session:
    """Return the session of this owner, which is this one or one above it."""
    found: Session | None = session
    while found is not None and found.owner != owner:
        found = found.parent
    return found or session


class Races:
    """Where killswitches ended agents at a moment: from outside, or while several of their calls ran.

    What such an agent still did before it noticed is timing. If the agent above it went on, a frozen run serves it as a
    whole, like the body of a tool. Otherwise it is compared up to the moment that the switch fired.
    """

    def __init__(self, recording: Recording) -> None:
        self.inside = inside_bodies(recording)
        """The owners that a frozen run does not enter, each with the outermost call that is served in its place."""
        self.until: dict[str, int] = {}
        """The agents that are compared in part, each with the last `seq` that is."""
        self.beside: set[str] = set()
        """The agents of which not all has to come again that came before the switch fired: their calls ran beside each other."""
        fired = _racing(recording) if recording.counts().get("killswitch-fired") else {}
        whole = {
            name for name, each in fired.items() if _was_answered(recording, name) and not _came_late(name, each, fired)
        }
        for owner in recording.owners if fired else ():
            scope = next((each for each in lineage(owner) if each in whole or each == self.inside.get(owner)), None)
            if scope is not None:
                self.inside[owner] = scope
            elif ends := [each for each in fired if is_within(owner, each)]:
                self.until[owner] = min(fired[each].seq for each in ends)
                self.beside |= {each for each in ends if fired[each].beside}


class _Fired(NamedTuple):
    """The first switch that ended an agent."""

    seq: int
    """The last event that came before it, or its own where it comes again."""
    beside: bool
    """Whether other calls ran: how far those came by then is timing as well."""


def _racing(recording: Recording) -> dict[str, _Fired]:
    """Return the agents that a switch ended from outside, or while more than one of their calls ran."""
    fired: dict[str, _Fired] = {}
    racing: set[str] = set()
    running: dict[str, set[str]] = defaultdict(set)
    for record in recording.records:
        event, owner = record.event, record.owner
        match event:
            case LlmRequested():
                running[owner].clear()
            case ToolCallStarted():
                running[owner].add(event.call_id)
            case MessageAdded():
                running[owner].discard(event.tool_call_id or "")  # its result has joined the thread
            case ToolCallCompleted(ended="cancelled") | LlmFailed(cancelled=True):
                racing |= {ends for ends in fired if is_within(owner, ends)}
            case KillswitchFired(at=at) if at != "phase":
                ends, outside = event.ends or owner, at == "outside"
                several = any(len(calls) > 1 for name, calls in running.items() if is_within(name, ends))
                fired.setdefault(ends, _Fired(record.seq - outside, several or not outside))
                if outside:
                    racing |= {each for each in fired if is_within(ends, each)}
                elif several:
                    racing.add(ends)
    return {ends: each for ends, each in fired.items() if ends in racing}


def _came_late(name: str, fired: _Fired, all_fired: Mapping[str, _Fired]) -> bool:
    """Return whether an agent above had been ended before: which of the two the agent noticed is timing."""
    above = parent_of(name)
    return any(is_within(above, each) and other.seq <= fired.seq for each, other in all_fired.items())


def _was_answered(recording: Recording, owner: str) -> bool:
    """Return whether the call that entered an agent has an answer, so that the agent above it went on."""
    above = recording.owners.get(parent_of(owner))
    calls = () if above is None else above.calls.values()
    done = next((each.completed for each in calls if scope_of(parent_of(owner), each) == owner), None)
    return done is not None and done.ended != "cancelled"


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
    """Stops agents where the holder of the run's handle stopped them."""

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
        """Nothing listens."""
