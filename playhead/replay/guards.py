"""What killswitches did in a recorded run, done again at the same places: a replay needs none of their code."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from playhead.kernel.guards import Place, termination_of
from playhead.kernel.hooks import Refuse, Stop, Terminate
from playhead.kernel.output_cap import with_output_cap
from playhead.kernel.session import Guard
from playhead.trace.events import (
    ApprovalRequested,
    BudgetReserved,
    ErrorInfo,
    KillswitchFired,
    LlmFailed,
    LlmResponded,
    ToolCallCompleted,
)
from playhead.trace.owners import is_within

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.kernel.session import Session
    from playhead.kernel.state import PlannedCall
    from playhead.trace.events import EventBase
    from playhead.trace.recording import OwnerRecording
    from playhead.trace.types import Request, ToolSpec


def recorded_guards(
    session: Session, owner: OwnerRecording, in_bodies: Mapping[str, list[KillswitchFired]]
) -> tuple[Guard, ...]:
    """Return what stands for the killswitches of an agent and of those above it, at this agent's ports.

    `in_bodies` are those that fired inside the bodies of its tools, by the call.
    """
    fired: dict[tuple[str, str], list[KillswitchFired]] = defaultdict(list)
    reserved: list[BudgetReserved] = []
    asked: dict[str | None, Counter[str]] = defaultdict(Counter)
    refused: dict[str, str] = {}
    for record in owner.records:
        match record.event:
            case KillswitchFired(at="request" | "response" | "call" | "approval" | "result") as event:
                fired[event.switch, event.ends or owner.owner].append(event)
            case BudgetReserved() as event:
                reserved.append(event)
            case ApprovalRequested() as event:
                asked[event.switch][event.call_id] += 1
            case ToolCallCompleted(ended="refused", error=ErrorInfo(type="Refused", message=why)) as event:
                refused[event.call_id] = why
    guards: list[Guard] = [RecordedBodies(session, in_bodies)] if in_bodies else []
    if reserved:
        guards.append(RecordedBudgets(session, reserved))
    if refused:
        guards.append(RecordedRefusals(session, refused))
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


class RecordedGuard(Guard):
    """A killswitch that fires where it fired, and wants approved what it wanted approved."""

    def __init__(self, ends: Session, name: str, fired: list[KillswitchFired], asked: set[str]) -> None:
        super().__init__(ends)
        self.name = name
        self._fired: dict[tuple[str, int | None, int | None, str], KillswitchFired] = {
            (event.at, event.request, event.attempt, event.call_id): event for event in fired
        }
        self._asked = asked
        self.asked_by_tools: dict[str, bool] = {}
        """Whether tools themselves wanted their calls approved, of those of which that is known."""

    def admit_request(self, session: Session, request: Request) -> Request | Stop | Terminate:  # noqa: ARG002
        """Refuse what was refused."""
        return self._again("request", request.number, request.attempt) or request

    def admit_call(self, session: Session, planned: PlannedCall, spec: ToolSpec) -> Stop | Terminate | None:  # noqa: ARG002
        """Stop where it stopped."""
        return self._again("call", call_id=planned.call.id)

    def wants_approval(self, session: Session, planned: PlannedCall, spec: ToolSpec) -> bool:  # noqa: ARG002
        """Return whether it asked then."""
        return planned.call.id in self._asked

    def asked_by_tool(self, planned: PlannedCall) -> bool | None:
        """Return whether the tool itself wanted it approved then."""
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


class RecordedBodies(Guard):
    """Switches that fired inside bodies: whom they ended has ended when the call has."""

    name = "body"

    def __init__(self, session: Session, fired: Mapping[str, list[KillswitchFired]]) -> None:
        super().__init__(session)
        self._fired = fired

    def heard(self, session: Session, event: EventBase) -> None:
        """End whom they ended; that is no event of an agent's own, so none is recorded."""
        if isinstance(event, ToolCallCompleted):
            for each in self._fired.get(event.call_id, ()):
                ends = each.ends or session.owner
                if is_within(session.owner, ends):
                    _above(session, ends).ending.end(termination_of(each.switch, ending_of(each)))


class RecordedRefusals(Guard):
    """Switches that did not let calls run, and let the run go on."""

    name = "tool_limit"

    def __init__(self, session: Session, refused: dict[str, str]) -> None:
        super().__init__(session)
        self._refused = refused

    def admit_call(self, session: Session, planned: PlannedCall, spec: ToolSpec) -> Refuse | None:  # noqa: ARG002
        """Refuse what was refused."""
        why = self._refused.get(planned.call.id)
        return None if why is None else Refuse(why)


class RecordedBudgets(Guard):
    """Ledgers that set aside what they set aside."""

    name = "budget_limit"

    def __init__(self, session: Session, reserved: list[BudgetReserved]) -> None:
        super().__init__(session)
        self._reserved: dict[tuple[int, int], list[BudgetReserved]] = defaultdict(list)
        for event in reserved:
            self._reserved[event.request, event.attempt].append(event)

    def admit_request(self, session: Session, request: Request) -> Request:  # noqa: ARG002
        """Lower the cap as it was lowered."""
        for event in self._reserved[request.number, request.attempt]:
            if event.output_cap is not None:
                request = with_output_cap(request, event.output_cap)
        return request

    def admitted(self, session: Session, request: Request) -> tuple[EventBase, ...]:  # noqa: ARG002
        """Return what was recorded of it."""
        return tuple(self._reserved[request.number, request.attempt])


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
