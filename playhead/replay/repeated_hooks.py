"""What hooks did in a recorded run, done again in a replay that may go another way.

A recorded change is made again to the same payload at the same place, and elsewhere where the same was made of all equal
ones. What hooks would make of anything else is not known: that is said, and where a required hook had to look at it, the
replay stops there, since nothing may pass that it has not seen.
"""

from __future__ import annotations

from collections import defaultdict, deque
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from playhead.compose.patterns import read_pattern
from playhead.errors import NotReplayableError, UsageError
from playhead.kernel.execution import SEED
from playhead.kernel.hooks import Answer, Nudge, Resume
from playhead.kernel.phases import is_taken_up
from playhead.kernel.session import Hooks
from playhead.replay.hooks import apply_emission, before_of, removed, said_again
from playhead.replay.redacted import require_parameters
from playhead.replay.seen import REQUEST, Seen, SeenPayloads
from playhead.trace.events import EmissionSuppressed, HookFired, ReplayDiverged
from playhead.trace.values import json_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from playhead.kernel.hooks import PhaseName, Recovery, Said, Timing, Unmet
    from playhead.kernel.session import Session, Tool
    from playhead.kernel.state import KernelState
    from playhead.trace.types import HookInfo

CALL: Final = "tool.call"
RESPONSE: Final = "llm.response"
UNSEEN: Final = (
    "hooks that changed calls when it was recorded have not seen this one, and what they would make of it is not known"
)
TOLD: Final = frozenset({"lifecycle.started", "lifecycle.completed", "lifecycle.failure"})
"""Tags whose payload nothing but hooks uses."""
ABOUT_CALLS: Final = frozenset({"tool.result", "message.tool-result", "observation.tool-result"})
"""Tags that pass when it is known which recorded call answered."""


