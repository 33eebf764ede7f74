"""Model calls and tool calls as events: what was asked, with which arguments a tool ran, and what came of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from playhead.importing.findings import is_hidden
from playhead.importing.headers import model_name
from playhead.importing.thread import ForeignThread, digest, ranges_of, tool_calls
from playhead.importing.values import NOTHING, count_of, parsed_json
from playhead.trace.events import (
    LlmFailed,
    LlmRequested,
    LlmResponded,
    LlmRetried,
    ToolCallCompleted,
    ToolCallStarted,
)
from playhead.trace.types import ToolCall, text_of
from playhead.trace.usage import Usage
from playhead.trace.values import as_text, json_hash, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playhead.importing.agents import ModelItem, ToolItem
    from playhead.importing.findings import Findings
    from playhead.importing.headers import Toolbox
    from playhead.importing.messages import ForeignMessage
    from playhead.trace.events import ErrorInfo, EventBase
    from playhead.trace.spending import Spent
    from playhead.trace.types import Range
    from playhead.trace.values import JsonValue

Outcome = LlmResponded | LlmFailed
IMAGES_LEFT_OUT: Final = "playhead.images_left_out"
"""The attribute in which Playhead's own export counts images that were too large for a span."""
NO_RESULT: Final = "calls have no tool result"
_HIDDEN: Final = "arguments or results are hidden"
_OTHER_ARGUMENTS: Final = "calls ran with other arguments than the model gave"
_UNDERSTOOD: Final = re.compile(r"\(understood as ([^\n]*)\)\n")
"""What our own loop tells the model of a malformed call, before its result."""


class ModelCalls:
    """Writes requests and what became of them; a request that failed and came again is another attempt at the same one."""

    def __init__(self, tools: Toolbox, spent: Spent, findings: Findings, otherwise: Findings) -> None:
        self._tools = tools
        self._spent = spent
        self._findings = findings
        self.thread = ForeignThread(otherwise)
        self.last: Outcome | None = None
        """What became of the newest request."""
        self.last_is_known = False
        """Whether its answer is in the spans."""
        self.number: int | None = None
        """The newest request."""
        self._attempt = 0
        self._key = ""
        self._call_ids: dict[str, int] = {}

    def record(self, item: ModelItem, emit: Callable[[int, EventBase], None]) -> Outcome | None:
        """Write a model call; `emit` takes the time in nanoseconds and an event. Return None when it was still under way."""
        said, start_ns = item.reading, item.span.start_ns
        self._look_at(item)
        added, ranges = self.thread.place(said.messages or ())
        requested = self._requested(item, ranges)
        if requested.attempt:
            emit(start_ns, LlmRetried(request=requested.request, attempt=requested.attempt, delay_s=0.0))
        for event in (*added, requested):
            emit(start_ns, event)
        self.last = self._outcome(item, requested)
        if self.last is not None:
            self._spent.take(self.last)
            emit(item.span.end_ns or start_ns, self.last)
        return self.last

    def call_id(self, given: str | None, other: str) -> str:
        """Return the id of a call, or the other one when it has none; one that was taken before gets a number."""
        name = given or other
        while name in self._call_ids:
            self._call_ids[name] += 1
            name = f"{name}_{self._call_ids[name]}"
        self._call_ids[name] = 1
        return name

    def _look_at(self, item: ModelItem) -> None:
        said, findings = item.reading, self._findings
        messages = said.messages or ()
        findings.doubt("prompts are not in the spans: content was not captured", times=said.messages is None)
        unknown = sum(not each.known and each.role != "assistant" for each in messages)
        findings.doubt("messages of prompts are in the spans without their content", times=unknown)
        findings.doubt("prompts or answers are hidden", times=is_hidden(messages) or is_hidden(said.answer))
        findings.doubt(
            "messages that prompts had and do not show (`playhead export --all-messages`)", times=said.cut or 0
        )
        images = count_of(item.span.attributes.get(IMAGES_LEFT_OUT))
        findings.doubt("images of prompts were left out of the spans", times=images)
        for kind in (kind for each in messages for kind in each.lost):
            findings.doubt("prompts hold what is neither text nor image, which a replay cannot send", kind)
        for name in said.unrecorded:
            findings.note("request parameters that the recording does not hold (a replay takes them by --set)", name)

    def _requested(self, item: ModelItem, ranges: tuple[Range, ...]) -> LlmRequested:
        said = item.reading
        tools, parameters = self._tools.ids_of(said.tools), to_json(said.parameters or {})
        key = digest([ranges, tools, parameters, said.model])
        if isinstance(self.last, LlmFailed) and key == self._key:
            self._attempt += 1
        else:
            self._attempt, self.number = 0, 0 if self.number is None else self.number + 1
        self._key = key
        return LlmRequested(
            request=self.number or 0,
            attempt=self._attempt,
            model=model_name(said),
            messages=ranges,
            tools=ranges_of(tools),
            parameters=parameters,
        )

    def _outcome(self, item: ModelItem, requested: LlmRequested) -> Outcome | None:
        said, answer, findings = item.reading, item.reading.answer, self._findings
        fields: dict[str, Any] = {
            "request": requested.request,
            "attempt": requested.attempt,
            "latency_ms": item.span.duration_ms,
            "cost_usd": said.cost_usd,
        }
        self.last_is_known = answer is not None and (answer.known or bool(answer.calls))
        if answer is None and item.error is not None:
            return LlmFailed(error=item.error, usage=said.usage, **fields)
        if not self.last_is_known and item.span.end_ns is None:
            return None
        for kind in () if answer is None else answer.lost:
            findings.note("parts of answers that are left out", kind)
        findings.doubt("answers of the model are not in the spans", times=not self.last_is_known)
        findings.note("model calls whose tokens the spans do not hold", times=said.usage is None)
        findings.note("errors of model calls that answered all the same", times=item.error is not None)
        responded = LlmResponded(
            **fields,
            text=text_of(answer.content) if answer else "",
            thinking=answer.thinking if answer else None,
            tool_calls=tuple(self._asked_for(answer, requested.request) if answer else ()),
            finish_reason=said.finish_reason,
            usage=(said.usage or Usage()).of_answer(),
            model=said.answered_by,
        )
        self.thread.answered(responded, answer)
        return responded

    def _asked_for(self, answer: ForeignMessage, request: int) -> Iterator[ToolCall]:
        for call in tool_calls(answer.calls, request):
            yield call.model_copy(update={"id": self.call_id(call.id, ""), "arguments": to_json(call.arguments)})


