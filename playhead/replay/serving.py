"""Answers the calls of a replay: with the recorded answer, an override, or as `on_missing` says.

The answer is chosen when the call is about to run or to be approved, so concurrent calls never race for a recorded answer,
and a call that the kernel or a killswitch refuses takes none. Only a tool that `on_missing` lets run live runs here.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from anyio.lowlevel import checkpoint

from playhead.errors import (
    AmbiguousResultError,
    RecordingEndedError,
    ReplayError,
    StaleResultError,
    UnrecordedCallError,
)
from playhead.kernel.outcome import Outcome
from playhead.replay.history import PastCall, call_name
from playhead.replay.misses import describe_unserved, first_calls, name_call
from playhead.replay.missing import MissedCall, no_recording, policy_of, simulated
from playhead.replay.state import NOTHING, State, touched, union
from playhead.trace.events import ReplayDiverged, ReplayServed, ToolCallStarted
from playhead.trace.events.tools import GROUNDED
from playhead.trace.owners import agent_path
from playhead.trace.values import content_hash, from_json, json_hash, to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.session import Tool, ToolContext
    from playhead.replay.history import Past
    from playhead.replay.matching import Asked, Match, Matcher
    from playhead.replay.missing import OnMissing
    from playhead.replay.overrides import ResultOverride
    from playhead.replay.redacted import Rebinding
    from playhead.trace.events.tools import Rung
    from playhead.trace.line import Record
    from playhead.trace.types import ToolSpec
    from playhead.trace.values import JsonValue

KEPT: Final = frozenset({"simulated", "override", "fault", "live"})
"""Rungs that an answer keeps when a replay is itself replayed: the original run never gave it."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call as a tool is given it."""

    spec: ToolSpec
    arguments: dict[str, JsonValue]
    context: ToolContext
    asked: Asked
    given: Tool | None = None
    """The tool of the code, where code was given."""

    @property
    def key(self) -> tuple[str, str]:
        """Owner and id."""
        return self.context.owner, self.context.call_id

    @property
    def memory_key(self) -> tuple[str, str, str]:
        """Where the agent's memory has the result of a cacheable call."""
        return self.context.owner, self.spec.name, content_hash(self.arguments)

    def __str__(self) -> str:
        """Return who calls what, where."""
        return name_call(self.context, self.arguments)


class Serving(NamedTuple):
    """The answer chosen for a call."""

    rung: Rung
    call: PastCall | None = None
    """The recorded call that answers it, or whose approval does."""
    outcome: Outcome | None = None
    """The outcome, when it is known without a recorded call."""
    missed: MissedCall | None = None
    """The call that a function is to simulate."""
    state: str = ""
    """The state in which it is answered."""

    @property
    def is_made_up(self) -> bool:
        """Whether nothing recorded answers and nothing runs, so that nobody has to approve it."""
        return self.rung in ("simulated", "override", "synthetic-error")


class Remembered(NamedTuple):
    """The cached result of a cacheable call."""

    outcome: Outcome | None
    """The answer; None when nobody knows what it was."""
    state: str
    """The state that it was given in."""


