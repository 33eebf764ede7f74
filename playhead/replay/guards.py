"""Repeats what killswitches did in a recorded run, at the same places and without their code.

Where a switch fired while other things went on, it waits until all of them have come as far as they had then; what would
go further waits for it. Of the root that was ended from outside (by a deadline, a file, another process) there is nothing
to compare from that moment on. An agent below the root is ended again, because the one above it went on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from playhead.compose.killswitches.output_cap import with_output_cap
from playhead.diagnose.lanes import Lane, LaneOrder, is_compared
from playhead.kernel.guards import Place, termination_of
from playhead.kernel.hooks import Refuse, Stop, Terminate
from playhead.kernel.lifecycle.steering import STOP
from playhead.kernel.lifecycle.threads import running_loop
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
from playhead.trace.owners import is_within

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState, PlannedCall
    from playhead.trace.events import EventBase
    from playhead.trace.line import Record
    from playhead.trace.recording import OwnerRecording, Recording
    from playhead.trace.types import Request, ToolSpec

PATIENCE_S: Final = 5.0
"""Seconds without any event after which a frozen run stops waiting."""
At = tuple[str, object, str]
"""An agent, its request and attempt or its call, and when: `request`, `response`, `call`, `approval` or `result`."""


class Arrivals:
    """Wakes waiting tasks at every event of a run."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[], object]] = []

    def tell(self) -> None:
        """Wake the waiting tasks. From any thread."""
        waiting, self._waiting = self._waiting, []
        for wake in waiting:
            wake()

    async def until(self, is_so: Callable[[], bool], patience_s: float = PATIENCE_S) -> bool:
        """Wait until a condition holds; False if no event came for that long."""
        while not is_so():
            event = anyio.Event()
            self._waiting.append(partial(running_loop().call_soon_threadsafe, event.set))
            with anyio.move_on_after(patience_s) as silence:
                await event.wait()
            if silence.cancelled_caught:
                return False
        return True


class Interrupts:
    """Ends agents once everything beside them has come as far as when the run was recorded."""

    def __init__(self, recording: Recording) -> None:
        self.sessions: dict[str, Session] = {}
        """The agents that run, by owner."""
        self._arrivals = Arrivals()
        self._order, self._come = LaneOrder(), Counter[Lane]()
        self._fires: dict[At, tuple[str, Mapping[Lane, int]]] = {}
        self._outside: dict[str, tuple[KillswitchFired, Mapping[Lane, int]]] = {}
        self._done: set[str] = set()
        self.in_bodies: dict[tuple[str, str], list[KillswitchFired]] = defaultdict(list)
        """What fired inside the bodies of tools, by owner and call: those do not run again."""
        if recording.counts().get("killswitch-fired"):
            self._read(recording)

    @property
    def any(self) -> bool:
        """Whether any switch fired at a place that has to be awaited."""
        return bool(self._fires or self._outside)

    def follow(self, record: Record) -> None:
        """Take in an event of the run."""
        if self.any:
            self._come[self._order.place(record).lane] += is_compared(record.event)
            self._arrivals.tell()

    async def fires(self, place: At) -> bool:
        """Wait, where a switch fired, until all that came before it has come; False where none did."""
        if place not in self._fires:
            return False
        await self._all_come(self._fires[place][1])
        return True

    async def reached(self, owner: str) -> None:
        """End the agent that an owner belongs to, and wait for that; return at once when nothing ended it so."""
        name = next((each for each in self._outside if is_within(owner, each)), None)
        if name is None:
            return
        event, needed = self._outside[name]
        await self._all_come(needed)
        if name not in self._done:
            self._done.add(name)
            self.sessions[name].interrupt(termination_of(event.switch, ending_of(event)), event)
        await anyio.sleep_forever()

    async def until_ended(self, session: Session) -> None:
        """Wait until a switch has ended an agent, if one did. If none fires, it was not for them."""
        if any(is_within(session.owner, ends) for ends, _ in self._fires.values()):
            await self._arrivals.until(lambda: session.ended)

    async def _all_come(self, needed: Mapping[Lane, int]) -> None:
        await self._arrivals.until(lambda: all(self._come[lane] >= count for lane, count in needed.items()))

    def _read(self, recording: Recording) -> None:
        """Note where switches fired, and what had come by then of whom they ended."""
        calls = {
            scope_of(owner.owner, call): (owner.owner, call.started.call_id, "result")
            for owner in recording.owners.values()
            for call in owner.calls.values()
        }
        scopes = inside_bodies(recording)
        order, come = LaneOrder(), Counter[Lane]()
        for record in recording.records:
            event, lane, scope = record.event, order.place(record).lane, scopes.get(record.owner)
            if isinstance(event, KillswitchFired) and event.at != "phase":
                ends = event.ends or record.owner
                # Its own lane is at this place: the answer at which it fired is recorded before it, and comes after it waited.
                needed = {each: count for each, count in come.items() if is_within(each[0], ends) and each != lane}
                if scope in calls and event.ends:
                    self.in_bodies[calls[scope][:2]].append(event)
                if event.at != "outside":
                    at = (record.owner, event.call_id or (event.request, event.attempt), event.at)
                    self._fires[calls.get(scope or "", at)] = (ends, needed)
                elif _goes_on(recording, ends):
                    self._outside[ends] = (event, needed)
            if scope is None and is_compared(event):  # a body does not run again
                come[lane] += 1


