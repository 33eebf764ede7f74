"""What hooks did in a recorded run, done again: a replay needs none of their code.

In `reproduce` every change and every word of a phase hook comes back at its own place.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import NotReplayableError, RunEndedError
from playhead.kernel.chokepoints import chokepoint
from playhead.kernel.execution import SEED
from playhead.kernel.hooks import (
    SUPPRESS,
    Answer,
    Nudge,
    Recover,
    Refuse,
    Resume,
    Said,
    Skip,
    Stop,
    SwitchTo,
    Terminate,
)
from playhead.kernel.phases import apply_changes, is_taken_up
from playhead.kernel.session import Hooks
from playhead.kernel.strategies.registry import strategy_class
from playhead.trace.events import EmissionChanged, EmissionSuppressed, HookFailed, HookFired

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from playhead.kernel.hooks import PhaseAnswer, PhaseName, Timing
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.trace.recording import OwnerRecording

Emission = EmissionChanged | EmissionSuppressed
Turn = tuple[str, str, int | None]
"""Phase, timing and turn of the loop."""


def recorded_hooks(owner: OwnerRecording) -> RecordedHooks | None:
    """Return what an owner's hooks did, to be done at exactly the same places; None when they did nothing."""
    hooks = RecordedHooks(owner)
    return None if hooks.idle else hooks


class RecordedHooks(Hooks):
    """Every change and every word at its own place. A replay that may go another way looks at the payload first."""

    def __init__(self, owner: OwnerRecording) -> None:
        self._emissions = {place: own for place, made in emissions_of(owner).items() if (own := of_callers(made))}
        self._fired: dict[Turn, deque[HookFired]] = defaultdict(deque)
        self.failed: dict[tuple[str, str, int | None], HookFailed] = {}
        """Failures of required hooks, by where they were asked, the payload's key and the turn."""
        self._seeds = tuple((fact.key, fact.value) for fact in owner.facts if fact.name == SEED)
        for record in owner.records:
            match record.event:
                case HookFired(policy=None) as event:
                    self._fired[event.phase, event.timing, record.iteration].append(event)
                case HookFailed(ends=(_, *_), policy=None) as event:
                    self.failed[event.where, event.key, record.iteration] = event
        self.tags = {tag for tag, _ in self._emissions} | {where for where, _, _ in self.failed}
        """The tags under which anything happened."""
        self._phases = {phase for phase, _, _ in self._fired} | {where.split(" ")[-1] for where, _, _ in self.failed}

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do again."""
        return not (self.tags or self._phases or self._seeds)

    def seeds(self) -> tuple[tuple[str, Any], ...]:
        """Return what was emitted when the agent started."""
        return self._seeds

    def wants(self, tag: str) -> bool:
        """Return whether anything happened under this tag."""
        return tag in self.tags

    async def offer(
        self,
        session: Session,
        tag: str,
        payload: Any,  # noqa: ANN401 - by tag
        key: str,
        details: Mapping[str, Any],  # noqa: ARG002
    ) -> Any:  # noqa: ANN401 - as the payload, or SUPPRESS
        """Return what was made of the payload."""
        for event in self.made(session, tag, payload, key):
            if isinstance(event, EmissionSuppressed):
                session.emit(event.model_copy(update={"key": key, "before": before_of(tag, payload)}))
                return SUPPRESS if event.why is None else Refuse(event.why)
            changed = apply_emission(event, payload)
            before, after = chokepoint(tag).written(payload, changed)
            session.emit(event.model_copy(update={"key": key, "before": before, "after": after}))
            payload = changed
        self._fail_again(session, tag, key)
        return payload

    def made(self, session: Session, tag: str, payload: Any, key: str) -> Sequence[Emission]:  # noqa: ANN401, ARG002
        """Return what was made of the payload at this place, whatever it is; that is compared."""
        return self._emissions.pop((tag, key), ())

    def at_phase(self, phase: PhaseName) -> bool:
        """Return whether anything was said at this phase."""
        return phase in self._phases

    async def ask(
        self,
        session: Session,
        phase: PhaseName,
        timing: Timing,
        state: KernelState,
        error: Exception | None = None,  # noqa: ARG002
    ) -> Said | None:
        """Return what was said here."""
        self._fail_again(session, f"{timing} {phase}", "")
        fired = self._fired.get((phase, timing, session.iteration))
        while fired:
            said = _said_again(fired.popleft(), state)
            if said is None:  # what this version does not know
                return None
            if self.is_said(session, said, phase, timing) and not await is_taken_up(said, phase, timing, session):
                return said
        return None

    def is_said(self, session: Session, said: Said, phase: PhaseName, timing: Timing) -> bool:  # noqa: ARG002
        """Return whether it holds here."""
        return True

    def _fail_again(self, session: Session, where: str, key: str) -> None:
        failed = self.failed.pop((where, key, session.iteration), None)
        if failed is not None:
            session.emit(failed)
            error = f"the required hook {failed.hook} failed at {failed.where}: {failed.error}"
            above: Session | None = session
            while above is not None:
                if above.owner in failed.ends:
                    above.withhold(f"hook:{failed.hook}", error)
                above = above.parent
            raise RunEndedError(error)


def of_callers(made: list[Emission]) -> list[Emission]:
    """Return what the caller's hooks made of a payload: policies are asked anew."""
    return [event for event in made if event.policy is None]


