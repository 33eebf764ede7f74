"""A trace as a run: the events, in an order that a run of ours could have had.

Calls that a model asked for at once stand one after the other, in the order in which it asked: whether they needed each
other nobody knows, and so a replay finds each in the state that it was answered in. Times are those of the spans, but never
go backwards; durations are always those of the spans.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from playhead.importing.conventions import stated_ending
from playhead.importing.findings import Findings, is_hidden
from playhead.importing.headers import beginning_of, toolbox_of
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
from playhead.trace.spending import Spent
from playhead.trace.types import ToolCall, text_of
from playhead.trace.values import as_text, json_hash, to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.importing.agents import Item, Work
    from playhead.importing.messages import ForeignMessage
    from playhead.importing.pairing import Asked, Turn
    from playhead.trace.events import ErrorInfo, EventBase
    from playhead.trace.values import JsonValue

    Emit = Callable[[int, str, int | None, EventBase], None]
    """Takes time in nanoseconds, owner, turn and event."""

ROOT: Final = "root"
NO_RESULT: Final = "calls have no tool result"
_HIDDEN: Final = "arguments or results are hidden"
_UNDERSTOOD: Final = re.compile(r"\(understood as ([^\n]*)\)\n")
"""What our own loop tells the model of a malformed call, before its result."""
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
        error = None if speaker is None else speaker.said.error
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
        output = NOTHING if self._work.speaker is None else self._work.speaker.said.agent.output
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
            self._call(item, None)
        if is_last and calls:
            self._otherwise.doubt("the run ended on the calls of tools; a replay asks the model once more")

    @property
    def _iteration(self) -> int | None:
        return self._models.number if self._is_agent else None

    def _asked(self, asked: Asked, call: ToolCall, *, is_last: bool) -> None:
        """Write a call that a model asked for, by its span or by what a later prompt tells of it."""
        if call.arguments is None and call.raw_arguments is not None:
            self._otherwise.doubt("calls whose arguments are no JSON object, which a replay answers itself", call.name)
        if is_last and asked.item is None and asked.told is None:
            self._findings.doubt("the last answer asks for calls of which the spans show no run", call.name)
            return
        completed = self._call(asked.item, call, asked.told)
        if completed is not None:
            self._models.thread.completed(completed, asked.call.id)

    def _call(
        self, item: Item | None, call: ToolCall | None, told: ForeignMessage | None = None
    ) -> ToolCallCompleted | None:
        """Write a call: `call` is what the model asked for, and `told` the result as a later prompt has it."""
        iteration, position = self._iteration, self._positions[self._iteration]
        self._positions[iteration] += 1
        ran = call if item is None else self._as_it_ran(item, call, f"call_{position}")
        if ran is None:
            return None
        begun_ns, ended_ns = (0, 0) if item is None else (item.span.start_ns, item.span.end_ns or item.span.start_ns)
        arguments = self._arguments(ran, by_program=call is None)
        started = ToolCallStarted(
            call_id=ran.id,
            tool=ran.name,
            position=position,
            args=arguments,
            args_hash=json_hash(arguments),
            source="plan" if call is None else "native",
            request=None if call is None else self._models.number,
        )
        self._emit(begun_ns, iteration, started)
        output: Any = NOTHING
        if item is not None and item.inside is not None:
            output = self._inside(item.inside, owner_inside(self._owner, ran.name, iteration, position), started)
        completed = self._completed(item, started, output, told)
        if completed is not None:
            self._emit(ended_ns, iteration, completed)
        return completed

    def _as_it_ran(self, item: Item, call: ToolCall | None, other_id: str) -> ToolCall:
        """Return the name and the arguments with which a call ran: those of its span, where it has any, else the model's."""
        said, name = item.said.tool, item.name or "tool"
        ran = None if said.arguments is None else to_json(said.arguments)
        if call is None:
            call_id = self._models.call_id(said.call_id, other_id)
            return ToolCall(id=call_id, name=name, arguments=ran, raw_arguments=said.raw)
        if item.said.kind == "agent":
            return call  # its span holds a prompt, not arguments
        if call.name != name:
            self._otherwise.doubt("calls ran under other names than the model gave", f"{call.name} as {name}")
        is_other = ran is not None and not is_hidden(ran) and json_hash(ran) != json_hash(call.arguments)
        if said.raw is not None and call.arguments is not None and not is_hidden(said.raw):
            forms = {as_text(call.arguments), str(call.arguments), *map(as_text, [*call.arguments.values()][:1])}
            is_other = is_other or said.raw not in forms
        self._otherwise.doubt("calls ran with other arguments than the model gave", call.name, times=is_other)
        as_given = {"arguments": ran, "raw_arguments": None} if is_other and ran is not None else {}
        return call.model_copy(update={"name": name, **as_given})

    def _arguments(self, call: ToolCall, *, by_program: bool) -> JsonValue:
        arguments = call.arguments if call.arguments is not None else call.raw_arguments
        if arguments is None and not by_program:  # no replay makes a program's own calls
            self._findings.missing("calls have no arguments", call.name)
        if is_hidden(arguments):
            self._findings.missing(_HIDDEN, call.name)
        return {} if arguments is None else arguments

    def _completed(
        self,
        item: Item | None,
        started: ToolCallStarted,
        output: Any,  # noqa: ANN401 - what the agent that it entered returned, `NOTHING` when it entered none
        told: ForeignMessage | None,
    ) -> ToolCallCompleted | None:
        """Return the event of a call that ended, None when nothing says how."""
        result = output if item is None or item.said.tool.result is NOTHING else item.said.tool.result
        shown = None if told is None or is_hidden(told) else told
        words = None if shown is None else text_of(shown.content)
        fields: dict[str, Any] = {"duration_ms": 0.0 if item is None else item.span.duration_ms, "ok": True}
        if item is not None and item.said.error is not None:
            words = result if shown is None else words
            fields |= {"ok": False, "error": item.said.error}
        elif result is NOTHING and told is None:
            self._findings.missing(NO_RESULT, started.tool)
            return None
        elif shown is not None and (result is NOTHING or is_hidden(result)):
            self._findings.note("results that only a later prompt holds, errors or not", started.tool)
            parts = shown.content
            said = parts if isinstance(parts, str) else [part.model_dump(mode="json") for part in parts]
            fields["result"], words = to_json(said), None
        elif result is NOTHING or is_hidden(result):
            self._findings.missing(_HIDDEN, started.tool)
            fields["result"] = None if result is NOTHING else to_json(result)
        else:
            fields["result"] = to_json(result)
            other = output is not NOTHING and as_text(to_json(output)) != as_text(fields["result"])
            why = "what the agents said that calls entered is not what the calls returned"
            self._otherwise.doubt(why, started.tool, times=other)
        completed = ToolCallCompleted(call_id=started.call_id, tool=started.tool, position=started.position, **fields)
        if isinstance(words, str) and (understood := _understood(completed, words)):
            return understood
        if completed.error is not None:
            return completed.model_copy(update={"error": _with_words(completed.error, words)})
        if shown is None or words is None:
            return completed
        return completed.model_copy(update={"result": self._as_told(started, completed.result, shown, output)})

    def _as_told(self, started: ToolCallStarted, value: JsonValue, told: ForeignMessage, output: Any) -> JsonValue:  # noqa: ANN401 - as above
        """Return a result as the model was told it, where a prompt writes the same JSON otherwise; anything else is a doubt."""
        words = text_of(told.content)
        if words == as_text(value) == told.content:
            return value
        if told.content == words and output is NOTHING and _same_json(words, value):
            return words
        self._otherwise.doubt("later prompts show other results than the tools' spans", started.tool)
        return value

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


def _same_json(text: str, value: JsonValue) -> bool:
    """Tell whether a text is the JSON of a value, or both are texts of the same JSON."""
    one, other = parsed_json(text), parsed_json(value) if isinstance(value, str) else value
    return NOTHING not in (one, other) and json_hash(one) == json_hash(other)


def _with_words(error: ErrorInfo, told: Any) -> ErrorInfo:  # noqa: ANN401 - any JSON value
    """Return the error with what the model was told of it, where that is something else than we would tell it."""
    is_ours = not isinstance(told, str) or told == f"error: {error.message}"
    return error if is_ours else error.model_copy(update={"told": told})


def _understood(completed: ToolCallCompleted, told: str) -> ToolCallCompleted | None:
    """Return the event with what a malformed call was read as, where the model was told it as Playhead does."""
    found = _UNDERSTOOD.match(told)
    read_as = completed.model_copy(update={"understood": found[1]}) if found else None
    return read_as if read_as is not None and read_as.message_text("tool") == told else None