def recorded_guards(session: Session, owner: OwnerRecording, interrupts: Interrupts) -> tuple[Guard, ...]:
    """Return the guards that repeat the killswitches of an agent, and of those above it, at this agent's ports."""
    fired: dict[tuple[str, str], list[KillswitchFired]] = defaultdict(list)
    asked: dict[str | None, Counter[str]] = defaultdict(Counter)
    ports = RecordedPorts(session, owner, interrupts)
    for record in owner.records:
        match record.event:
            case KillswitchFired(at="request" | "response" | "call" | "approval" | "result") as event:
                fired[event.switch, event.ends or owner.owner].append(event)
            case ApprovalRequested() as event:
                asked[event.switch][event.call_id] += 1
    guards: list[Guard] = [ports] if ports.needed else []
    by_tools = frozenset(asked.pop(None, ()))
    known = {call_id for call_id, call in owner.calls.items() if call.completed is not None}
    known |= {call_id for calls in asked.values() for call_id in calls} | by_tools
    for switch, ends in [*fired, *((switch, owner.owner) for switch in asked if switch)]:
        endings, times = fired.pop((switch, ends), []), asked.pop(switch, Counter())
        for stacked in range(
            max(times.values(), default=1)
        ):  # as often as the switch is stacked, as far as one can see
            calls = {call for call, count in times.items() if count > stacked}
            guard = RecordedGuard(_above(session, ends), switch, endings, calls)
            guard.asked_by_tools = {call: call in by_tools for call in known}
            guards.append(guard)
    return tuple(guards)


class RecordedPorts(Guard):
    """What came about at an agent's ports without a switch that fired there: caps, refusals, ends inside bodies, waiting."""

    name = "recorded"

    def __init__(self, session: Session, owner: OwnerRecording, interrupts: Interrupts) -> None:
        super().__init__(session)
        self._interrupts = interrupts
        self._known: set[object] = {(each.requested.request, each.requested.attempt) for each in owner.exchanges}
        self._known |= {call.started.call_id for call in owner.calls.values()}
        self._reserved: dict[tuple[int, int], list[BudgetReserved]] = defaultdict(list)
        self._refused: dict[str, str] = {}
        for record in owner.records:
            match record.event:
                case BudgetReserved() as event:
                    self._reserved[event.request, event.attempt].append(event)
                case ToolCallCompleted(ended="refused", error=ErrorInfo(type="Refused", message=why)) as event:
                    self._refused[event.call_id] = why

    @property
    def needed(self) -> bool:
        """Whether anything has to be repeated."""
        return bool(self._reserved or self._refused or self._interrupts.any)

    async def measure(self, session: Session, request: Request) -> None:
        """Wait before a request: where a switch fired, and where the recording ends, until one has."""
        await self._wait(session, (request.number, request.attempt), "request")

    async def before_call(self, session: Session, planned: PlannedCall) -> None:
        """Wait before a call."""
        await self._wait(session, planned.call.id, "call")

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
        """End whom switches ended inside a body; that is no event of an agent's own, so none is recorded."""
        if isinstance(event, ToolCallCompleted):
            for each in self._interrupts.in_bodies.get((session.owner, event.call_id), ()):
                ends = each.ends or session.owner
                if is_within(session.owner, ends):
                    _above(session, ends).ending.end(termination_of(each.switch, ending_of(each)))

    async def _wait(self, session: Session, what: object, at: str) -> None:
        fired = await self._interrupts.fires((session.owner, what, at))
        if not fired and what not in self._known:
            await self._interrupts.reached(session.owner)
            await self._interrupts.until_ended(session)


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


