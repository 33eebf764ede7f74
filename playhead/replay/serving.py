"""Answers the calls of a replay: with the recorded answer, an override, or according to `on_missing`.

The answer is chosen when the call is about to run or to be approved, so a call that the kernel or a killswitch refuses
uses none. Only tools that are `live` under `on_missing` run here.
"""

from __future__ import annotations

from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.errors import AmbiguousResultError, ReplayError, StaleResultError, UnrecordedCallError, nearest
from playhead.kernel.models.base import Model
from playhead.kernel.outcome import Outcome
from playhead.replay.calls import NOTHING, Call, Facts, Past, State, touched, union
from playhead.replay.matching import Match, Matcher, Place, Places, describe_miss, name_call
from playhead.replay.missing import MissedCall, Policies, policy_of, simulated, simulated_by
from playhead.replay.overrides import ResultOverride, ToolFault
from playhead.trace.events import ErrorInfo, ReplayDiverged, ReplayServed, ToolCallCompleted, ToolCallStarted
from playhead.trace.owners import agent_path
from playhead.trace.values import JsonValue, content_hash, from_json, to_json

if TYPE_CHECKING:
    from playhead.diagnose.recording import Recording
    from playhead.kernel.session import Tool, ToolContext
    from playhead.trace.events.tools import Rung
    from playhead.trace.line import Record
    from playhead.trace.types import ToolSpec

KEPT: Final = frozenset({"simulated", "override", "fault", "live"})
"""Rungs that an answer keeps when a replay is itself replayed, because the original run never gave it."""


FAULTS: Final = {
    "error": Outcome.failure("ToolError", "the call failed"),
    "timeout": replace(Outcome.failure("Timeout", "the call ran into its time limit"), ended="timeout"),
    "empty": Outcome(ok=True, result=""),
}
"""What a call answers under each fault."""
GIVEN: Final = ("override", "fault")
"""Rungs of answers that the caller asked for; they count neither for nor against the grounds of a verdict."""
GROUNDED: Final = frozenset({"exact", "reordered", "normalised"})
"""Rungs of recorded answers that the tool gave in the same state of the world."""


class Serving(NamedTuple):
    """The answer chosen for a call."""

    rung: Rung
    call: Call | None = None
    """The recorded call that provides the result or the approval."""
    outcome: Outcome | None = None
    """The outcome, if it is known without a recorded call."""
    missed: MissedCall | None = None
    """The call that a function simulates."""

    @property
    def is_made_up(self) -> bool:
        """Whether the call needs no approval, because it has no recorded answer and does not run."""
        return self.rung in ("simulated", "synthetic-error", *GIVEN)


@dataclass(slots=True)
class Asked:
    """A call of the replay that will be approved or run, unless something refuses it."""

    call: Call
    place: Place
    """The recorded counterpart of its agent."""
    spec: ToolSpec
    arguments: dict[str, JsonValue]
    context: ToolContext
    given: Tool | None
    """The tool from code, if code was given."""
    state: str | None = None
    """The state in which it is answered."""
    doubt: str | None = None
    """Why its recorded answer may not be what the agent's cache would answer."""
    serving: Serving | None = None

    @property
    def memory_key(self) -> tuple[str, str, str]:
        """The key of a cacheable call's result in the agent's cache."""
        return self.context.owner, self.spec.name, content_hash(self.arguments)

    def __str__(self) -> str:
        """Return a description of the call and its place."""
        return name_call(self.context, self.arguments)