class Answers:
    """Gives the calls of one replay their answers, and counts how."""

    def __init__(
        self,
        past: Past,
        matcher: Matcher,
        on_missing: OnMissing,
        results: tuple[ResultOverride, ...],
        rebinding: Rebinding,
    ) -> None:
        self.rungs: Counter[str] = Counter()
        """How many calls got their answer in which way."""
        self.stops = 0
        """Calls that got none, and so ended the replay."""
        self.fitted: Counter[int] = Counter()
        """How many calls each of the overriding results fitted."""
        self.used: set[int] = set()
        """Those that answered one."""
        self.foreign: Counter[str] = Counter()
        """How many agents of each name had a task that was not recorded."""
        self.doubts: dict[tuple[str, str], str] = {}
        """Why the real arguments, or the cached result, of a call are unknown: by owner, and by call or request."""
        self._sources: dict[tuple[str, str], str] = {}
        self._courses: dict[tuple[str, str], str] = {}
        self._calls: dict[tuple[str, str], Call] = {}
        self._expected: dict[tuple[str, str], Callable[[], Serving]] = {}
        self._decided: dict[tuple[str, str], Serving] = {}
        self._memory: dict[tuple[str, str, str], Remembered] = {}
        self._past = past
        self._matcher = matcher
        self._state = State("replay")
        self._on_missing = on_missing
        self._results = results
        self._rebinding = rebinding
        self._nearby = first_calls(past.calls)

    def source_of(self, owner: str, call_id: str) -> str | None:
        """Return the id of the recorded call that answers a call, or None when none does."""
        return self._sources.get((owner, call_id))

    def note_call(self, record: Record) -> None:
        """Take in that a call was made, whether or not it is refused."""
        started = record.event
        if isinstance(started, ToolCallStarted):
            made = PastCall(record.owner, started, record.iteration, record.seq, None, None, json_hash(started.args))
            self._courses[record.owner, started.call_id] = self._state.begin(made.child, made.identity)

    def _course(self, call: Call) -> str:
        """Return the course of the run up to a call; that of no recorded one for a call which came too late to be recorded."""
        return self._courses.get(call.key, "")

    def expect(self, call: Call, decide: Callable[[], Serving] | None = None) -> None:
        """Note a call that is going to be approved or to run, unless something refuses it."""
        self._calls[call.key] = call
        self._expected[call.key] = decide or (lambda: self._decide(call))

    def decided(self, owner: str, call_id: str) -> Serving | None:
        """Return what an expected call gets; None for a call of the kernel's own tools.

        Raises:
            UnrecordedCallError, StaleResultError, RecordingEndedError: under `strict` there is nothing to serve.
            AmbiguousResultError: there is more than one answer, whatever `on_missing` says.
        """
        decide = self._expected.pop((owner, call_id), None)
        if decide is not None:
            self._decided[owner, call_id] = decide()
        return self._decided.get((owner, call_id))

    async def answer(self, owner: str, call_id: str) -> Outcome:
        """Return what an expected call gets; raises as `decided`."""
        call, serving = self._calls.pop((owner, call_id)), self.decided(owner, call_id)
        assert serving is not None  # noqa: S101 - it was expected
        del self._decided[call.key]
        if serving.call is not None and serving.call.denied and serving.outcome is None:
            why = f"{call}; when it was recorded (event {serving.call.seq}) it was not approved, and did not run"
            serving = self.missed(call, UnrecordedCallError(why))
        self._follow(call, serving)
        self._note_served(call, serving.rung, serving.call)
        outcome = self._known(serving)
        if outcome is None:
            outcome = await self._made(call, serving)
        outcome = replace(outcome, rung=serving.rung)
        self._remember(call, serving, outcome)
        await checkpoint()  # so that calls which the kernel lets run beside each other are seen to
        return outcome

    def doubt(self, call: Call) -> str | None:
        """Return why nobody knows what a call would really be, if that is so."""
        owner = call.context.owner
        return self.doubts.get(call.key) or self.doubts.get((owner, f"request {call.asked.request}"))

    def override_of(self, call: Call) -> Serving | None:
        """Return what the call is told to answer, if it is; its recorded answer is used up by that."""
        rule = self._rule_for(call)
        if rule is None:
            return None
        match: PastCall | None = None
        with suppress(AmbiguousResultError):  # an override is the answer to that
            if call.spec.kind == "agent":
                match = next(iter(self._matcher.enter(call.asked)), None)
            else:
                found = self._matcher.take(call.asked, self._state_of(call))
                match = None if found is None else found.call
        failed = None if rule.error is None else Outcome.failure("ToolError", rule.error)
        return Serving("override", match, failed or Outcome(ok=True, result=to_json(rule.result)))

    def missed(self, call: Call, error: ReplayError, stale: JsonValue = None) -> Serving:
        """Return what becomes of a call that nothing recorded answers.

        Raises:
            ReplayError: the one given, under `strict`.
        """
        why, policy = str(error), policy_of(self._on_missing, call.spec)
        self._note_diverged(call, why)
        if policy == "strict":
            self.stops += 1
            raise error
        if policy == "live":
            return Serving("live")
        if policy == "lenient":
            return Serving("synthetic-error", outcome=no_recording(why))
        context = call.context
        missed = MissedCall(
            tool=call.spec.name,
            arguments=from_json(call.arguments),
            owner=context.owner,
            iteration=context.iteration,
            position=context.position,
            why=why,
            stale=from_json(stale),
        )
        return Serving("simulated", missed=missed)

    def note_foreign(self, call: Call) -> None:
        """Note an agent whose task none of its name had: its tools answer what they answered for the others."""
        self.foreign[call.spec.name] += 1
        self._note_diverged(
            call, f"{call}; no recorded agent had this task, so its tools answer as they did for others"
        )

    def _decide(self, call: Call) -> Serving:
        told = self.override_of(call)
        if told is not None:
            return told
        state = self._state_of(call)
        remembered = self._from_memory(call, state)
        if isinstance(remembered, Serving):
            return remembered
        match = self._take(call, remembered)
        if match is None:
            return self.missed(call, self._why_missing(call))._replace(state=state)
        if match.rung == "stale" and policy_of(self._on_missing, call.spec) != "lenient":
            stale = None if match.call.completed is None else match.call.completed.result
            return self.missed(call, StaleResultError(self._why_stale(call, match)), stale)._replace(state=state)
        if match.rung == "stale":
            self._note_diverged(call, self._why_stale(call, match))
        elif match.call.completed is not None and match.call.completed.cached:  # the very same course: still remembered
            return self._repeat(call, match.call)
        return Serving(_rung_of(match), match.call, state=state)

    def _state_of(self, call: Call) -> str:
        return self._state.key(touched(call.spec).depends, self._course(call))

    def _from_memory(self, call: Call, state: str) -> Serving | str:
        """Return what the agent's memory answers; when its body has to, the state that a recorded answer has to be of."""
        kept = self._memory.get(call.memory_key) if call.spec.cache and self.doubt(call) is None else None
        if kept is None:
            return state
        if kept.outcome is None:
            self.doubts[call.key] = (
                "an equal call before it got no recorded answer, so what its cache holds is not known"
            )
            return state
        if kept.state == state:  # its body says the same, also where it ran: beside another call, or after the time
            here = self._matcher.fresh_at(call.asked, state)
            if here is not None:
                return Serving("exact", here, state=state)
        elif call.spec.cache_s is not None:
            return self._state.timed(state, self._course(call))
        return self._repeat(call, self._matcher.at(call.asked))

    def _repeat(self, call: Call, here: PastCall | None) -> Serving:
        """Answer a cacheable call from the agent's memory, as the kernel does; `here` is the recorded call of its place."""
        outcome = self._memory[call.memory_key].outcome
        assert outcome is not None  # noqa: S101 - it is remembered
        rung = outcome.rung or "exact"
        if rung in GROUNDED:
            rung = "reordered" if here is None else "exact"
        return Serving(rung, here, replace(outcome, cached=True))

    def _take(self, call: Call, now: str) -> Match | None:
        """Return the recorded call, as stale where something speaks against it."""
        try:
            match = self._matcher.take(call.asked, now)
        except AmbiguousResultError as error:
            self.stops += 1
            self._note_diverged(call, str(error))
            raise
        doubt = self.doubt(call)
        return match if match is None or doubt is None else match._replace(rung="stale", why=doubt)

    def _why_stale(self, call: Call, match: Match) -> str:
        recorded, depends = match.call, touched(call.spec).depends
        if match.why is not None:
            return f"{call}; it was recorded (event {recorded.seq}), but its answer may be wrong: {match.why}"
        then = self._past.state.last(depends, recorded.log_at) or "none"
        now = self._state.last(depends) or "none"
        how = f"the last side effect before it was {then}, in the replay it is {now}"
        how = how if then != now else f"{how} too, but others, arguments or the time differ"
        return f"{call}; it was recorded (event {recorded.seq}) in another state of the world, so its answer may be wrong: {how}"

    def _follow(self, call: Call, serving: Serving) -> None:
        """Take in what a call does, or may do, to the world."""
        recorded, asked = serving.call, call.asked
        what, touches = f"{call.spec.name} by {agent_path(call.context.owner)}", touched(call.spec)
        if serving.rung in GROUNDED and asked.identity is not None:
            inner, adrift = (NOTHING, False) if recorded is None else (recorded.inner_writes, recorded.adrift)
            name = call_name(call.context.owner, call.spec.name, asked.identity)
            self._state.follow(name, touches.writing(inner), what, course=self._course(call), adrift=adrift)
            return
        through_others = self._past.acting.get((agent_path(call.context.owner), call.spec.name), NOTHING)
        writes = union(touches.writes, through_others)
        self._state.lose(writes, f"{what} ({serving.rung}: what it did is not known)")

    async def _made(self, call: Call, serving: Serving) -> Outcome:
        """Return what a function makes up, or what the tool itself returns."""
        if serving.missed is not None:
            return await simulated(policy_of(self._on_missing, call.spec), serving.missed)
        assert call.given is not None  # noqa: S101 - `on_missing` was checked
        return await call.given.run(call.arguments, call.context)

    def _known(self, serving: Serving) -> Outcome | None:
        """Return what a call gets that is known already; None when it has to be made."""
        recorded = None if serving.call is None else serving.call.completed
        if serving.outcome is not None or recorded is None:
            return serving.outcome
        error = recorded.error
        return Outcome(
            ok=recorded.ok,
            result=self._rebinding.restored(recorded.result),
            error=None if error is None else self._rebinding.restored_model(error),
            cached=recorded.cached,
            abandoned=recorded.abandoned,
            ended=recorded.ended,
        )

    def _remember(self, call: Call, serving: Serving, outcome: Outcome) -> None:
        """Keep what the agent's memory has of a cacheable call from now on."""
        if not call.spec.cache or outcome.cached:
            return
        # Nobody knows whether what it held before would have answered, unless this answer is sure.
        is_known = serving.rung in GROUNDED or serving.rung == "override" or call.memory_key not in self._memory
        if outcome.ok and is_known:
            self._memory[call.memory_key] = Remembered(outcome, serving.state)
        elif outcome.ok or serving.rung in ("stale", "synthetic-error"):
            self._memory[call.memory_key] = Remembered(None, serving.state)

    def _why_missing(self, call: Call) -> ReplayError:
        asked = call.asked
        here, same = self._matcher.unanswered(asked), self._matcher.same(asked)
        refused = next((each for each in ([here] if here else same) if each.refusal is not None), None)
        if refused is not None and refused.refusal is not None and not any(each.answered for each in same):
            why = (
                f"when it was recorded (event {refused.seq}) it was refused and did not run: {refused.refusal.message}"
            )
            return UnrecordedCallError(f"{call}; {why}")
        if here is not None:
            return RecordingEndedError(f"{call}; the recording has no answer to it (event {here.seq})")
        calls = [each for source in asked.sources for each in self._nearby[source, asked.tool]]
        others = [each for source in asked.sources for each in self._nearby[source, ""]]
        return UnrecordedCallError(describe_unserved(call.context, call.arguments, calls or others, same))

    def _rule_for(self, call: Call) -> ResultOverride | None:
        """Return the first override that means this call."""
        chosen = None
        for number, rule in enumerate(self._results):
            if rule.fits(call.spec.name, call.arguments):
                place, self.fitted[number] = self.fitted[number], self.fitted[number] + 1
                if chosen is None and rule.nth in (None, place):
                    chosen = rule
                    self.used.add(number)
        return chosen

    def _note_served(self, call: Call, rung: Rung, recorded: PastCall | None) -> None:
        self.rungs[rung] += 1
        source = None if recorded is None else recorded.answer_seq
        if recorded is not None:
            self._sources[call.key] = recorded.started.call_id
        call.context.session.emit(ReplayServed(call_id=call.context.call_id, rung=rung, source_seq=source))

    def _note_diverged(self, call: Call, what: str) -> None:
        context = call.context
        where = f"{context.owner}, turn {context.iteration}, call {context.call_id}"
        actual: dict[str, JsonValue] = {"tool": call.spec.name, "arguments": call.arguments}
        context.session.emit(ReplayDiverged(what=what, where=where, call_id=context.call_id, actual=actual))


def _rung_of(match: Match) -> Rung:
    """Return the rung; what was no real answer in a replay that is now replayed is none here."""
    recorded = None if match.call.completed is None else match.call.completed.rung
    return recorded if recorded is not None and recorded in KEPT else match.rung
