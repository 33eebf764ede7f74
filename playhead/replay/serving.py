"""What a call of a replay gets: its recorded answer, an override, or what becomes of calls that have none.

It is decided in one place and at once, when the call is checked, so calls that run beside each other never race for a
recorded answer. Nothing real runs here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from playhead.errors import (
    AmbiguousResultError,
    RecordingEndedError,
    ReplayError,
    StaleResultError,
    UnrecordedCallError,
)
from playhead.kernel.tools import Outcome
from playhead.replay.history import Effect, State
from playhead.replay.misses import describe_unserved, name_call
from playhead.replay.missing import MissedCall, no_recording, simulated
from playhead.trace.events import ReplayDiverged, ReplayServed
from playhead.trace.events.tools import GROUNDED
from playhead.trace.owners import agent_path
from playhead.trace.values import content_hash, from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.kernel.tool_context import ToolContext
    from playhead.replay.history import Past, PastCall
    from playhead.replay.matching import Asked, Match, Matcher
    from playhead.replay.missing import OnMissing
    from playhead.replay.overrides import ToolResult
    from playhead.replay.redacted import Rebinding
    from playhead.trace.events.tools import Rung
    from playhead.trace.types import ToolSpec
    from playhead.trace.values import JsonValue

KEPT: Final = frozenset({"simulated", "override", "fault"})
"""Rungs that an answer keeps when a replay is itself replayed: it was never a real one."""
COMPARED_CALLS: Final = 50
"""Recorded calls that a message looks for the nearest one among: a replay of many misses must not take the square."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call as a tool is given it."""

    spec: ToolSpec
    arguments: dict[str, JsonValue]
    context: ToolContext

    @property
    def key(self) -> tuple[str, str]:
        """Owner and id."""
        return self.context.owner, self.context.call_id

    @property
    def memory_key(self) -> tuple[str, str]:
        """Where the run's memory has the result of a cacheable call."""
        return self.spec.name, content_hash(self.arguments)

    def __str__(self) -> str:
        """Return who calls what, where."""
        return name_call(self.context, self.arguments)


@dataclass(frozen=True, slots=True)
class Serving:
    """What a call is going to get."""

    call: PastCall | None = None
    """The recorded call; None when it is simulated, or an agent that has none."""
    rung: Rung = "exact"
    missed: MissedCall | None = None
    """What a function is to simulate."""


