"""Converts a trace to a run's events, in an order that a run of Playhead could have had.

Parallel calls of one answer are written one after the other, in the model's order. Spans do not say whether the calls depended on
each other, so a replay serves each call in the state in which it was answered. Times are the spans' times, adjusted so that they
never go backwards; durations are the spans' own.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose.spending import Spent
from playhead.importing.findings import Findings
from playhead.importing.headers import beginning_of, tools_of
from playhead.importing.model_calls import ModelCalls
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
    ToolCallCompleted,
    ToolCallStarted,
    ToolsDefined,
)
from playhead.trace.events.run import NOT_KNOWN
from playhead.trace.format import ANSWERED, INCOMPLETE, incomplete
from playhead.trace.owners import owner_inside
from playhead.trace.types import ToolCall, text_of
from playhead.trace.values import as_text, json_hash, to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.importing.agents import Item, Work
    from playhead.importing.messages import ForeignMessage
    from playhead.importing.pairing import AskedCall, Turn
    from playhead.trace.events import EventBase
    from playhead.trace.values import JsonValue

    Emit = Callable[[int, str, int | None, EventBase], None]
    """Takes time in nanoseconds, owner, turn and event."""

ROOT: Final = "root"


class Conversion:
    """Writes the events of one owner: an agent, or a tool's body."""

    def __init__(self, work: Work, owner: str, emit: Emit, findings: Findings) -> None:
        self._work = work
        self._owner = owner
        self._emit_at = emit
        self._is_agent = bool(work.agents) or owner == ROOT
        self._findings = findings if self._is_agent else Findings()  # no replay runs a tool's body
        self.header, self.task = beginning_of(work, self._findings)
        self._turns = turns_of(work, self._findings)
        self._tools = tools_of(work, self._turns, self._findings, is_agent=self._is_agent)
        self._positions: Counter[int | None] = Counter()
        self._spent = Spent()
        self._models = ModelCalls(work, self._tools, self._spent, self._findings)

    def run(self) -> None:
        """Write the events from the tools to the last call."""
        start_ns = min((item.span.start_ns for item in self._work.items), default=0)
        if self._tools:
            self._emit(start_ns, None, ToolsDefined(first_id=0, tools=tuple(self._tools)))
        for turn in self._turns:
            self._turn(turn)

    def complete(self, *, ended: bool) -> None:
        """Write the end of the run, if its spans contain one."""
        ending = self._ending() if ended else None
        if ending is None:
            return
        end_ns = max((each.span.end_ns or 0 for each in self._work.agents), default=0)
        if ending["terminated_by"] in ANSWERED and ending["output"] is not None:
            self._emit(end_ns, None, FinalAnswer(output=ending["output"]))
        self._emit(end_ns, None, RunCompleted(**ending))

    def _ending(self) -> dict[str, Any] | None:
        """Return how the agent ended; None if its spans do not contain its end."""
        if None in [each.span.end_ns for each in self._work.outermost or self._work.items]:
            return None
        last, speaker = self._models.last, self._work.speaker
        answer = last if isinstance(last, LlmResponded) and not last.tool_calls and self._models.last_is_known else None
        output = self._output(None if answer is None else answer.text)
        error = None if speaker is None else speaker.reading.error
        if error is None and output is None and isinstance(last, LlmFailed):
            error = last.error
        terminated_by = NOT_KNOWN if answer is None else incomplete(answer.finish_reason) or "end_turn"
        if error is not None:
            terminated_by = "llm_error" if isinstance(last, LlmFailed) else "error"
        stated = next((each.reading.agent.terminated_by for each in self._work.outermost), None) or terminated_by
        is_other = answer is not None and (error is not None or stated != terminated_by)
        self._findings.doubt("the run did not end as a replay does after the model's last answer", times=is_other)
        if output == "" and stated in INCOMPLETE.values():
            output = None  # an answer that was cut off before its first word
        return {
            "status": "failed" if error is not None else "done",
            "terminated_by": stated,
            "terminated_source": "import",
            "output": to_json(output),
            "error": error.message if error is not None else None,
            **self._spent.total()._asdict(),
            "iterations": 0 if self._models.number is None else self._models.number + 1,
            "duration_ms": max((each.span.duration_ms for each in self._work.agents), default=0.0),
        }

    def _output(self, text: str | None) -> Any:  # noqa: ANN401 - any JSON value
        """Return the agent's output from its spans, which should equal the model's last answer."""
        output = NOTHING if self._work.speaker is None else self._work.speaker.reading.agent.output
        if text is None:
            return None if output is NOTHING else output
        is_state = isinstance(output, dict) and ("messages" in output or "generations" in output)  # LangGraph's
        stripped = output.strip() if isinstance(output, str) else output
        if output is NOTHING or is_state or text.strip() == stripped or parsed_json(text) == output:
            return text.strip()
        self._findings.doubt("the run's output is not the model's last answer, which is the output of a replay")
        return output

    def _turn(self, turn: Turn) -> None:
        calls: tuple[ToolCall, ...] = ()
        if turn.model is not None:
            for time_ns, event in self._models.record(turn.model):
                first = self._models.number == 0 and isinstance(event, MessageAdded)
                self._emit(time_ns, None if first else self._iteration, event)
            last = self._models.last
            calls = last.tool_calls if isinstance(last, LlmResponded) else ()
        is_last = turn is self._turns[-1]
        for asked, call in zip(turn.asked, calls, strict=False):
            self._asked(asked, call, is_last=is_last)
        for item in turn.by_program:
            self._call(item, self._program_call(item), by_program=True)
        if is_last and calls:
            self._findings.doubt("the run ended with calls of tools; a replay asks the model once more")

    @property
    def _iteration(self) -> int | None:
        return self._models.number if self._is_agent else None

    # --- calls --------------------------------------------------------------------------------------------------------

    def _asked(self, asked: AskedCall, call: ToolCall, *, is_last: bool) -> None:
        """Write a call that a model asked for, from its span or from a later prompt."""
        if call.arguments is None and call.raw_arguments is not None:
            self._findings.doubt(
                "calls whose arguments are not a JSON object, which a replay answers itself", call.name
            )
        if is_last and asked.item is None and asked.shown is None:
            self._findings.doubt("the last answer asks for calls that the spans do not show", call.name)
            return
        ran = call if asked.item is None else self._as_it_ran(asked.item, call)
        completed = self._call(asked.item, ran, asked.shown)
        if completed is not None:
            self._models.thread.completed(completed, asked.call.id)

    def _program_call(self, item: Item) -> ToolCall:
        """Return a call that no model asked for."""
        reading = item.reading.tool
        call_id = self._models.call_id(reading.call_id or f"call_{self._positions[self._iteration]}")
        arguments = None if reading.arguments is None else to_json(reading.arguments)
        return ToolCall(id=call_id, name=item.name or "tool", arguments=arguments, raw_arguments=reading.raw)

    def _as_it_ran(self, item: Item, call: ToolCall) -> ToolCall:
        """Return a call with the name and the arguments of its span, which should equal the model's."""
        reading, name = item.reading.tool, item.name or "tool"
        if item.reading.kind == "agent":
            return call  # its span holds a prompt, not arguments
        if call.name != name:
            self._findings.doubt("calls ran under other names than the model gave", f"{call.name} as {name}")
        ran = None if reading.arguments is None else to_json(reading.arguments)
        if ran is not None and json_hash(ran) != json_hash(call.arguments):
            self._findings.doubt("calls ran with other arguments than the model gave", call.name)
            return call.model_copy(update={"name": name, "arguments": ran, "raw_arguments": None})
        if reading.raw is not None and call.arguments is not None:
            # LangChain writes a single argument bare, and several as Python does
            forms = as_text(call.arguments), str(call.arguments), *map(as_text, [*call.arguments.values()][:1])
            times = reading.raw not in forms
            self._findings.doubt("calls ran with other arguments than the model gave", call.name, times=times)
        return call.model_copy(update={"name": name})

    def _call(
        self, item: Item | None, call: ToolCall, shown: ForeignMessage | None = None, *, by_program: bool = False
    ) -> ToolCallCompleted | None:
        """Write a call; `shown` is the result in a later prompt. Return None if its end is not known."""
        iteration, position = self._iteration, self._positions[self._iteration]
        self._positions[iteration] += 1
        begun_ns, ended_ns = (0, 0) if item is None else (item.span.start_ns, item.span.end_ns or item.span.start_ns)
        arguments = call.arguments if call.arguments is not None else call.raw_arguments
        if arguments is None and not by_program:  # no replay makes a program's own calls
            self._findings.missing("calls have no arguments", call.name)
        given = {} if arguments is None else arguments
        started = ToolCallStarted(
            call_id=call.id,
            tool=call.name,
            position=position,
            args=given,
            args_hash=json_hash(given),
            source="plan" if by_program else "native",
            request=None if by_program else self._models.number,
        )
        self._emit(begun_ns, iteration, started)
        output: Any = NOTHING
        if item is not None and item.inside is not None:
            output = self._inside(item.inside, owner_inside(self._owner, call.name, iteration, position), started)
        completed = self._completed(item, started, output, shown)
        if completed is not None:
            self._emit(ended_ns, iteration, completed)
        return completed

    def _completed(
        self,
        item: Item | None,
        started: ToolCallStarted,
        output: Any,  # noqa: ANN401 - the output of the agent that it started; `NOTHING` if it started none
        shown: ForeignMessage | None,
    ) -> ToolCallCompleted | None:
        """Return the event for the end of a call; None if its end is not known."""
        result = output if item is None or item.reading.tool.result is NOTHING else item.reading.tool.result
        words = None if shown is None else text_of(shown.content)
        fields: dict[str, Any] = {
            "call_id": started.call_id,
            "tool": started.tool,
            "position": started.position,
            "duration_ms": 0.0 if item is None else item.span.duration_ms,
        }
        if item is not None and item.reading.error is not None:
            error, told = item.reading.error, result if words is None else words
            if isinstance(told, str) and told != f"error: {error.message}":
                error = error.model_copy(update={"told": told})
            return ToolCallCompleted(ok=False, error=error, **fields)
        if result is NOTHING and shown is None:
            self._findings.missing("calls have no tool result", started.tool)
            return None
        if result is NOTHING and shown is not None:
            self._findings.note(
                "results that only a later prompt has; whether they were errors is not known", started.tool
            )
            return ToolCallCompleted(ok=True, result=_content(shown), **fields)
        value = to_json(result)
        if output is not NOTHING and as_text(to_json(output)) != as_text(value):
            why = "calls returned something other than the answer of the agent that they entered"
            self._findings.doubt(why, started.tool)
        if shown is not None and not words == as_text(value) == shown.content:
            if words is not None and words == shown.content and output is NOTHING and _is_same_json(words, value):
                value = words  # the prompt's form of the same JSON
            else:
                self._findings.doubt("later prompts show other results than the tools' spans", started.tool)
        return ToolCallCompleted(ok=True, result=value, **fields)

    def _inside(self, work: Work, owner: str, called: ToolCallStarted) -> Any:  # noqa: ANN401 - an agent's output
        """Write the work inside a call; return the output of the agent that it started, or `NOTHING`."""
        inner = Conversion(work, owner, self._emit_at, self._findings)
        if work.agents:
            task = called.args.get("task") if isinstance(called.args, dict) else None
            asked = task if isinstance(task, str) else inner.task
            started = AgentStarted(agent=inner.header, task=asked, parent=self._owner, call_id=called.call_id)
            self._emit_at(work.agents[0].span.start_ns, owner, None, started)
        inner.run()
        self._spent.join(inner._spent)
        ending = inner._ending() if work.agents else None
        if ending is None:
            return NOTHING
        self._emit_at(work.agents[0].span.end_ns or 0, owner, None, AgentCompleted(**ending))
        return NOTHING if ending["output"] is None else ending["output"]

    def _emit(self, time_ns: int, iteration: int | None, event: EventBase) -> None:
        self._emit_at(time_ns, self._owner, iteration, event)


def _content(message: ForeignMessage) -> JsonValue:
    """Return the content of a message as a result."""
    parts = message.content
    return to_json(parts if isinstance(parts, str) else [part.model_dump(mode="json") for part in parts])


def _is_same_json(text: str, value: JsonValue) -> bool:
    """Return whether a text is the JSON of a value, or both are texts of the same JSON."""
    one, other = parsed_json(text), parsed_json(value) if isinstance(value, str) else value
    return NOTHING not in (one, other) and json_hash(one) == json_hash(other)
