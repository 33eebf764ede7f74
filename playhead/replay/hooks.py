"""Repeats the recorded effects of hooks, without their code.

Where everything is frozen, every change and every phase hook's answer is repeated at its recorded place. What hooks would make
of anything new is not known, so a replay of a run with such hooks needs their code.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from playhead.compose.again import is_made_again
from playhead.errors import NotReplayableError, RunEndedError
from playhead.kernel import hooks as h
from playhead.kernel.chokepoints import chokepoint
from playhead.kernel.execution import SEED
from playhead.kernel.hooks import SUPPRESS, Answer, Nudge, Recover, Refuse, Resume, Said
from playhead.kernel.phases import apply_changes, is_taken_up
from playhead.kernel.session import Hooks
from playhead.kernel.strategies.base import strategy_class
from playhead.trace.events import EmissionChanged, EmissionSuppressed, HookFailed, HookFired

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from playhead.diagnose.recording import OwnerRecording
    from playhead.kernel.hooks import PhaseAnswer, PhaseName, Timing
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState

Payload: TypeAlias = Any
"""The payload of a tag."""
Emission = EmissionChanged | EmissionSuppressed
Made: TypeAlias = "Sequence[Emission | HookFailed]"
"""The changes that hooks made to a payload; the failure of a required hook is the last entry."""
CALL: Final = "tool.call"
RESPONSE: Final = "llm.response"
UNSEEN: Final = "hooks that may change calls have not seen this one, and what they would make of it is not known"
NOTICES: Final = frozenset({"lifecycle.started", "lifecycle.completed", "lifecycle.failure"})
"""Tags whose payload only hooks use."""
ABOUT_RESULTS: Final = frozenset({"tool.result", "message.tool-result", "observation.tool-result"})
"""Tags emitted when the answering recorded call is known."""


class Seeds(Hooks):
    """Repeats what was emitted at an agent's start."""

    def __init__(self, owner: OwnerRecording) -> None:
        self._seeds = tuple((fact.key, fact.value) for fact in owner.facts if fact.name == SEED)

    def seeds(self) -> tuple[tuple[str, Any], ...]:
        """Return the recorded emissions at the agent's start."""
        return self._seeds


class RecordedHooks(Seeds):
    """Repeats every change and answer at its recorded place, for any payload."""

    def __init__(self, owner: OwnerRecording) -> None:
        super().__init__(owner)
        self._made = _made_by_callers(owner)
        self._fired: dict[tuple[str, int | None], deque[HookFired | HookFailed]] = defaultdict(deque)
        for record in owner.records:
            match record.event:
                case HookFired(policy=None) as event:
                    self._fired[f"{event.timing} {event.phase}", record.iteration].append(event)
                case HookFailed(ends=(_, *_), policy=None) as event:
                    self._fired[event.where, record.iteration].append(event)
        self.tags = {tag for tag, _ in self._made}
        """The tags at which hooks had an effect."""
        self._phases = {where.split(" ")[-1] for where, _ in self._fired}

    @property
    def idle(self) -> bool:
        """Whether there is nothing to repeat."""
        return not (self.tags or self._phases or self._seeds)

    def wants(self, tag: str) -> bool:
        """Return whether a hook had an effect at this tag."""
        return tag in self.tags

    async def offer(
        self, session: Session, tag: str, payload: Payload, key: str, details: Mapping[str, Any]
    ) -> Payload:
        """Return the payload as the hooks changed it."""
        for event in self._made.pop((tag, key), ()):
            if isinstance(event, HookFailed):
                _fail_again(session, event)
            if isinstance(event, EmissionSuppressed):
                session.emit(event.model_copy(update={"key": key, "before": before_of(tag, payload)}))
                return SUPPRESS if event.why is None else Refuse(event.why)
            changed = apply_emission(event, payload)
            before, after = chokepoint(tag).written(payload, changed)
            session.emit(event.model_copy(update={"key": key, "before": before, "after": after}))
            payload = changed
        return payload

    def at_phase(self, phase: PhaseName) -> bool:
        """Return whether a hook answered at this phase."""
        return phase in self._phases

    async def ask(
        self, session: Session, phase: PhaseName, timing: Timing, state: KernelState, error: Exception | None = None
    ) -> Said | None:
        """Return the recorded answer at this phase."""
        fired = self._fired.get((f"{timing} {phase}", session.iteration))
        while fired:
            event = fired.popleft()
            if isinstance(event, HookFailed):
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
    rebuilt = {hook.name for hook in hooks if is_made_again(hook)}
    able = [hook.name for hook in hooks if hook.role == "on" or (hook.required and hook.role not in REBUILT)]
    effects = (each.event for each in owner.records if isinstance(each.event, EFFECTS))
    acted = [each.hook for each in effects if each.policy is None and getattr(each, "ends", True)]
    return [name for name in dict.fromkeys([*able, *acted]) if name not in rebuilt]


