"""What hooks did in a recorded run, done again in a replay that may go another way.

A recorded change is made again to the same payload, and a stop in the same turn. What hooks would have made of anything
else is not known: that is said, and where a required hook had to look at it, the replay stops there, since nothing may
pass that it has not seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.compose.patterns import read_pattern
from playhead.errors import NotReplayableError, UsageError
from playhead.kernel.chokepoints import request_parts
from playhead.kernel.hooks import SUPPRESS, Resume
from playhead.replay.hooks import RecordedHooks, apply_emission, before_of, emissions_of
from playhead.trace.events import (
    EmissionSuppressed,
    LlmResponded,
    MessageAdded,
    NudgeIssued,
    ReplayDiverged,
    ToolCallCompleted,
)
from playhead.trace.values import json_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from playhead.kernel.hooks import PhaseName, Recovery, Said, Timing
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.replay.hooks import Emission
    from playhead.trace.recording import OwnerRecording
    from playhead.trace.types import HookInfo

TOLD: Final = frozenset({"lifecycle.started", "lifecycle.completed", "lifecycle.failure"})
"""Tags whose payload nothing but hooks uses."""


class RepeatedHooks(RecordedHooks):
    """Every change made again to the same payload, every stop in the same turn."""

    def __init__(self, owner: OwnerRecording, alike: Iterable[OwnerRecording], note: Callable[[str], None]) -> None:
        """Do again what the hooks of `owner` did; `alike` are agents of its name, whose payloads count as known too."""
        super().__init__(owner)
        self._note = note
        self._noted: set[str] = set()
        self._made: dict[tuple[str, str], tuple[Emission, ...]] = {}
        self._guards = _guards(owner)
        self._passed: set[str] = set()
        for each in (owner, *alike):
            for (tag, _), events in emissions_of(each).items():
                self._made.setdefault((tag, json_hash(events[0].before)), tuple(events))
            self._passed.update(_passed_unchanged(each) if self._guards else ())

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do again, and nothing to guard."""
        return super().idle and not self._guards

    def wants(self, tag: str) -> bool:
        """Return whether anything happened under this tag, or a required hook looked at it."""
        return super().wants(tag) or self._guard(tag) is not None

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
            NotReplayableError: it was not, and a required hook has to look at it.
        """
        names = list(_names(tag, payload))
        made = next((found for each in names if (found := self._made.get((tag, each)))), None)
        if made is None:
            if not self._passed.intersection(names):
                self._meet_unknown(session, tag)
            return payload
        for event in made:
            session.emit(event.model_copy(update={"key": key}))
            if isinstance(event, EmissionSuppressed):
                return SUPPRESS
            payload = apply_emission(event, payload)
        return payload

    async def ask(self, session: Session, phase: PhaseName, timing: Timing, state: KernelState) -> Said | None:
        """Return what was said in the same turn, if it ends or skips something."""
        said = await super().ask(session, phase, timing, state)
        if said is None:
            return None
        what = f"{said.hook} said {type(said.answer).__name__.lower()} {timing} {phase}"
        if isinstance(said.answer, Resume):
            self._say(session, f"{what} when this was recorded, and was not asked about the answer of the replay")
            return None
        self._say(session, f"{what} when this was recorded; the replay did the same, without asking it")
        return said

    async def ask_after_error(
        self, session: Session, phase: PhaseName, state: KernelState, error: Exception
    ) -> Recovery | None:
        """Return None: the error is another one, and what the hook would do with it is not known."""

    def _fail_again(self, session: Session, where: str, key: str) -> None:
        """Do nothing: what failed then does not run now."""

    def _guard(self, tag: str) -> HookInfo | None:
        return None if tag in TOLD else next((hook for hook in self._guards if self._is_for(hook, tag)), None)

    def _is_for(self, hook: HookInfo, tag: str) -> bool:
        try:
            return any(matcher.matches(tag) for matcher in read_pattern(hook.at))
        except UsageError:  # a function of the tag: which ones it meant, what it did tells
            return any(
                each == tag and event.hook == hook.name for (each, _), made in self._made.items() for event in made
            )

    def _meet_unknown(self, session: Session, tag: str) -> None:
        guard = self._guard(tag)
        if guard is not None:
            raise NotReplayableError(
                f"the required hook {guard.name} looked at every {tag} when this was recorded, and its code is not here to "
                "look at what is new in the replay; give agent= with the hook, and it is asked"
            )
        made = (event.hook for (each, _), events in self._made.items() if each == tag for event in events)
        hooks = ", ".join(sorted(set(made)))
        if hooks and tag not in TOLD:
            self._say(
                session,
                f"{hooks} changed {tag} when this was recorded, and was not asked about what is new in the replay",
            )

    def _say(self, session: Session, sentence: str) -> None:
        if sentence not in self._noted:
            self._noted.add(sentence)
            self._note(sentence)
            session.emit(ReplayDiverged(what=sentence, where=session.owner))


def _guards(owner: OwnerRecording) -> list[HookInfo]:
    """Return the required hooks that may change or remove something."""
    header = owner.started.agent if owner.started else None
    return [hook for hook in header.hooks if hook.required and hook.role == "on"] if header else []


def _names(tag: str, payload: Any) -> Iterator[str]:  # noqa: ANN401 - by tag
    """Yield how a recorded change may name this payload; of a request it names only the parts that it changed."""
    if tag != "llm.request":
        yield json_hash(before_of(tag, payload))
        return
    parts = request_parts(payload)
    for names in (["parameters"], ["tools"], list(parts)):
        yield json_hash({name: parts[name] for name in names})


def _passed_unchanged(owner: OwnerRecording) -> Iterator[str]:
    """Yield what stands in the recording as it was used: hooks that looked at it left it so."""
    for record in owner.records:
        match record.event:
            case MessageAdded() as event:
                content = owner.message(event.id).content
                yield json_hash(
                    content if isinstance(content, str) else [part.model_dump(mode="json") for part in content]
                )
                yield json_hash({"content": content if isinstance(content, str) else None})
            case NudgeIssued() as event:
                yield json_hash(event.text)
            case LlmResponded() as event:
                yield json_hash(before_of("llm.response", event))
            case ToolCallCompleted() as event:
                yield json_hash(before_of("tool.result", event))
    for call in owner.calls.values():
        started, completed = call.started, call.completed
        yield json_hash({"name": started.tool, "arguments": started.args})
        if completed is not None:
            yield json_hash(
                {
                    "type": "observation",
                    "tool": completed.tool,
                    "content": completed.observation(),
                    "ok": completed.ok,
                }
            )
    if owner.completed is not None:
        yield json_hash(owner.completed.output)