class RepeatedHooks(Hooks):
    """Every change made again where it applies, every stop in the same turn."""

    def __init__(
        self,
        seen: Sequence[SeenPayloads],
        *,
        is_owner: bool,
        source_of: Callable[[str, str], str | None],
        note: Callable[[str], None],
        doubt: Callable[[tuple[str, str], str], None],
    ) -> None:
        """Do again what the hooks of a recorded agent did.

        Args:
            seen: what hooks looked at in the agent's own recording or, with another task, in those of its name.
            is_owner: whether it is its own.
            source_of: takes an owner and the id of a call; returns the id of the recorded call that answers it.
            note: hears what cannot be known.
            doubt: hears of calls, by owner and id, or `request` and its number for all that it asks for, of which nobody
                knows what the hooks would have made, and why.
        """
        self._seen = seen
        self._is_owner = is_owner
        self._source_of = source_of
        self._note = note
        self._doubt = doubt
        self._noted: set[str] = set()
        first = seen[0].owner
        self._seeds = tuple((fact.key, fact.value) for fact in first.facts if fact.name == SEED)
        self._fired: dict[tuple[str, str, int | None], deque[HookFired]] = defaultdict(deque)
        for record in first.records:
            if isinstance(record.event, HookFired) and record.event.policy is None:
                self._fired[record.event.phase, record.event.timing, record.iteration].append(record.event)
        header = first.started.agent if first.started else None
        self._hooks = header.hooks if header else ()
        self._tags = {tag for each in seen for tag in each.tags}
        if any(hook.role == "on" and _is_for(hook, CALL) for hook in self._hooks):
            self._tags.add(CALL)  # a hook that never changed a call may change another one
        self._guard_of = cache(self._find_guard)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do again, and nothing to guard."""
        asks = any(hook.required or hook.role == "unmet" for hook in self._hooks)
        return not (self._tags or self._fired or self._seeds or asks)

    def seeds(self) -> tuple[tuple[str, Any], ...]:
        """Return what was emitted when the agent started."""
        return self._seeds

    def wants(self, tag: str) -> bool:
        """Return whether anything happened under this tag, or a required hook looked at it."""
        return tag in self._tags or self._guard_of(tag) is not None

    async def offer(
        self,
        session: Session,
        tag: str,
        payload: Any,  # noqa: ANN401 - by tag
        key: str,
        details: Mapping[str, Any],  # noqa: ARG002
    ) -> Any:  # noqa: ANN401 - as the payload, or SUPPRESS
        """Return what was made of the same payload, if it was met.

        Raises:
            NotReplayableError: it was not, and a required hook has to look at it; or the hook failed at it.
        """
        seen = self._seen[0].failure(tag, key) if tag in TOLD else self._find(session.owner, tag, payload, key)
        if seen is None:
            if tag not in TOLD:
                self._meet_unknown(session, tag)
            if tag == CALL:
                self._doubt((session.owner, key), UNSEEN)
            elif tag == RESPONSE and tag in self._tags:
                self._doubt((session.owner, f"request {key}"), UNSEEN)
            return payload
        if seen.failed is not None:
            raise NotReplayableError(
                f"the required hook {seen.failed.hook} failed at this {tag} when it was recorded ({seen.failed.error}), and "
                "its code is not here; give agent= with the hook, and it is asked"
            )
        for event in seen.made:
            session.emit(event.model_copy(update={"key": key}))
            if isinstance(event, EmissionSuppressed):
                return removed(event)
            payload = apply_emission(event, payload)
        if tag == REQUEST:  # which now may name a parameter of which the recording holds no value
            require_parameters(payload.parameters)
        return payload

    def callers(self) -> Hooks | None:
        """Return itself: it stands for the caller's."""
        return self

    def tools(self) -> dict[str, Tool]:
        """Return none: only policies know which strategies may take over."""
        return {}

    def unmet(self, session: Session) -> tuple[Unmet, ...]:
        """Return nothing: what the caller's blocks would require is not known."""
        names = [hook.name for hook in self._hooks if hook.role == "unmet"]
        if names:
            self._say(session, f"what {', '.join(names)} required when this was recorded is not known in the replay")
        return ()

    def at_phase(self, phase: PhaseName) -> bool:
        """Return whether anything was said at this phase, or a required hook is asked at it."""
        return any(each == phase for each, _, _ in self._fired) or self._gate(phase) is not None

    async def ask(self, session: Session, phase: PhaseName, timing: Timing, state: KernelState) -> Said | None:  # noqa: ARG002
        """Return what was said in the same turn, if it ends or skips something.

        Raises:
            NotReplayableError: a required hook has to be asked here.
        """
        gate = self._gate(phase, timing)
        if gate is not None:
            raise NotReplayableError(
                f"the required hook {gate.name} has to be asked {timing} {phase}, and its code is not here; give agent= with "
                "the hook, and it is asked"
            )
        fired = self._fired.get((phase, timing, session.iteration))
        while fired:
            said = said_again(fired.popleft())
            if said is None:
                return None
            what = f"{said.hook} said {type(said.answer).__name__.lower()} {timing} {phase}"
            if isinstance(said.answer, (Answer, Nudge, Resume)) and phase == "complete":
                self._say(session, f"{what} when this was recorded, and was not asked about the answer of the replay")
                continue
            self._say(session, f"{what} when this was recorded; the replay did the same, without asking it")
            if not await is_taken_up(said, phase, timing, session):
                return said
        return None

    async def ask_after_error(
        self,
        session: Session,
        phase: PhaseName,
        state: KernelState,  # noqa: ARG002
        error: Exception,
    ) -> Recovery | None:
        """Return None: what the hook would do with this error is not known."""
        asked = [hook.name for hook in self._hooks if hook.role == "on-error" and hook.at in ("*", phase)]
        if asked:
            self._say(session, f"{', '.join(asked)} was not asked about an error in {phase}: {type(error).__name__}")
        return None

    def _find(self, owner: str, tag: str, payload: Any, key: str) -> Seen | None:  # noqa: ANN401 - by tag
        """Return what became of the payload at its place, or of all equal ones when that was the same."""
        place = (self._source_of(owner, key) or "") if tag in ABOUT_CALLS else key
        if tag == REQUEST:
            return self._seen[0].request(key, payload) if self._is_owner else None
        before = json_hash(before_of(tag, payload))
        here = self._seen[0].at(tag, place, before) if self._is_owner else None
        if here is not None:
            return here
        found = {name: seen for each in self._seen for name, seen in each.alike(tag, before).items()}
        return next(iter(found.values())) if len(found) == 1 else None

    def _gate(self, phase: str, timing: str | None = None) -> HookInfo | None:
        """Return the required hook that is asked at a phase."""
        timings = ("before", "after") if timing is None else (timing,)
        gates = (hook for hook in self._hooks if hook.required and hook.role in timings)
        return next((hook for hook in gates if hook.at in ("*", phase)), None)

    def _find_guard(self, tag: str) -> HookInfo | None:
        """Return the required hook that has to look at a tag."""
        guards = (hook for hook in self._hooks if hook.required and hook.role in ("on", "tap") and tag not in TOLD)
        return next((hook for hook in guards if _is_for(hook, tag)), None)

    def _meet_unknown(self, session: Session, tag: str) -> None:
        guard = self._guard_of(tag)
        if guard is not None:
            raise NotReplayableError(
                f"the required hook {guard.name} looked at every {tag} when this was recorded, and its code is not here to "
                "look at what is new in the replay; give agent= with the hook, and it is asked"
            )
        hooks = sorted({name for each in self._seen for name in each.hooks_at(tag)})
        if hooks:
            self._say(
                session,
                f"{', '.join(hooks)} changed {tag} when this was recorded, and was not asked about what is new in the replay",
            )

    def _say(self, session: Session, sentence: str) -> None:
        if sentence not in self._noted:
            self._noted.add(sentence)
            self._note(sentence)
            session.emit(ReplayDiverged(what=sentence, where=session.owner))


def _is_for(hook: HookInfo, tag: str) -> bool:
    if hook.tags or hook.at.startswith("<"):
        return tag in hook.tags
    try:
        return any(matcher.matches(tag) for matcher in read_pattern(hook.at))
    except UsageError:  # a pattern of another version: rather too many tags than one too few
        return True