class Answers:
    """Gives the calls of one replay their answers, and counts how."""

    def __init__(
        self,
        past: Past,
        matcher: Matcher,
        on_missing: OnMissing,
        results: tuple[ToolResult, ...],
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
        self._sources: dict[tuple[str, str], str] = {}
        self.open: dict[tuple[str, str], Serving] = {}
        """What was decided for calls that are not over, by owner and id."""
        self._matcher = matcher
        self._state = State(past.effects)
        self._on_missing = on_missing
        self._results = results
        self._rebinding = rebinding
        self._known = _by_owner_and_tool(past.calls)

    def source_of(self, owner: str, call_id: str) -> str | None:
        """Return the id of the recorded call that answers a call, or None when none does."""
        return self._sources.get((owner, call_id))

    def begin(self, call: Call, asked: Asked) -> Outcome | None:
        """Decide what a function's call gets; return its outcome when there is nothing to approve or to wait for.

        Raises:
            UnrecordedCallError, StaleResultError, RecordingEndedError: under `strict` there is nothing to serve.
            AmbiguousResultError: there is more than one answer, whatever `on_missing` says.
        """
        match = self._take(call, asked)
        remembered, _ = call.context.cache.get(call.memory_key, (None, 0)) if _remembers(call) else (None, 0)
        if remembered is not None:
            return self._remember(call, remembered, match)
        if match is None:
            return self.miss(call, self._why_missing(call, asked))
        if match.rung == "stale" and not self._serves_stale(call, match.call):
            return None
        return self._serve(call, match)

    async def finish(self, call: Call) -> Outcome:
        """Return what was decided."""
        serving = self.open.pop(call.key)
        if serving.missed is not None:
            assert callable(self._on_missing)  # noqa: S101 - else nothing would be simulated
            return await simulated(self._on_missing, serving.missed)
        assert serving.call is not None  # noqa: S101 - one of both is there
        return self._outcome(serving.call, serving.rung)

    def overridden(self, call: Call, asked: Asked) -> Outcome | None:
        """Return what the call is told to answer, if it is; its recorded answer is used up by that."""
        rule = self._rule_for(call)
        if rule is None:
            return None
        match: PastCall | None = None
        with suppress(AmbiguousResultError):  # an override is the answer to that
            if call.spec.kind == "agent":
                match = next(iter(self._matcher.enter(asked)), None)
            else:
                found = self._matcher.take(asked, self._state.now)
                match = None if found is None else found.call
        if not call.spec.read_only or (match is not None and match.effect):
            self._state.lose(f"the answer of {call.spec.name} before it was overridden, so nobody knows what it did")
        self._note_served(call, "override", match)
        if rule.error is not None:
            return replace(Outcome.failure("ToolError", rule.error), rung="override")
        return Outcome(ok=True, result=to_json(rule.result), rung="override")

    def miss(self, call: Call, error: ReplayError) -> Outcome | None:
        """Do what is to be done when nothing that was recorded answers a call.

        Raises:
            ReplayError: the one given, under `strict`.
        """
        why = str(error)
        self._note_diverged(call, why)
        if self._on_missing == "strict":
            self.stops += 1
            raise error
        if callable(self._on_missing):
            self._simulate(call, why)
            return None
        self._note_served(call, "synthetic-error", None)
        return no_recording(why)

    def note_foreign(self, call: Call) -> None:
        """Note an agent whose task none of its name had: its tools answer what they answered for the others."""
        self.foreign[call.spec.name] += 1
        self._note_diverged(
            call, f"{call}; no recorded agent had this task, so its tools answer as they did for others"
        )

    def _take(self, call: Call, asked: Asked) -> Match | None:
        """Return the recorded call; one whose answer was stale in a replay that is now replayed stays so."""
        try:
            match = self._matcher.take(asked, self._state.now)
        except AmbiguousResultError as error:
            self.stops += 1
            self._note_diverged(call, str(error))
            raise
        if match is not None and match.call.completed is not None and match.call.completed.rung == "stale":
            return match._replace(rung="stale")
        return match

    def _serve(self, call: Call, match: Match) -> Outcome | None:
        recorded, rung = match.call, _rung_of(match)
        self._note_served(call, rung, recorded)
        if recorded.effect:
            self._state.add(_effect(call))
        if recorded.refused:
            return self._outcome(recorded, rung)
        if _remembers(call) and rung in GROUNDED and recorded.completed is not None and recorded.completed.ok:
            call.context.cache[call.memory_key] = (self._outcome(recorded, rung), 0)
        self.open[call.key] = Serving(recorded, rung)
        return None

    def _remember(self, call: Call, remembered: Outcome, match: Match | None) -> Outcome:
        """Answer a cacheable call again: so would the run's own memory, whatever has happened meanwhile."""
        rung: Rung = "exact" if match is not None and match.in_place else "reordered"
        self._note_served(call, rung, None if match is None else match.call)
        return replace(remembered, cached=True, rung=rung)

    def _serves_stale(self, call: Call, recorded: PastCall) -> bool:
        """Return whether an answer of another state is served all the same; else a function simulates the call."""
        if recorded.overlapped:
            how = "a side effect of another agent ran beside it, and nothing says which came first"
        elif recorded.completed is not None and recorded.completed.rung == "stale":
            how = "it was stale already in the recording, which is a replay"
        else:
            how = self._state.difference(recorded.effects_before)
        why = f"{call}; it was recorded (event {recorded.seq}) in another state of the world, so its answer may be wrong: {how}"
        self._note_diverged(call, why)
        if self._on_missing == "strict":
            self.stops += 1
            raise StaleResultError(why)
        if callable(self._on_missing):
            self._simulate(call, why, None if recorded.completed is None else recorded.completed.result)
            return False
        return True

    def _simulate(self, call: Call, why: str, stale: JsonValue = None) -> None:
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
        if not call.spec.read_only:
            self._state.add(_effect(call))
        self._note_served(call, "simulated", None)
        self.open[call.key] = Serving(rung="simulated", missed=missed)

    def _why_missing(self, call: Call, asked: Asked) -> ReplayError:
        recorded = self._matcher.unanswered(asked)
        if recorded is not None:
            return RecordingEndedError(f"{call}; the recording has no answer to it (event {recorded.seq})")
        calls = [each for source in asked.sources for each in self._known[source, asked.tool]]
        others = [each for source in asked.sources for each in self._known[source, ""]]
        same = self._matcher.same(asked)
        return UnrecordedCallError(describe_unserved(call.context, call.arguments, calls or others, same))

    def _outcome(self, recorded: PastCall, rung: Rung) -> Outcome:
        completed = recorded.completed
        assert completed is not None  # noqa: S101 - only answered calls are served
        error = completed.error
        return Outcome(
            ok=completed.ok,
            result=self._rebinding.restored(completed.result),
            error=None if error is None else self._rebinding.restored_model(error),
            cached=completed.cached,
            abandoned=completed.abandoned,
            ended=completed.ended,
            rung=rung,
        )

    def _rule_for(self, call: Call) -> ToolResult | None:
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
        context.session.emit(ReplayDiverged(what=what, where=where, actual=actual))


def _remembers(call: Call) -> bool:
    """Return whether a repeated call would be answered from memory whenever it comes: in a replay no time has passed."""
    return call.spec.cache and call.spec.cache_s is None


def _rung_of(match: Match) -> Rung:
    """Return the rung; what was no real answer in a replay that is now replayed is none here."""
    recorded = None if match.call.completed is None else match.call.completed.rung
    return recorded if recorded is not None and recorded in KEPT else match.rung


def _effect(call: Call) -> Effect:
    return Effect(agent_path(call.context.owner), call.spec.name, call.context.args_hash)


def _by_owner_and_tool(calls: list[PastCall]) -> Mapping[tuple[str, str], list[PastCall]]:
    """Return the first calls by owner and tool, and under no tool the first of the owner: for messages only."""
    found: dict[tuple[str, str], list[PastCall]] = defaultdict(list)
    for call in calls:
        for tool in (call.started.tool, ""):
            if len(found[call.owner, tool]) < COMPARED_CALLS:
                found[call.owner, tool].append(call)
    return found