def raced(recording: Recording) -> dict[str, int]:
    """Return the agents whose last moments are timing, each with the `seq` up to which it is compared.

    A switch ended them from outside or while several of their calls ran, or cancelled a call: what they still did before they
    noticed is timing.
    """
    found: dict[str, int] = {}
    ends: dict[str, int] = {}
    open_calls: dict[str, set[str]] = defaultdict(set)
    for record in recording.records:
        event, owner = record.event, record.owner
        match event:
            case LlmRequested():
                open_calls[owner].clear()
            case ToolCallStarted():
                open_calls[owner].add(event.call_id)
            case MessageAdded():
                open_calls[owner].discard(event.tool_call_id or "")  # its result has joined the thread
            case ToolCallCompleted(ended="cancelled") | LlmFailed(cancelled=True):
                late = [seq for name, seq in ends.items() if is_within(owner, name)]
                found.update({} if owner in found or not late else {owner: min(late)})
            case KillswitchFired():
                found = {**_timing(recording, record, open_calls, ends), **found}
                ends.setdefault(event.ends or owner, record.seq)
    return _with_those_above(found, recording)


def _timing(
    recording: Recording, record: Record, open_calls: Mapping[str, set[str]], ends: Mapping[str, int]
) -> dict[str, int]:
    """Return the agents whose last moments are timing because a switch fired here."""
    assert isinstance(record.event, KillswitchFired)  # noqa: S101 - the caller matched it
    ended, outside = record.event.ends or record.owner, record.event.at == "outside"
    if not outside and all(len(calls) <= 1 for name, calls in open_calls.items() if is_within(name, ended)):
        return {}
    below = dict.fromkeys((each for each in recording.owners if is_within(each, ended)), record.seq - outside)
    # Where an agent above had ended, which of the two ends this one is timing, too.
    return {**below, **({name: seq for name, seq in ends.items() if is_within(ended, name)} if outside else {})}


def _with_those_above(found: dict[str, int], recording: Recording) -> dict[str, int]:
    """Add the agents that were given the output of one of these: which of its results was the newest is timing, too."""
    for record in recording.records:
        event = record.event
        if isinstance(event, ToolCallCompleted) and event.ok:
            call = recording.owners[record.owner].calls.get(event.call_id)
            if call is not None and scope_of(record.owner, call) in found:
                found.setdefault(record.owner, record.seq - 1)
    return found


def ended_from_outside(recording: Recording) -> set[str]:
    """Return the agents whose end cannot be made again: the root, and agents that the recording holds no end of."""
    fired = ((record.owner, record.event) for record in recording.records if isinstance(record.event, KillswitchFired))
    outside = {event.ends or owner for owner, event in fired if event.at == "outside"}
    ended = {owner for owner in outside if not _goes_on(recording, owner)}
    if recording.ending is not None and recording.ending.terminated_by == "cancelled":
        ended.add(recording.root.owner)
    return ended


def _goes_on(recording: Recording, owner: str) -> bool:
    """Return whether an agent above this one went on."""
    recorded = recording.owners.get(owner)
    return owner != recording.root.owner and recorded is not None and recorded.completed is not None


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
