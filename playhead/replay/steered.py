"""Repeats what steered a recorded run, at the same places and without its code: hooks, killswitches, stops.

Where everything is frozen, every change, every phase hook's answer and everything that fired at a port comes again. What hooks
would make of anything new is not known, so a replay of a run with such hooks needs their code. What came from outside (a deadline,
a file, another process), or ended calls that ran beside each other, is a race that no reproduction repeats: `Races` says how far such agents
are compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from playhead.compose.killswitches.output_cap import with_output_cap
from playhead.compose.rebuilding import can_rebuild
from playhead.errors import NotReplayableError, RunEndedError
from playhead.kernel import hooks as h
from playhead.kernel.chokepoints import chokepoint
from playhead.kernel.execution import SEED
from playhead.kernel.guards import termination_of
from playhead.kernel.hooks import PhaseAnswer, PhaseName, Refuse, Stop, Terminate, Timing
from playhead.kernel.lifecycle.steering import STOP
from playhead.kernel.phases import apply_changes, is_taken_up
from playhead.kernel.session import Guard, Hooks, Session, Steering
from playhead.kernel.strategies.base import strategy_class
from playhead.replay.calls import entering, facts_of, inside_bodies, scope_of
from playhead.trace import events as e
from playhead.trace.owners import is_within, lineage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from playhead.diagnose.recording import OwnerRecording, Recording
    from playhead.kernel.state import KernelState, PlannedCall
    from playhead.trace.types import Request, ToolSpec

Made: TypeAlias = "e.EmissionChanged | e.EmissionSuppressed | e.HookFailed"
"""What hooks made of a payload; the failure of a required hook comes last."""


class RecordedHooks(Hooks):
    """Repeats every change and answer at its recorded place, for any payload; of user hooks, for policies are rebuilt instead."""

    def __init__(self, owner: OwnerRecording) -> None:
        self._seeds = tuple((fact.key, fact.value) for fact in owner.facts if fact.name == SEED)
        self._made: dict[tuple[str, str], list[Made]] = defaultdict(list)
        self._fired: dict[tuple[str, int | None], deque[e.HookFired | e.HookFailed]] = defaultdict(deque)
        for record in owner.records:
            match record.event:
                case e.HookFired(policy=None) as event:
                    self._fired[f"{event.timing} {event.phase}", record.iteration].append(event)
                case e.EmissionChanged(policy=None) | e.EmissionSuppressed(policy=None) as event:
                    self._made[event.tag, event.key].append(event)
                case e.HookFailed(ends=(_, *_), policy=None) as event:
                    self._fired[event.where, record.iteration].append(event)
                    self._made[event.where, event.key].append(event)
        self.tags = {tag for tag, _ in self._made}
        """The tags at which hooks had an effect."""
        self._phases = {where.split(" ")[-1] for where, _ in self._fired}

    @property
    def idle(self) -> bool:
        """Whether there is nothing to repeat."""
        return not (self.tags or self._phases or self._seeds)

    def seeds(self) -> tuple[tuple[str, Any], ...]:
        """Return the recorded emissions at the agent's start."""
        return self._seeds

    def wants(self, tag: str) -> bool:
        """Return whether a hook had an effect at this tag."""
        return tag in self.tags

    async def offer(self, session: Session, tag: str, payload: Any, key: str, details: Mapping[str, Any]) -> Any:  # noqa: ANN401 - as in `Hooks`
        """Return the payload as the hooks changed it."""
        for event in self._made.pop((tag, key), ()):
            if isinstance(event, e.HookFailed):
                _fail_again(session, event)
            if isinstance(event, e.EmissionSuppressed):
                before, _ = chokepoint(tag).written(payload, payload)
                session.emit(event.model_copy(update={"key": key, "before": before}))
                return h.SUPPRESS if event.why is None else Refuse(event.why)
            try:
                changed = chokepoint(tag).read(payload, event.after)
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
                raise NotReplayableError(f"what {event.hook} made of {tag} cannot be made again: {why}") from error
            before, after = chokepoint(tag).written(payload, changed)
            session.emit(event.model_copy(update={"key": key, "before": before, "after": after}))
            payload = changed
        return payload

    def at_phase(self, phase: PhaseName) -> bool:
        """Return whether a hook answered at this phase."""
        return phase in self._phases

    async def ask(
        self, session: Session, phase: PhaseName, timing: Timing, state: KernelState, error: Exception | None = None
    ) -> h.HookReply | None:
        """Return the recorded answer at this phase."""
        fired = self._fired.get((f"{timing} {phase}", session.iteration))
        while fired:
            event = fired.popleft()
            if isinstance(event, e.HookFailed):
                _fail_again(session, event)
            said = _said_again(event, state)
            if said is None:  # an answer that this version does not know
                return None
            if not await is_taken_up(said, phase, timing, session):
                return said
        return None