def emissions_of(owner: OwnerRecording) -> dict[tuple[str, str], list[Emission]]:
    """Return what was made of each payload of an owner, by tag and key."""
    found: dict[tuple[str, str], list[Emission]] = defaultdict(list)
    for record in owner.records:
        if isinstance(record.event, (EmissionChanged, EmissionSuppressed)):
            found[record.event.tag, record.event.key].append(record.event)
    return found


_ANSWERS: Final[dict[str, Callable[[HookFired], PhaseAnswer]]] = {
    "stop": lambda event: Stop(event.reason or "", event.switch, event.terminated_by or "hook_stop"),
    "terminate": lambda event: Terminate(event.reason or "", event.switch, event.terminated_by or "hook_terminate"),
    "skip": lambda event: Skip(event.reason or ""),
    "resume": lambda event: Resume(event.reason or ""),
    "nudge": lambda event: _nudge(event.reason or "", event.changes or {}),
    "answer": lambda event: Answer((event.changes or {}).get("output")),
    "switch-to": lambda event: _switch(event.reason or "", event.changes or {}),
}


def _nudge(text: str, given: dict[str, Any]) -> Nudge:
    ends = given.get("otherwise")
    otherwise = None if ends is None else (Stop if ends[0] == "stop" else Terminate)(ends[1], None, ends[2])
    return Nudge(text, str(given.get("name", "hook")), given.get("severity", "info"), otherwise)


def _switch(why: str, given: dict[str, Any]) -> SwitchTo:
    return SwitchTo(strategy_class(str(given["strategy"])).from_recorded(given.get("settings", {})), why)


def _said_again(event: HookFired, state: KernelState) -> Said | None:
    """Return what a phase hook said, or None for what this version does not know."""
    if event.action == "recover":
        return Said(event.hook, Recover(apply_changes(state, event.changes or {}), event.reason or ""))
    answer = _ANSWERS.get(event.action)
    return None if answer is None else Said(event.hook, answer(event))


def apply_emission(event: EmissionChanged, payload: Any) -> Any:  # noqa: ANN401 - by tag
    """Return the payload as it was changed.

    Raises:
        NotReplayableError: the recorded change is none that this payload can have.
    """
    try:
        return chokepoint(event.tag).read(payload, event.after)
    except Exception as error:
        raise NotReplayableError(
            f"what {event.hook} made of {event.tag} cannot be made again: {type(error).__name__}: {error}"
        ) from error


def before_of(tag: str, payload: Any) -> Any:  # noqa: ANN401 - by tag
    """Return a payload as the recording of a change to it has it."""
    before, _ = chokepoint(tag).written(payload, payload)
    return before
