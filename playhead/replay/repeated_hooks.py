"""What hooks did in a recorded run, done again in a replay that may go another way.

A recorded change is made again to the same payload at the same place, and elsewhere where the same was made of all equal
ones. What hooks would make of anything else is not known: that is said, and where a required hook had to look at it, the
replay stops there, since nothing may pass that it has not seen.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from playhead.compose.patterns import read_pattern
from playhead.errors import NotReplayableError, UsageError
from playhead.kernel.hooks import Answer, Nudge, Resume
from playhead.replay.hooks import RecordedHooks, before_of
from playhead.replay.redacted import require_parameters
from playhead.replay.seen import REQUEST, Seen, SeenPayloads
from playhead.trace.events import ReplayDiverged
from playhead.trace.types import Request
from playhead.trace.values import json_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from playhead.kernel.hooks import PhaseName, Said, Timing, Unmet
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.replay.hooks import Emission
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


class RepeatedHooks(RecordedHooks):
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
        first = seen[0].owner
        super().__init__(first)
        self.failed.clear()  # whether a hook fails at something depends on what it is
        self._seen = seen
        self._is_owner = is_owner
        self._source_of = source_of
        self._note = note
        self._doubt = doubt
        self._noted: set[str] = set()
        self._hooks = first.started.agent.hooks if first.started else ()
        self.tags = {tag for each in seen for tag in each.tags}
        if any(hook.role == "on" and _is_for(hook, CALL) for hook in self._hooks):
            self.tags.add(CALL)  # a hook that never changed a call may change another one
        self._guard_of = cache(self._find_guard)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do again, and nothing to guard."""
        return super().idle and not any(hook.required or hook.role == "unmet" for hook in self._hooks)

    def wants(self, tag: str) -> bool:
        """Return whether anything happened under this tag, or a required hook looked at it."""
        return tag in self.tags or self._guard_of(tag) is not None

    async def offer(
        self,
        session: Session,
        tag: str,
        payload: Any,  # noqa: ANN401 - by tag
        key: str,
        details: Mapping[str, Any],
    ) -> Any:  # noqa: ANN401 - as the payload, or SUPPRESS
        """Return what was made of the same payload, if it was met.

        Raises:
            NotReplayableError: it was not, and a required hook has to look at it; or the hook failed at it.
        """
        payload = await super().offer(session, tag, payload, key, details)
        if tag == REQUEST and isinstance(
            payload, Request
        ):  # it may name a parameter that the recording has no value of
            require_parameters(payload.parameters)
        return payload

    def made(self, session: Session, tag: str, payload: Any, key: str) -> Sequence[Emission]:  # noqa: ANN401 - by tag
        """Return what was made of the same payload, if it was met; what is not known is said."""
        seen = self._seen[0].failure(tag, key) if tag in TOLD else self._find(session.owner, tag, payload, key)
        if seen is None:
            if tag not in TOLD:
                self._meet_unknown(session, tag)
            if tag == CALL:
                self._doubt((session.owner, key), UNSEEN)
            elif tag == RESPONSE and tag in self.tags:
                self._doubt((session.owner, f"request {key}"), UNSEEN)
            return ()
        if seen.failed is not None:
            raise NotReplayableError(
                f"the required hook {seen.failed.hook} failed at this {tag} when it was recorded ({seen.failed.error}), and "
                "its code is not here; give agent= with the hook, and it is asked"
            )
        return seen.made

    def unmet(self, session: Session) -> tuple[Unmet, ...]:
        """Return nothing: what the caller's blocks would require is not known."""
        names = [hook.name for hook in self._hooks if hook.role == "unmet"]
        if names:
            self._say(session, f"what {', '.join(names)} required when this was recorded is not known in the replay")
        return ()

    def at_phase(self, phase: PhaseName) -> bool:
        """Return whether anything was said at this phase, or a required hook is asked at it."""
        return super().at_phase(phase) or self._gate(phase) is not None

    async def ask(
        self, session: Session, phase: PhaseName, timing: Timing, state: KernelState, error: Exception | None = None
    ) -> Said | None:
        """Return what was said in the same turn, if it ends or skips something; what a hook would do with an error is not known.

        Raises:
            NotReplayableError: a required hook has to be asked here.
        """
        if error is not None:
            asked = [hook.name for hook in self._hooks if hook.role == "on-error" and hook.at in ("*", phase)]
            if asked:
                self._say(
                    session, f"{', '.join(asked)} was not asked about an error in {phase}: {type(error).__name__}"
                )
            return None
        gate = self._gate(phase, timing)
        if gate is not None:
            raise NotReplayableError(
                f"the required hook {gate.name} has to be asked {timing} {phase}, and its code is not here; give agent= with "
                "the hook, and it is asked"
            )
        return await super().ask(session, phase, timing, state)

    def is_said(self, session: Session, said: Said, phase: PhaseName, timing: Timing) -> bool:
        """Return whether it holds in the replay, too; either way it is told."""
        what = f"{said.hook} said {type(said.answer).__name__.lower()} {timing} {phase}"
        if isinstance(said.answer, (Answer, Nudge, Resume)) and phase == "complete":
            self._say(session, f"{what} when this was recorded, and was not asked about the answer of the replay")
            return False
        self._say(session, f"{what} when this was recorded; the replay did the same, without asking it")
        return True

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