EFFECTS: Final = (EmissionChanged, EmissionSuppressed, HookFailed, HookFired)
"""Events of what a hook did."""
REBUILT: Final = ("guard", "policy", "block")
"""Roles of what is rebuilt from the header, or named in a note."""


def _made_by_callers(owner: OwnerRecording) -> dict[tuple[str, str], Made]:
    """Return the effects of user hooks on an owner's payloads, by tag and key. Policies are rebuilt instead."""
    found: dict[tuple[str, str], Made] = {}
    for record in owner.records:
        match record.event:
            case EmissionChanged(policy=None) | EmissionSuppressed(policy=None) as event:
                found[event.tag, event.key] = (*found.get((event.tag, event.key), ()), event)
            case HookFailed(ends=(_, *_), policy=None) as event:
                found[event.where, event.key] = (*found.get((event.where, event.key), ()), event)
    return found


def _fail_again(session: Session, failed: HookFailed) -> NoReturn:
    session.emit(failed)
    error = f"the required hook {failed.hook} failed at {failed.where}: {failed.error}"
    above: Session | None = session
    while above is not None:
        if above.owner in failed.ends:
            above.withhold(f"hook:{failed.hook}", error)
        above = above.parent
    raise RunEndedError(error)


def _said_again(event: HookFired, state: KernelState) -> Said | None:
    """Return a phase hook's answer, or None if this version does not know it."""
    why, changes = event.reason or "", event.changes or {}
    made: dict[str, Callable[[], PhaseAnswer]] = {
        "stop": lambda: h.Stop(why, event.switch, event.terminated_by or "hook_stop"),
        "terminate": lambda: h.Terminate(why, event.switch, event.terminated_by or "hook_terminate"),
        "skip": lambda: h.Skip(why),
        "resume": lambda: Resume(why),
        "recover": lambda: Recover(apply_changes(state, changes), why),
        "nudge": lambda: _nudge(why, changes),
        "answer": lambda: Answer(changes.get("output")),
        "switch-to": lambda: h.SwitchTo(
            strategy_class(str(changes["strategy"])).from_recorded(changes.get("settings", {})), why
        ),
    }
    return Said(event.hook, made[event.action]()) if event.action in made else None


def _nudge(text: str, given: dict[str, Any]) -> Nudge:
    ends = given.get("otherwise")
    otherwise = None if ends is None else (h.Stop if ends[0] == "stop" else h.Terminate)(ends[1], None, ends[2])
    return Nudge(text, str(given.get("name", "hook")), given.get("severity", "info"), otherwise)


def apply_emission(event: EmissionChanged, payload: Payload) -> Payload:
    """Return the changed payload.

    Raises:
        NotReplayableError: the recorded change does not fit this payload.
    """
    try:
        return chokepoint(event.tag).read(payload, event.after)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise NotReplayableError(f"what {event.hook} made of {event.tag} cannot be made again: {why}") from error


def before_of(tag: str, payload: Payload) -> Payload:
    """Return a payload in the form in which changes record it."""
    before, _ = chokepoint(tag).written(payload, payload)
    return before
