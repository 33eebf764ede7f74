"""Repeats the recorded effects of hooks, without their code.

`reproduce` repeats every change and every phase hook's answer at its recorded place. `replay` repeats a change if the
same payload occurs again, and reports payloads that the hooks have not seen: `RepeatedHooks`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from playhead.compose.patterns import read_pattern
from playhead.errors import NotReplayableError, RunEndedError
from playhead.kernel import hooks as h
from playhead.kernel.chokepoints import chokepoint, request_parts
from playhead.kernel.execution import SEED
from playhead.kernel.hooks import SUPPRESS, Answer, Nudge, Recover, Refuse, Resume, Said
from playhead.kernel.phases import apply_changes, is_taken_up
from playhead.kernel.session import Hooks
from playhead.kernel.strategies.base import strategy_class
from playhead.replay.redacted import require_parameters
from playhead.trace.events import EmissionChanged, EmissionSuppressed, HookFailed, HookFired, ReplayDiverged
from playhead.trace.types import Request
from playhead.trace.values import json_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from playhead.diagnose.recording import OwnerRecording, Recording
    from playhead.kernel.hooks import PhaseAnswer, PhaseName, Timing
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.replay.matching import Place
    from playhead.replay.serving import Answers
    from playhead.trace.types import HookInfo

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


Passed: TypeAlias = dict[tuple[str, str, str], list[str]]
"""The payloads emitted in a recorded run, changed or not: their keys, by owner, tag and identity."""


class RecordedHooks(Hooks):
    """Repeats every change and answer at its recorded place, for any payload."""

    def __init__(self, owner: OwnerRecording, passed: Passed | None = None) -> None:
        """Repeat the effects of an owner's hooks. `passed` collects every payload that they could see."""
        self._passed = passed
        self._made = _made_by_callers(owner)
        self._fired: dict[tuple[str, int | None], deque[HookFired | HookFailed]] = defaultdict(deque)
        self._seeds = tuple((fact.key, fact.value) for fact in owner.facts if fact.name == SEED)
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
        return self._passed is None and not (self.tags or self._phases or self._seeds)

    def seeds(self) -> tuple[tuple[str, Any], ...]:
        """Return the recorded emissions at the agent's start."""
        return self._seeds

    def wants(self, tag: str) -> bool:
        """Return whether a hook had an effect at this tag."""
        return tag in self.tags or self._passed is not None

    async def offer(
        self, session: Session, tag: str, payload: Payload, key: str, details: Mapping[str, Any]
    ) -> Payload:
        """Return the payload as the hooks changed it."""
        if self._passed is not None:
            self._passed.setdefault((session.owner, tag, _name(tag, payload)), []).append(key)
        for event in self.made(session, tag, payload, key):
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

    def made(self, session: Session, tag: str, payload: Payload, key: str) -> Made:
        """Return the recorded changes at this place, for any payload; the result is compared with the recording."""
        return self._made.pop((tag, key), ())

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
            if self.is_said(session, said, phase, timing) and not await is_taken_up(said, phase, timing, session):
                return said
        return None

    def is_said(self, session: Session, said: Said, phase: PhaseName, timing: Timing) -> bool:
        """Return whether the recorded answer applies here."""
        return True