def as_it_ran(item: ToolItem, call: ToolCall | None, otherwise: Findings) -> ToolCall:
    """Return the name and the arguments with which a call ran: those of its span, where it has any, else the model's.

    `otherwise` takes what a replay's plain loop would do otherwise.
    """
    said, name = item.reading, item.reading.name or item.span.name or "tool"
    ran = None if said.arguments is None else to_json(said.arguments)
    if call is None:
        return ToolCall(id="", name=name, arguments=ran, raw_arguments=said.raw)
    if item.is_agent_span:
        return call  # its span holds a prompt, not arguments
    if call.name != name:
        otherwise.doubt("calls ran under other names than the model gave", f"{call.name} as {name}")
    if said.raw is not None and call.arguments is not None and not is_hidden(said.raw):
        forms = {as_text(call.arguments), str(call.arguments), *map(as_text, [*call.arguments.values()][:1])}
        otherwise.doubt(_OTHER_ARGUMENTS, call.name, times=said.raw not in forms)
    if ran is None or is_hidden(ran) or json_hash(ran) == json_hash(call.arguments):
        return call.model_copy(update={"name": name})
    otherwise.doubt(_OTHER_ARGUMENTS, call.name)
    return call.model_copy(update={"name": name, "arguments": ran, "raw_arguments": None})


def started_call(call: ToolCall, findings: Findings, *, position: int, request: int | None) -> ToolCallStarted:
    """Return the event of a call that starts; `request` is None for one that no model asked for."""
    arguments = call.arguments if call.arguments is not None else call.raw_arguments
    if arguments is None:
        if request is not None:  # no replay makes a program's own calls
            findings.missing("calls have no arguments", call.name)
        arguments = {}
    elif is_hidden(arguments):
        findings.missing(_HIDDEN, call.name)
    return ToolCallStarted(
        call_id=call.id,
        tool=call.name,
        position=position,
        args=arguments,
        args_hash=json_hash(arguments),
        source="plan" if request is None else "native",
        request=request,
    )


