"""A trace as a run: the events, in an order that a run of ours could have had.

Calls that a model asked for at once stand one after the other, in the order in which it asked: whether they needed each
other nobody knows, and so a replay finds each in the state that it was answered in. Times are those of the spans, but never
go backwards; durations are always those of the spans.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from playhead.importing.calls import NO_RESULT, ModelCalls, as_it_ran, completed_call, started_call, told_result
from playhead.importing.conventions import stated_ending
from playhead.importing.findings import Findings, is_hidden
from playhead.importing.headers import beginning_of, toolbox_of
from playhead.importing.pairing import turns_of
from playhead.importing.values import NOTHING, parsed_json
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
from playhead.trace.events.run import ANSWERED, NOT_KNOWN
from playhead.trace.finish_reasons import INCOMPLETE, incomplete
from playhead.trace.owners import owner_inside
from playhead.trace.spending import Spent
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.importing.agents import ToolItem, Work
    from playhead.importing.pairing import Asked, Turn
    from playhead.trace.events import EventBase, ToolCallCompleted, ToolCallStarted
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
        self._is_agent = bool(work.agents) or owner == ROOT
        self._findings = findings if self._is_agent else Findings()  # no replay runs what is in a tool's body
        self._read_only = read_only
        self.begun = beginning_of(work, self._findings)
        self._otherwise = Findings() if self.begun.is_own else self._findings
        """What a replay's plain loop would do otherwise; our own loop does the same again."""
        self._turns = turns_of(work, self._findings, self._otherwise)
        self._tools = toolbox_of(work, self._turns, self._findings, is_agent=self._is_agent, read_only=read_only)
        self._positions: Counter[int | None] = Counter()
        self.spent = Spent()
        self._models = ModelCalls(self._tools, self.spent, self._findings, self._otherwise)

    def run(self) -> None:
        """Write what happened, from the tools to the last call."""
        start_ns = min((item.span.start_ns for item in self._work.items), default=0)
        if self._tools.specs:
            self._emit(start_ns, None, ToolsDefined(first_id=0, tools=tuple(self._tools.specs)))
        for turn in self._turns:
            self._turn(turn)

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
        if None in [each.span.end_ns for each in self._work.outermost or self._work.items]:
            return None
        last, speaker = self._models.last, self._work.speaker
        said = last if isinstance(last, LlmResponded) and not last.tool_calls and self._models.last_is_known else None
        output = self._output(None if said is None else said.text)
        error = None if speaker is None else speaker.error
        if error is None and output is None and isinstance(last, LlmFailed):
            error = last.error  # as a run of ours ends
        concluded = NOT_KNOWN if said is None else incomplete(said.finish_reason) or "end_turn"
        if error is not None:
            concluded = "llm_error" if isinstance(last, LlmFailed) else "error"
        stated = (stated_ending(each.span) for each in self._work.outermost)
        terminated_by = next(filter(None, stated), concluded)
        if output == "" and terminated_by in INCOMPLETE.values():
            output = None  # an answer that was cut off before its first word is none
        return {
            "status": "failed" if error is not None else "done",
            "terminated_by": terminated_by,
            "terminated_source": SOURCE,
            "output": to_json(output),
            "error": error.message if error is not None else None,
            **self.spent.total()._asdict(),
            "iterations": 0 if self._models.number is None else self._models.number + 1,
            "duration_ms": max((each.span.duration_ms for each in self._work.agents), default=0.0),
        }

    def _output(self, text: str | None) -> Any:  # noqa: ANN401 - any JSON value
        """Return the agent's output: what its spans say, which should be what the model said last."""
        output = NOTHING if self._work.speaker is None else self._work.speaker.reading.output
        if text is None:
            return None if output is NOTHING else output
        is_state = isinstance(output, dict) and ("messages" in output or "generations" in output)
        said = output.strip() if isinstance(output, str) else output
        if output is NOTHING or is_state or is_hidden(output) or text.strip() == said or parsed_json(text) == output:
            return text.strip()
        self._otherwise.doubt("the run's output is not what the model said last, which is what a replay gives")
        return output

    def _turn(self, turn: Turn) -> None:
        calls: tuple[ToolCall, ...] = ()
        if turn.model is not None:
            # known before its events are written: what failed and came again belongs to the same turn
            events: list[tuple[int, EventBase]] = []
            outcome = self._models.record(turn.model, lambda time_ns, event: events.append((time_ns, event)))
            calls = outcome.tool_calls if isinstance(outcome, LlmResponded) else ()
            for time_ns, event in events:
                first = self._models.number == 0 and isinstance(event, MessageAdded)
                self._emit(time_ns, None if first else self._iteration, event)
        is_last = turn is self._turns[-1]
        for asked, call in zip(turn.asked, calls, strict=False):
            self._asked(asked, call, is_last=is_last)
        for item in turn.by_program:
            self._call(item, None, None)
        if is_last and calls:
            self._otherwise.doubt("the run ended on the calls of tools; a replay asks the model once more")

    @property
    def _iteration(self) -> int | None:
        return self._models.number if self._is_agent else None

    def _asked(self, asked: Asked, call: ToolCall, *, is_last: bool) -> None:
        """Write a call that a model asked for, by its span or by what a later prompt tells of it."""
        if call.arguments is None and call.raw_arguments is not None:
            self._otherwise.doubt("calls whose arguments are no JSON object, which a replay answers itself", call.name)
        if asked.item is not None:
            self._call(asked.item, call, asked)
        elif asked.told is not None:
            started = self._start(0, call, by_program=False)
            self._complete(0, told_result(started, asked.told, self._findings), asked)
        elif is_last:
            self._findings.doubt("the last answer asks for calls of which the spans show no run", call.name)
        else:
            self._start(0, call, by_program=False)
            self._findings.missing(NO_RESULT, call.name)

    def _call(self, item: ToolItem, call: ToolCall | None, asked: Asked | None) -> None:
        ran, position = as_it_ran(item, call, self._otherwise), self._positions[self._iteration]
        if call is None:
            call_id = self._models.call_id(item.reading.call_id, f"call_{position}")
            ran = ran.model_copy(update={"id": call_id})
        started = self._start(item.span.start_ns, ran, by_program=call is None)
        output: Any = NOTHING
        if item.inside is not None:
            output = self._inside(
                item.inside, owner_inside(self._owner, started.tool, self._iteration, position), started
            )
        told = None if asked is None else asked.told
        completed = completed_call(item, started, output, told, self._findings, self._otherwise)
        if completed is not None:
            self._complete(item.span.end_ns or item.span.start_ns, completed, asked)

    def _start(self, time_ns: int, call: ToolCall, *, by_program: bool) -> ToolCallStarted:
        request, position = None if by_program else self._models.number, self._positions[self._iteration]
        self._positions[self._iteration] += 1
        started = started_call(call, self._findings, position=position, request=request)
        self._emit(time_ns, self._iteration, started)
        return started

    def _complete(self, time_ns: int, completed: ToolCallCompleted, asked: Asked | None) -> None:
        self._emit(time_ns, self._iteration, completed)
        if asked is not None:
            self._models.thread.completed(completed, asked.call.id)

    def _inside(self, work: Work, owner: str, called: ToolCallStarted) -> Any:  # noqa: ANN401 - an agent's output
        """Write what happened inside a call; return the output of the agent that it entered, if it did."""
        inner = Conversion(work, owner, self._emit_at, self._findings, read_only=self._read_only)
        if work.agents:
            task = called.args.get("task") if isinstance(called.args, dict) else None
            asked = task if isinstance(task, str) else inner.begun.task
            started = AgentStarted(agent=inner.begun.header, task=asked, parent=self._owner, call_id=called.call_id)
            self._emit_at(work.agents[0].span.start_ns, owner, None, started)
        inner.run()
        self.spent.join(inner.spent)
        ending = inner.ending() if work.agents else None
        if ending is None:
            return NOTHING
        self._emit_at(work.agents[0].span.end_ns or 0, owner, None, AgentCompleted(**ending))
        return NOTHING if ending["output"] is None else ending["output"]

    def _emit(self, time_ns: int, iteration: int | None, event: EventBase) -> None:
        self._emit_at(time_ns, self._owner, iteration, event)
