"""A trace as a run: the events, in an order that a run of ours could have had.

Calls that a model asked for at once stand one after the other, in the order in which it asked: whether they needed each
other nobody knows, and so a replay finds each in the state that it was answered in. Times are those of the spans, but never
go backwards; durations are always those of the spans.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from playhead.importing.endings import concluded_ending, otherwise_in_a_replay, output_of, read_otherwise, stated_ending
from playhead.importing.findings import Findings
from playhead.importing.headers import beginning_of
from playhead.importing.matching import match
from playhead.importing.model_calls import CallIds, ModelCalls
from playhead.importing.succession import look_through
from playhead.importing.tool_calls import as_it_ran, completed_call, started_call, told_result
from playhead.importing.toolbox import toolbox_of
from playhead.importing.values import NOTHING
from playhead.trace.events import (
    AgentCompleted,
    AgentStarted,
    FinalAnswer,
    LlmFailed,
    LlmResponded,
    MessageAdded,
    RunCompleted,
    ToolsDefined,
)
from playhead.trace.events.run import ANSWERED
from playhead.trace.finish_reasons import INCOMPLETE
from playhead.trace.owners import owner_inside
from playhead.trace.spending import Spent
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.importing.agents import ToolItem, Work
    from playhead.importing.matching import Turn
    from playhead.importing.pairing import Asked
    from playhead.importing.readings import ForeignMessage
    from playhead.trace.events import ErrorInfo, EventBase, ToolCallStarted
    from playhead.trace.types import ToolCall

    Emit = Callable[[int, str, int | None, EventBase], None]
    """Takes time in nanoseconds, owner, turn and event."""

ROOT: Final = "root"
SOURCE: Final = "import"
"""Who ended an imported run, as far as anybody knows."""


class Conversion:
    """Writes the events of one owner: an agent, or a tool's body."""

    def __init__(
        self, work: Work, owner: str, emit: Emit, findings: Findings, *, read_only: frozenset[str] = frozenset()
    ) -> None:
        self._work = work
        self._owner = owner
        self._emit_at = emit
        self._findings = findings
        self._matched = match(work, is_agent=self._is_agent)
        self._read_only = read_only
        self._tools = toolbox_of(work, self._matched, is_agent=self._is_agent, read_only=read_only)
        self._ids = CallIds()
        self._positions: Counter[int | None] = Counter()
        self.spent = Spent()
        self._models = ModelCalls(self._tools, self._ids, self.spent, findings)
        self.begun = beginning_of(work)

    def run(self) -> None:
        """Write what happened, from the tools to the last call."""
        self._note()
        start_ns = min((item.span.start_ns for item in self._work.items), default=0)
        if self._tools.specs:
            self._emit(start_ns, None, ToolsDefined(first_id=0, tools=tuple(self._tools.specs)))
        for place, spec in enumerate(self._tools.variants, len(self._tools.specs)):
            self._emit(start_ns, None, ToolsDefined(first_id=place, tools=(spec,), offered=True))
        last = self._matched.turns[-1]
        for turn in self._matched.turns:
            self._turn(turn, is_last=turn is last)
        self._findings.rewritten += self._models.thread.rewritten
        self._findings.otherwise += self._models.thread.otherwise
        self._findings.unseen += self._models.thread.unseen

    def complete(self, *, ended: bool) -> None:
        """Write the end of the run, when its spans hold one."""
        ending = self.ending() if ended else None
        if ending is None:
            return
        end_ns = max((each.span.end_ns or 0 for each in self._work.agents), default=0)
        if ending["terminated_by"] in ANSWERED and ending["output"] is not None:
            self._emit(end_ns, None, FinalAnswer(output=ending["output"]))
        self._emit(end_ns, None, RunCompleted(**ending))

    def ending(self) -> dict[str, Any] | None:
        """Return how the agent ended; None when its spans hold no end of it."""
        ends = [each.span.end_ns for each in self._work.outermost or self._work.items]
        if None in ends:
            return None
        last = self._models.last
        is_text = isinstance(last, LlmResponded) and not last.tool_calls and self._models.last_is_known
        text = last.text if is_text and isinstance(last, LlmResponded) else None
        speaker = self._work.speaker
        error = None if speaker is None else speaker.error
        output = output_of(self._work, text)
        if error is None and output is None and isinstance(last, LlmFailed):
            error = last.error  # as a run of ours ends
        number = self._models.number
        terminated_by = self._terminated_by(error, output, text)
        if output == "" and terminated_by in INCOMPLETE.values():
            output = None  # an answer that was cut off before its first word is none
        return {
            "status": "failed" if error is not None else "done",
            "terminated_by": terminated_by,
            "terminated_source": SOURCE,
            "output": to_json(output),
            "error": error.message if error is not None else None,
            **self.spent.total()._asdict(),
            "iterations": 0 if number is None else number + 1,
            "duration_ms": max((each.span.duration_ms for each in self._work.agents), default=0.0),
        }

    def _note(self) -> None:
        findings, pairing = self._findings, self._matched.pairing
        findings.counts.update({f"matched by {how}": count for how, count in pairing.how.items()})
        findings.counts["tool spans that began before the model asked for their call"] += pairing.early
        findings.counts["tool spans of a call that another one answers already, and were put together"] += (
            pairing.doubled
        )
        findings.doubtful += pairing.doubtful
        findings.without_call += self._matched.without_call
        findings.guessed += self._tools.guessed
        findings.unoffered |= bool(self._tools.specs) and not self._tools.offered_known
        if self._is_agent:
            findings.begun.append(self.begun)
            look_through(self._work, findings)

    @property
    def _is_agent(self) -> bool:
        return bool(self._work.agents) or self._owner == ROOT

    def _turn(self, turn: Turn, *, is_last: bool) -> None:
        calls: tuple[ToolCall, ...] = ()
        if turn.model is not None:
            # known before its events are written: what failed and came again belongs to the same turn
            events: list[tuple[int, EventBase]] = []
            outcome = self._models.record(turn.model, lambda time_ns, event: events.append((time_ns, event)))
            calls = outcome.tool_calls if isinstance(outcome, LlmResponded) else ()
            for time_ns, event in events:
                first = self._models.number == 0 and isinstance(event, MessageAdded)
                self._emit(time_ns, None if first else self._iteration, event)
        for asked, call in zip(turn.asked, calls, strict=False):
            self._asked(asked, call, is_last=is_last)
        for item in turn.by_program:
            self._findings.counts["calls that no model asked for"] += 1
            self._call(item, None, self._matched.results.next_of(item.reading.call_id))

    @property
    def _iteration(self) -> int | None:
        return self._models.number if self._is_agent else None

    def _asked(self, asked: Asked, call: ToolCall, *, is_last: bool) -> None:
        if asked.item is not None:
            self._call(asked.item, call, asked.told)
            return
        told = asked.told
        if told is None and is_last:
            self._findings.last_asked.append(call.name)
            return
        started = self._started(call, call.id, by_program=False)
        self._emit(0, self._iteration, started)
        if told is None:
            self._findings.unanswered.append(call.name)
            return
        completed = told_result(started, told, self._findings)
        self._emit(0, self._iteration, completed)
        self._models.thread.completed(completed)

    def _call(self, item: ToolItem, call: ToolCall | None, told: ForeignMessage | None) -> None:
        ran, iteration = as_it_ran(item, call, self._findings), self._iteration
        position = self._positions[iteration]
        call_id = call.id if call is not None else self._ids.take(item.reading.call_id, f"call_{position}")
        started = self._started(ran, call_id, by_program=call is None)
        self._emit(item.span.start_ns, iteration, started)
        output: Any = NOTHING
        if item.inside is not None:
            output = self._inside(item.inside, owner_inside(self._owner, started.tool, iteration, position), started)
        completed = completed_call(item, started, output, told, self._findings)
        if completed is None:
            return
        self._emit(item.span.end_ns or item.span.start_ns, iteration, completed)
        self._models.thread.completed(completed)

    def _started(self, call: ToolCall, call_id: str, *, by_program: bool) -> ToolCallStarted:
        position = self._positions[self._iteration]
        self._positions[self._iteration] += 1
        return started_call(
            call, call_id, self._findings, position=position, request=self._models.number, by_program=by_program
        )

    def _inside(self, work: Work, owner: str, called: ToolCallStarted) -> Any:  # noqa: ANN401 - an agent's output
        """Write what happened inside a call; return the output of the agent that it entered, if it did."""
        findings = self._findings if work.agents else Findings()
        inner = Conversion(work, owner, self._emit_at, findings, read_only=self._read_only)
        if not work.agents:
            inner.run()
            self.spent.join(inner.spent)
            return NOTHING
        task = called.args.get("task") if isinstance(called.args, dict) else None
        first = work.agents[0].span
        asked = task if isinstance(task, str) else inner.begun.task
        started = AgentStarted(agent=inner.begun.header, task=asked, parent=self._owner, call_id=called.call_id)
        self._emit_at(first.start_ns, owner, None, started)
        inner.run()
        self.spent.join(inner.spent)
        ending = inner.ending()
        if ending is None:
            return NOTHING
        self._emit_at(first.end_ns or 0, owner, None, AgentCompleted(**ending))
        return NOTHING if ending.get("output") is None else ending["output"]

    def _terminated_by(self, error: ErrorInfo | None, output: Any, text: str | None) -> str:  # noqa: ANN401
        asked, stated = self._matched.turns[-1].asked, stated_ending(self._work)
        concluded = concluded_ending(error, self._models.last, asked, output, text)
        self._findings.endings += otherwise_in_a_replay(stated, concluded, asked, output, text)
        self._findings.endings += read_otherwise(text, [spec.name for spec in self._tools.specs])
        return stated or concluded

    def _emit(self, time_ns: int, iteration: int | None, event: EventBase) -> None:
        self._emit_at(time_ns, self._owner, iteration, event)