class RepeatedHooks(RecordedHooks):
    """Repeats a change if the same payload occurs again, and a stop in the same turn.

    The effect of hooks on any other payload is unknown. This is reported, and if a required hook would have to process
    the payload, the replay stops.
    """

    def __init__(self, recording: Recording, place: Place, passed: Passed, answers: Answers, notes: list[str]) -> None:
        """Repeat the effects of a recorded agent's hooks.

        Args:
            recording: the recording.
            place: the agent's own recording or, for an unrecorded task, the recordings of agents with its name.
            passed: the payloads that the recorded hooks saw.
            answers: maps calls to recorded calls, and collects calls whose real arguments are unknown.
            notes: collects notes about unknown effects.
        """
        sources = [recording.owners[name] for name in place.sources]
        super().__init__(sources[0])
        self._sources = {each.owner: _made_by_callers(each) for each in sources}
        self._known = passed
        self._is_owner = place.is_owner
        self._answers = answers
        self._notes = notes
        self._hooks = sources[0].started.agent.hooks if sources[0].started else ()
        self.tags = {tag for made in self._sources.values() for tag, _ in made}
        if any(hook.role == "on" and _listens(hook, CALL) for hook in self._hooks):
            self.tags.add(CALL)  # a hook that never changed a call may change another one
        self._required_at = cache(self._find_required)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to repeat, and nothing to guard."""
        return super().idle and not any(hook.required for hook in self._hooks)

    def wants(self, tag: str) -> bool:
        """Return whether a hook had an effect at this tag, or a required hook processed it."""
        return tag in self.tags or self._required_at(tag) is not None

    async def offer(
        self, session: Session, tag: str, payload: Payload, key: str, details: Mapping[str, Any]
    ) -> Payload:
        """Return the payload as the hooks changed the same payload in the recording.

        Raises:
            NotReplayableError: the payload is new and a required hook must process it, or the hook failed on it.
        """
        payload = await super().offer(session, tag, payload, key, details)
        if isinstance(payload, Request):
            require_parameters(payload.parameters)  # a recorded change may hold a parameter without its value
        return payload

    def made(self, session: Session, tag: str, payload: Payload, key: str) -> Made:
        """Return the recorded changes of the same payload; report a payload that the hooks have not seen."""
        made = self._find(session.owner, tag, payload, key)
        if made is None:
            self._report_new(session, tag)
            if tag == CALL:
                self._answers.doubts[session.owner, key] = UNSEEN
            elif tag == RESPONSE and tag in self.tags:
                self._answers.doubts[session.owner, f"request {key}"] = UNSEEN
            return ()
        for event in made:
            if isinstance(event, HookFailed):
                raise _needed(event.hook, f"failed at this {tag} when the run was recorded ({event.error})")
        return made

    def is_said(self, session: Session, said: Said, phase: PhaseName, timing: Timing) -> bool:
        """Return whether the recorded answer also applies in the replay, and report it in either case."""
        about_this = timing == "on-error" or (isinstance(said.answer, (Answer, Nudge, Resume)) and phase == "complete")
        then = "was not called for what the replay did" if about_this else "the replay did the same, without calling it"
        what = f"{said.hook} said {type(said.answer).__name__.lower()} {timing} {phase} in the recorded run"
        self._say(session, f"{what}; {then}")
        return not about_this

    def _find(self, owner: str, tag: str, payload: Payload, key: str) -> Made | None:
        """Return the changes of the payload at its place, or of all equal payloads if they agree; None if it is new."""
        if tag in NOTICES:
            return [each for each in self._made.get((tag, key), ()) if isinstance(each, HookFailed)]
        place, name = self._answers.source_of(owner, key) if tag in ABOUT_RESULTS else key, _name(tag, payload)
        found = list[Made]()
        for source, made in self._sources.items():
            places = self._known.get((source, tag, name), [])
            is_here = self._is_owner and place in places
            found += [made.get((tag, each), ()) for each in ([place] if is_here and place else places)]
        return found[0] if found and all(_same(found[0], other) for other in found[1:]) else None

    def _find_required(self, tag: str) -> HookInfo | None:
        """Return the required hook that must process a tag."""
        if tag in NOTICES:
            return None
        hooks = (hook for hook in self._hooks if hook.required and hook.role in ("on", "tap") and _listens(hook, tag))
        return next(hooks, None)

    def _report_new(self, session: Session, tag: str) -> None:
        required = self._required_at(tag)
        if required is not None:
            raise _needed(required.name, f"has to look at a {tag} that the recorded run did not have")
        made = (events for each in self._sources.values() for (other, _), events in each.items() if other == tag)
        hooks = sorted({event.hook for events in made for event in events})
        if hooks:
            what = f"{', '.join(hooks)} changed {tag} in the recorded run"
            self._say(session, f"{what}, and was not called for what is new in the replay")

    def _say(self, session: Session, sentence: str) -> None:
        if sentence not in self._notes:
            self._notes.append(sentence)
            session.emit(ReplayDiverged(what=sentence, where=session.owner))


def _needed(hook: str, why: str) -> NotReplayableError:
    return NotReplayableError(f"the required hook {hook} {why}; give agent= with the hook, and it is called")


def had_hooks(recording: Recording) -> bool:
    """Return whether any agent of a run had hooks."""
    started = (owner.started for owner in recording.owners.values())
    return any(each is not None and each.agent.hooks for each in started)


def _listens(hook: HookInfo, tag: str) -> bool:
    if hook.tags or hook.at.startswith("<"):
        return tag in hook.tags
    return any(matcher.matches(tag) for matcher in read_pattern(hook.at))


def _same(one: Made, other: Made) -> bool:
    """Return whether hooks changed two payloads in the same way."""
    left, right = ([event.model_dump(exclude={"key", "before"}) for event in events] for events in (one, other))
    return left == right


def _name(tag: str, payload: Payload) -> str:
    """Return a payload's identity, without ids, which are new in every run."""
    if not isinstance(payload, Request):
        return json_hash(before_of(tag, payload))
    messages = [each.model_dump(mode="json", include={"role", "content", "name"}) for each in payload.messages]
    calls = [[[call.name, call.arguments] for call in each.tool_calls] for each in payload.messages]
    return json_hash([request_parts(payload), messages, calls])


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
        raise NotReplayableError(
            f"what {event.hook} made of {event.tag} cannot be made again: {type(error).__name__}: {error}"
        ) from error


def before_of(tag: str, payload: Payload) -> Payload:
    """Return a payload in the form in which changes record it."""
    before, _ = chokepoint(tag).written(payload, payload)
    return before