def completed_call(  # noqa: PLR0913, PLR0917 - what the event is made of
    item: ToolItem,
    started: ToolCallStarted,
    output: Any,  # noqa: ANN401 - what the agent that it entered returned, `NOTHING` when it entered none
    told: ForeignMessage | None,
    findings: Findings,
    otherwise: Findings,
) -> ToolCallCompleted | None:
    """Return the event of a call that ended, None when nothing says how; `told` is the result as a later prompt has it."""
    result = item.reading.result if item.reading.result is not NOTHING else output
    told = None if told is not None and is_hidden(told) else told
    words = None if told is None else text_of(told.content)
    if item.error is not None:
        words = words if told is not None else result
        failed = _completed(started, item.span.duration_ms, ok=False, error=item.error)
        return _understood(failed, words) or failed.model_copy(update={"error": _with_words(item.error, words)})
    if told is not None and (result is NOTHING or is_hidden(result)):
        return told_result(started, told, findings, item.span.duration_ms)
    if result is NOTHING or is_hidden(result):
        findings.missing(NO_RESULT if result is NOTHING else _HIDDEN, started.tool)
        if result is NOTHING:
            return None
    completed = _completed(started, item.span.duration_ms, ok=True, result=to_json(result))
    return _understood(completed, words) or completed.model_copy(
        update={"result": _as_told(started, completed.result, told, output, otherwise)}
    )


def _as_told(
    started: ToolCallStarted,
    value: JsonValue,
    told: ForeignMessage | None,
    output: Any,  # noqa: ANN401 - as above
    otherwise: Findings,
) -> JsonValue:
    """Return a result as the model was told it, where a prompt writes the same JSON otherwise; anything else is a doubt."""
    words = "" if told is None else text_of(told.content)
    if output is not NOTHING and as_text(to_json(output)) != as_text(value):
        otherwise.doubt("what the agents said that calls entered is not what the calls returned", started.tool)
    if told is None or words == as_text(value) == told.content:
        return value
    if told.content == words and output is NOTHING and _same_json(words, value):
        return words
    otherwise.doubt("later prompts show other results than the tools' spans", started.tool)
    return value


def told_result(
    started: ToolCallStarted, told: ForeignMessage, findings: Findings, duration_ms: float = 0.0
) -> ToolCallCompleted:
    """Return the event of a call whose result stands in a later prompt alone: whether it was an error is not known."""
    findings.note("results that only a later prompt holds, errors or not", started.tool)
    if is_hidden(told):
        findings.missing(_HIDDEN, started.tool)
    content = told.content if isinstance(told.content, str) else [part.model_dump(mode="json") for part in told.content]
    return _completed(started, duration_ms, ok=True, result=to_json(content))


def _same_json(text: str, value: JsonValue) -> bool:
    """Tell whether a text is the JSON of a value, or both are texts of the same JSON."""
    one, other = parsed_json(text), parsed_json(value) if isinstance(value, str) else value
    return NOTHING not in (one, other) and json_hash(one) == json_hash(other)


def _completed(started: ToolCallStarted, duration_ms: float, **fields: Any) -> ToolCallCompleted:  # noqa: ANN401
    return ToolCallCompleted(
        call_id=started.call_id, tool=started.tool, position=started.position, duration_ms=duration_ms, **fields
    )


def _with_words(error: ErrorInfo, told: Any) -> ErrorInfo:  # noqa: ANN401 - any JSON value
    """Return the error with what the model was told of it, where that is something else than we would tell it."""
    is_ours = not isinstance(told, str) or told == f"error: {error.message}"
    return error if is_ours else error.model_copy(update={"told": told})


def _understood(completed: ToolCallCompleted, told: Any) -> ToolCallCompleted | None:  # noqa: ANN401 - any JSON value
    """Return the event with what a malformed call was read as, where the model was told it as Playhead does."""
    found = _UNDERSTOOD.match(told) if isinstance(told, str) else None
    read_as = completed.model_copy(update={"understood": found[1]}) if found else None
    return read_as if read_as is not None and read_as.message_text("tool") == told else None
