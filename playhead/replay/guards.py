"""Repeats what killswitches did in a recorded run, at the same places and without their code.

What fired at a port fires there again. What came from outside (a deadline, a file, another process), or ended calls that
ran beside each other, is a race that no reproduction repeats: `Races` says how far such agents are compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from playhead.compose.killswitches.output_cap import with_output_cap
from playhead.kernel.guards import termination_of
from playhead.kernel.hooks import Refuse, Stop, Terminate
from playhead.kernel.lifecycle.steering import STOP
from playhead.kernel.session import Guard, Steering
from playhead.replay.calls import entering, facts_of, inside_bodies, scope_of
from playhead.trace import events as e
from playhead.trace.owners import is_within, lineage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.diagnose.recording import OwnerRecording, Recording
    from playhead.kernel.session import Session
    from playhead.kernel.state import PlannedCall
    from playhead.trace.types import Request, ToolSpec


Outcomes: TypeAlias = "dict[tuple[object, ...], Any]"
"""What was answered at a port, by what was asked there."""
PORTS: Final = "recorded"
"""The guard that repeats what came about at the ports without a switch that fired there: caps, refusals, ends inside bodies."""


def recorded_guards(
    session: Session, owner: OwnerRecording, inside: Mapping[str, Sequence[e.EventBase]]
) -> tuple[Guard, ...]:
    """Return the guards that repeat the killswitches of an agent, and of those above it, at this agent's ports.

    `inside` is what happened in each call that is served as a whole, by its scope.
    """
    found: dict[tuple[str, str, int], Outcomes] = defaultdict(dict)
    ports = found[PORTS, owner.owner, 0]
    for record in owner.records:
        match record.event:
            case e.KillswitchFired(at="request" | "response", ends=ends) as event:
                own = found[event.switch, ends or owner.owner, 0]
                own[event.at, event.request, event.attempt] = ending_of(event)
            case e.KillswitchFired(at="call" | "approval" | "result", ends=ends) as event:
                found[event.switch, ends or owner.owner, 0][event.at, event.call_id] = ending_of(event)
            case e.BudgetReserved() as event:
                ports.setdefault(("reserved", event.request, event.attempt), []).append(event)
            case e.ToolCallCompleted(ended="refused", error=e.ErrorInfo(type="Refused", message=why)) as event:
                ports["call", event.call_id] = Refuse(why)
    for call_id, call in owner.calls.items() if inside else ():
        ports["inside", call_id] = inside.get(scope_of(owner.owner, call), ())
    _add_approvals(session, owner, found)
    made = ((name, _above(session, ends), outcomes) for (name, ends, _), outcomes in found.items() if outcomes)
    return tuple(RecordedGuard(ends, name, outcomes) for name, ends, outcomes in made)


def _add_approvals(session: Session, owner: OwnerRecording, found: dict[tuple[str, str, int], Outcomes]) -> None:
    """Record which calls each switch required approval for."""
    requested = (record.event for record in owner.records if isinstance(record.event, e.ApprovalRequested))
    asked = Counter((event.switch, event.call_id) for event in requested)
    for (switch, call_id), times in asked.items():
        if switch is not None:
            ends = next((ends for name, ends, _ in found if name == switch), owner.owner)
            for number in range(times):  # of equal switches that are stacked, each asks
                found[switch, ends, number]["wants", call_id] = True
            if (None, call_id) in asked:  # the tool asks beside a switch only where the agent has an approver
                session.gate.approve_by(lambda _: False)


class RecordedGuard(Guard):
    """Repeats the recorded decisions of one killswitch, or of none, at the ports."""

    def __init__(self, ends: Session, name: str, outcomes: Outcomes) -> None:
        super().__init__(ends)
        self.name = name
        self._outcomes = outcomes

    def admit_request(self, session: Session, request: Request) -> Request | Stop | Terminate:
        """Lower the output cap as the recorded budgets did, and end the agent before this request if the switch did."""
        for event in self.admitted(session, request):
            if event.output_cap is not None:
                request = with_output_cap(request, event.output_cap)
        return self._outcomes.get(("request", request.number, request.attempt)) or request

    def admitted(self, session: Session, request: Request) -> tuple[e.BudgetReserved, ...]:
        """Return the recorded reservations."""
        return tuple(self._outcomes.get(("reserved", request.number, request.attempt), ()))

    def admit_call(self, session: Session, planned: PlannedCall, spec: ToolSpec) -> Stop | Terminate | Refuse | None:
        """Refuse or stop the call if it was refused or stopped in the recording."""
        return self._outcomes.get(("call", planned.call.id))

    def wants_approval(self, session: Session, planned: PlannedCall, spec: ToolSpec) -> bool:
        """Return whether the switch required approval of this call."""
        return ("wants", planned.call.id) in self._outcomes

    def denied(self, session: Session, planned: PlannedCall, why: str) -> Stop | Terminate | None:
        """End the agent if the recorded switch did."""
        return self._outcomes.get(("approval", planned.call.id))

    def heard(self, session: Session, event: e.EventBase) -> Stop | Terminate | None:
        """End the agent if the recorded switch did. An ending inside this call appears only in the recording."""
        if isinstance(event, (e.LlmFailed, e.LlmResponded)):
            return self._outcomes.get(("response", event.request, event.attempt))
        if not isinstance(event, e.ToolCallCompleted):
            return None
        for each in self._outcomes.get(("inside", event.call_id), ()):
            if isinstance(each, e.KillswitchFired) and each.ends and is_within(session.owner, each.ends):
                _above(session, each.ends).ending.end(termination_of(each.switch, ending_of(each)))
        return self._outcomes.get(("result", event.call_id))


def ending_of(event: e.KillswitchFired) -> Stop | Terminate:
    """Return a killswitch's recorded answer."""
    ending = Stop if event.on_trigger == "stop" else Terminate
    return ending(event.reason, event.switch, event.terminated_by or event.switch)