class Answers:
    """Answers the calls of one replay, and counts the answers by rung."""

    def __init__(
        self, recording: Recording, past: Past, on_missing: Policies, results: tuple[ResultOverride | ToolFault, ...]
    ) -> None:
        self.rungs: Counter[str] = Counter()
        """The number of calls by rung."""
        self.stops = 0
        """Calls without an answer, which ended the replay."""
        self.fitted: Counter[int] = Counter()
        """The number of calls that each result override matched."""
        self.used: set[int] = set()
        """The overrides that answered a call."""
        self.simulated: Counter[str] = Counter()
        """The number of calls that each model simulated."""
        self.foreign: Counter[str] = Counter()
        """The number of agents with an unrecorded task, by name."""
        self._recording = recording
        self._past = past
        self._matcher = Matcher(past)
        self.places = Places(recording, past, self._matcher)
        self._unfit = _unfit(past)
        self._noted: dict[tuple[str, str], Call] = {}
        self._asked: dict[tuple[str, str], Asked] = {}
        self._memory: dict[tuple[str, str, str], tuple[Outcome | None, str | None]] = {}
        self._state = State("replay")
        self.on_missing = on_missing
        """How a call without a recorded answer is answered."""
        self.results = results
        """The result overrides."""

    def grounded(self, *but: str) -> float | None:
        """Return the share of calls whose answer is grounded, 0 to 1, but for those of these rungs; None when there are none."""
        calls = self.rungs.total() + self.stops - sum(self.rungs[rung] for rung in but)
        return sum(self.rungs[rung] for rung in GROUNDED) / calls if calls else None

    def suffice(self, least: float) -> bool:
        """Return whether this share of the calls is grounded, but for what the caller gave, and no override is `unknown`."""
        share = self.grounded(*GIVEN)
        return not self.unknown and (share is None or share >= least)

    @property
    def unknown(self) -> dict[int, str]:
        """The overrides of tools that the recording does not have and the replay did not call: nothing says what they do.

        By number, with the nearest tool that the recording has.
        """
        known = {name for tools in self._past.specs.values() for name in tools}
        unused = ((number, rule.tool) for number, rule in enumerate(self.results) if number not in self.used)
        return {number: nearest(tool, known) for number, tool in unused if tool not in known}

    def note(self, record: Record) -> None:
        """Register a call, whether or not it is refused."""
        event = record.event
        if isinstance(event, ToolCallStarted):
            call = self._noted[record.owner, event.call_id] = Call(record.owner, event, record.iteration, record.seq)
            call.course = self._state.begin(call.child, call.identity)
        elif isinstance(event, ToolCallCompleted) and not event.end.body_ran:
            self._state.refuse()

    def check(
        self, spec: ToolSpec, arguments: dict[str, JsonValue], context: ToolContext, given: Tool | None
    ) -> ErrorInfo | Outcome | None:
        """Return the reason why a call cannot run: from the code if given, otherwise as recorded for these arguments."""
        call = self._noted.get((context.owner, context.call_id))
        if call is None:
            return ErrorInfo(type="Cancelled", message="the run had ended, so the call is not recorded")
        call.spec = spec
        asked = Asked(call, self.places.of(context.owner), spec, arguments, context, given)
        problem: ErrorInfo | Outcome | None = None
        if given is not None:
            problem = given.check(arguments, context)
        else:
            keys = ((source, spec.name, call.identity) for source in asked.place.sources)
            problem = next((self._unfit[key] for key in keys if key in self._unfit), None)
        if problem is None:
            self._asked[context.owner, context.call_id] = asked
        return problem

    def decided(self, owner: str, call_id: str) -> Serving | None:
        """Return the answer of an expected call; None for a call of a built-in tool.

        Raises:
            UnrecordedCallError, StaleResultError: there is nothing to serve, and the policy is `strict`.
            AmbiguousResultError: there are several different answers, under any policy.
        """
        asked = self._asked.get((owner, call_id))
        if asked is not None and asked.serving is None:
            served = self._entered if asked.spec.kind == "agent" else self._served
            asked.serving = self._override_of(asked) or served(asked)
        return None if asked is None else asked.serving

    def source_of(self, owner: str) -> str:
        """Return the recorded owner that an owner of the replay is; empty for one that was not recorded."""
        place = self.places.of(owner)
        return place.sources[0] if place.is_owner else ""

    def facts_for(self, facts: Facts, owner: str, name: str, key: str) -> deque[JsonValue]:
        """Return the recorded answers to a question, or to whether a call may run. Raises like `decided`."""
        serving = self.decided(owner, key) if name == "approval" else None
        if serving is None:
            return facts[self.source_of(owner), name, key]
        if serving.is_made_up:
            why = f"{serving.rung}: nobody was asked and nothing runs"
            return deque([{"approved": True, "why": why, "by": "replay"}])
        call = serving.call
        return deque() if call is None else facts[call.owner, name, call.started.call_id]

    async def answer(self, owner: str, call_id: str) -> Outcome:
        """Return the answer of an expected call. Raises like `decided`."""
        serving, asked = self.decided(owner, call_id), self._asked.pop((owner, call_id))
        assert serving is not None  # noqa: S101 - it was expected
        recorded = serving.call
        if recorded is not None and recorded.denied and serving.outcome is None:
            why = f"{asked}; when it was recorded (event {recorded.seq}) it was not approved, and did not run"
            serving, recorded = self._missed(asked, UnrecordedCallError(why)), None
        self._follow(asked, serving)
        self.rungs[serving.rung] += 1
        seq = None if recorded is None else recorded.answer_seq
        asked.context.session.emit(ReplayServed(call_id=call_id, rung=serving.rung, source_seq=seq))
        outcome = replace(await self._outcome(asked, serving), rung=serving.rung)
        self._remember(asked, serving, outcome)
        return outcome

    # --- the choice ---------------------------------------------------------------------------------------------------

    def _served(self, asked: Asked) -> Serving:
        """Return the answer of a function call."""
        asked.state = self._state.key(touched(asked.spec).depends)
        here = self._matcher.on_course(asked.call, asked.place)
        remembered = self._from_memory(asked) if here is None else None
        if remembered is not None:
            return remembered
        match = Match(here, "exact") if here is not None else self._match(asked)
        if match is None:
            return self._missed(asked, self._why_missing(asked))
        recorded = match.call.completed
        if match.rung == "stale":
            why = StaleResultError(self._why_stale(asked, match))
            if policy_of(self.on_missing, asked.spec) != "lenient":
                return self._missed(asked, why, None if recorded is None else recorded.result)
            self._note_diverged(asked, str(why))
        kept = recorded is not None and recorded.rung in KEPT  # no real answer in a replay that is now replayed
        return Serving(recorded.rung if kept and recorded and recorded.rung else match.rung, match.call)

    def _entered(self, asked: Asked) -> Serving:
        """Return the recording of the agent that a call enters."""
        calls, place = self.places.enter(asked.call), self.places.of(asked.call.child)
        if not place.sources and asked.given is None:
            return self._missed(asked, UnrecordedCallError(f"{asked}; the recording holds no run of this agent there"))
        if not place.is_owner:
            self.foreign[asked.spec.name] += 1
            why = "no recorded agent had this task, so its tools answer as they did for others"
            self._note_diverged(asked, f"{asked}; {why}")
        return Serving("exact", calls[0] if calls else None)

    def _override_of(self, asked: Asked) -> Serving | None:
        """Return the override of a call, if any, which also uses up its recorded answer."""
        rule = None
        for number, each in enumerate(self.results):
            if each.fits(asked.spec.name, asked.arguments):
                nth, self.fitted[number] = self.fitted[number], self.fitted[number] + 1
                if rule is None and each.nth in (None, nth):
                    rule = each
                    self.used.add(number)
        if rule is None:
            return None
        found: Call | None = None
        with suppress(AmbiguousResultError):  # an override is the answer to that
            if asked.spec.kind == "agent":
                found = next(iter(self._matcher.enter(asked.call, asked.place)), None)
            else:
                match = self._matcher.take(asked.call, asked.place, self._state.key(touched(asked.spec).depends))
                found = None if match is None else match.call
        if isinstance(rule, ToolFault):
            return Serving("fault", found, FAULTS[rule.fault])
        failed = None if rule.error is None else Outcome.failure("ToolError", rule.error)
        return Serving("override", found, failed or Outcome(ok=True, result=to_json(rule.result)))

    def _missed(self, asked: Asked, error: ReplayError, stale: JsonValue = None) -> Serving:
        """Return the answer of a call without a recorded answer.

        Raises:
            ReplayError: the given error, if the policy is `strict`.
        """
        why, policy, context = str(error), policy_of(self.on_missing, asked.spec), asked.context
        self._note_diverged(asked, why)
        if policy == "strict":
            self.stops += 1
            raise error
        if policy == "live":
            return Serving("live")
        if policy == "lenient":
            return Serving("synthetic-error", outcome=Outcome.failure("NoRecording", f"no recording: {why}"))
        place = (context.owner, context.iteration, context.position)
        missed = MissedCall(asked.spec.name, from_json(asked.arguments), *place, why, from_json(stale))
        return Serving("simulated", missed=missed)

    def _match(self, asked: Asked) -> Match | None:
        """Return the recorded call, marked as stale if its answer is in doubt."""
        try:
            match = self._matcher.take(asked.call, asked.place, asked.state)
        except AmbiguousResultError as error:
            self.stops += 1
            self._note_diverged(asked, str(error))
            raise
        return match if match is None or asked.doubt is None else match._replace(rung="stale", why=asked.doubt)

    # --- the memory of cacheable tools --------------------------------------------------------------------------------

    def _from_memory(self, asked: Asked) -> Serving | None:
        """Return the answer from the agent's cache, computed as in the kernel."""
        if not asked.spec.cache or asked.memory_key not in self._memory:
            return None
        outcome, state = self._memory[asked.memory_key]
        if outcome is None:
            asked.doubt = "an equal call before it got no recorded answer, so what its cache holds is not known"
        elif asked.spec.cache_s is None or (state is not None and state == asked.state):  # its body says the same
            rung = "reordered" if outcome.rung in GROUNDED else outcome.rung or "exact"
            return Serving(rung, outcome=replace(outcome, cached=True))
        else:
            asked.doubt = "whether the time of its cache was over by then is not known"
        return None

    def _remember(self, asked: Asked, serving: Serving, outcome: Outcome) -> None:
        """Store a cacheable call's result in the agent's cache."""
        if not asked.spec.cache or outcome.cached:
            return
        # Nobody knows whether what it held before would have answered, unless this answer is sure.
        is_known = serving.rung in (*GROUNDED, *GIVEN) or asked.memory_key not in self._memory
        if outcome.ok and is_known:
            self._memory[asked.memory_key] = outcome, asked.state
        elif outcome.ok or serving.rung in ("stale", "synthetic-error"):
            self._memory[asked.memory_key] = None, None

    # --- what an answer is, and does ----------------------------------------------------------------------------------

    def _follow(self, asked: Asked, serving: Serving) -> None:
        """Register the possible side effects of a call."""
        recorded, touches = serving.call, touched(asked.spec)
        if serving.rung in GROUNDED and asked.call.identity is not None:
            if recorded is not None:
                touches = touches._replace(writes=union(touches.writes, recorded.inner_writes))
            self._state.follow(asked.call.name, touches, adrift=recorded is not None and recorded.adrift)
        else:
            acting = self._past.acting.get((agent_path(asked.context.owner), asked.spec.name), NOTHING)
            self._state.lose(union(touches.writes, acting))

    async def _outcome(self, asked: Asked, serving: Serving) -> Outcome:
        """Return a call's outcome: a known one, a function's simulation, or the tool's own result."""
        done = None if serving.call is None else serving.call.completed
        if serving.outcome is not None:
            return serving.outcome
        if done is not None:
            return Outcome(done.ok, done.result, done.error, done.cached, done.abandoned, done.ended)
        if serving.missed is not None:
            policy = policy_of(self.on_missing, asked.spec)
            if isinstance(policy, Model):
                self.simulated[policy.name] += 1
                return await simulated_by(policy, serving.missed, asked.spec, self._examples(asked))
            return await simulated(policy, serving.missed)
        assert asked.given is not None  # noqa: S101 - `on_missing` was checked
        return await asked.given.run(asked.arguments, asked.context)

    def _examples(self, asked: Asked) -> list[tuple[JsonValue, JsonValue]]:
        """Return arguments and results of recorded calls of a tool."""
        done = ((call.started, call.completed) for call in self._past.calls if call.started.tool == asked.spec.name)
        return [(started.args, completed.result) for started, completed in done if completed and completed.ok]

    # --- what is said of it -------------------------------------------------------------------------------------------

    def _why_stale(self, asked: Asked, match: Match) -> str:
        why = match.why or "in another state of the world: other side effects had come before it"
        return f"{asked}; it was recorded (event {match.call.seq}), but its answer may be wrong: {why}"

    def _why_missing(self, asked: Asked) -> ReplayError:
        here, same = self._matcher.at(asked.call, asked.place), self._matcher.same(asked.call, asked.place)
        refused = next((each for each in ([here] if here else same) if each.refusal is not None), None)
        if refused is not None and refused.refusal is not None and not any(each.answered for each in same):
            why = f"(event {refused.seq}) it was refused and did not run: {refused.refusal.message}"
            return UnrecordedCallError(f"{asked}; when it was recorded {why}")
        if here is not None:
            return UnrecordedCallError(f"{asked}; the recording has no answer to it (event {here.seq})")
        if same:
            events = ", ".join(str(call.seq) for call in same)
            why = f"it was recorded (event {events}), and it has been served already or is another call's"
            return UnrecordedCallError(f"{asked}; {why}")
        calls = [call for name in asked.place.sources for call in self._recording.owners[name].calls.values()]
        alike = [call for call in calls if call.started.tool == asked.spec.name]
        return UnrecordedCallError(describe_miss(asked.context, asked.arguments, alike or calls))

    def _note_diverged(self, asked: Asked, what: str) -> None:
        context = asked.context
        where = f"{context.owner}, turn {context.iteration}, call {context.call_id}"
        actual: dict[str, JsonValue] = {"tool": asked.spec.name, "arguments": asked.arguments}
        context.session.emit(ReplayDiverged(what=what, where=where, call_id=context.call_id, actual=actual))


def _unfit(past: Past) -> dict[tuple[str, str, str | None], ErrorInfo]:
    """Return the recorded messages for invalid arguments: without code, nothing else is known of a tool's validation."""
    known = ((call, call.refusal) for call in past.calls if call.identity is not None)
    refused = [(call, error) for call, error in known if error is not None and error.type == "InvalidArguments"]
    return {(call.owner, call.started.tool, call.identity): error for call, error in refused}