def code_in(owner: OwnerRecording) -> list[str]:
    """Return the hooks of an agent that a replay needs the code of: they changed, stopped or gated its run, or could have."""
    hooks = owner.started.agent.hooks if owner.started else ()
    rebuilt = {hook.name for hook in hooks if can_rebuild(hook)}
    able = [hook.name for hook in hooks if hook.role == "on" or (hook.required and hook.role not in REBUILT)]
    effects = (each.event for each in owner.records if isinstance(each.event, EFFECTS))
    acted = [each.hook for each in effects if each.policy is None and getattr(each, "ends", True)]
    return [name for name in dict.fromkeys([*able, *acted]) if name not in rebuilt]


EFFECTS: Final = (e.EmissionChanged, e.EmissionSuppressed, e.HookFailed, e.HookFired)
"""Events of what a hook did."""
REBUILT: Final = ("guard", "policy", "block")
"""Roles of what is rebuilt from the header, or named in a note."""


def _fail_again(session: Session, failed: e.HookFailed) -> NoReturn:
    session.emit(failed)
    error = f"the required hook {failed.hook} failed at {failed.where}: {failed.error}"
    above: Session | None = session
    while above is not None:
        if above.owner in failed.ends:
            above.withhold(f"hook:{failed.hook}", error)
        above = above.parent
    raise RunEndedError(error)


def _said_again(event: e.HookFired, state: KernelState) -> h.HookReply | None:
    """Return a phase hook's answer, or None if this version does not know it."""
    why, changes = event.reason or "", event.changes or {}
    made: dict[str, Callable[[], PhaseAnswer]] = {
        "stop": lambda: Stop(why, event.switch, event.terminated_by or "hook_stop"),
        "terminate": lambda: Terminate(why, event.switch, event.terminated_by or "hook_terminate"),
        "skip": lambda: h.Skip(why),
        "resume": lambda: h.Resume(why),
        "recover": lambda: h.Recover(apply_changes(state, changes), why),
        "nudge": lambda: _nudge(why, changes),
        "answer": lambda: h.Answer(changes.get("output")),
        "switch-to": lambda: h.SwitchTo(
            strategy_class(str(changes["strategy"])).from_recorded(changes.get("settings", {})), why
        ),
    }
    return h.HookReply(event.hook, made[event.action]()) if event.action in made else None


def _nudge(text: str, given: dict[str, Any]) -> h.Nudge:
    ends = given.get("otherwise")
    otherwise = None if ends is None else (Stop if ends[0] == "stop" else Terminate)(ends[1], None, ends[2])
    return h.Nudge(text, str(given.get("name", "hook")), given.get("severity", "info"), otherwise)


# --- killswitches -----------------------------------------------------------------------------------------------------


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
        done = {name: call.completed for name, call in calls.items() if call is not None}
        whole = {name for name, completed in done.items() if completed and completed.ended != "cancelled"}
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
                below = (calls for name, calls in running.items() if is_within(name, ends))
                several = [min(calls.values()) for calls in below if len(calls) > 1]
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

    def stop_reason(self, session: Session, before: str) -> str | None:
        """Return the reason of a recorded stop before this turn or request, if any."""
        return next(map(str, self._facts[session.owner, STOP, before]), None)