def _above(session: Session, owner: str) -> Session:
    """Return this owner's session: the given one or one of its parents."""
    found: Session | None = session
    while found is not None and found.owner != owner:
        found = found.parent
    return found or session


class Races:
    """Agents that killswitches ended at an arbitrary moment: from outside, or during parallel calls.

    What such an agent did before it noticed depends on timing, and so does the progress of parallel calls. If its parent
    continued, a frozen run serves the agent as a whole, like a tool body. Otherwise the agent is compared up to the moment
    when the switch fired, or up to the start of the calls that were running then.
    """

    def __init__(self, recording: Recording) -> None:
        self.inside = inside_bodies(recording)
        """The owners that a frozen run does not enter, each with the outermost call that is served instead."""
        self.until: dict[str, int] = {}
        """The agents that are compared in part, each with the last `seq` to compare."""
        fired = _racing(recording) if recording.counts().get("killswitch-fired") else {}
        calls = {name: entering(recording, name) for name in fired}
        whole = {
            name for name, call in calls.items() if call and call.completed and call.completed.ended != "cancelled"
        }
        for owner in recording.owners if fired else ():
            scope = next((each for each in lineage(owner) if each in whole or each == self.inside.get(owner)), None)
            if scope is not None:
                self.inside[owner] = scope
            elif ends := [each for each in fired if is_within(owner, each)]:
                self.until[owner] = min(fired[each] for each in ends)


def _racing(recording: Recording) -> dict[str, int]:
    """Return the agents that a switch ended from outside, or while several of their calls ran, and the last `seq` before that."""
    fired: dict[str, int] = {}
    racing: set[str] = set()
    running: dict[str, dict[str, int]] = defaultdict(dict)
    for record in recording.records:
        event, owner = record.event, record.owner
        match event:
            case e.LlmRequested():
                running[owner].clear()
            case e.ToolCallStarted():
                running[owner][event.call_id] = record.seq
            case e.MessageAdded():
                running[owner].pop(event.tool_call_id or "", None)  # its result is already in the thread
            case e.ToolCallCompleted(ended="cancelled") | e.LlmFailed(cancelled=True):
                racing |= {ends for ends in fired if is_within(owner, ends)}
            case e.KillswitchFired(at=at) if at != "phase":
                ends, outside = event.ends or owner, at == "outside"
                several = [
                    min(calls.values()) for name, calls in running.items() if len(calls) > 1 and is_within(name, ends)
                ]
                fired.setdefault(ends, min(several) - 1 if several else record.seq - outside)
                if outside:
                    racing |= {each for each in fired if is_within(ends, each)}
                elif several:
                    racing.add(ends)
    return {ends: each for ends, each in fired.items() if ends in racing}


class RecordedStops(Steering):
    """Stops agents where the user stopped them through the run's handle. Pauses are not repeated."""

    def __init__(self, recording: Recording) -> None:
        self._facts = facts_of(recording)

    def stops(self, session: Session, before: str) -> str | None:
        """Return the reason of a recorded stop before this turn or request, if any."""
        return next(map(str, self._facts[session.owner, STOP, before]), None)
