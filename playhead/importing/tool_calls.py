"""Tool calls as events: with which arguments they ran, and what came of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from playhead.importing.findings import is_hidden
from playhead.importing.values import NOTHING, parsed_json
from playhead.trace.events import ToolCallCompleted, ToolCallStarted
from playhead.trace.types import ToolCall, text_of
from playhead.trace.values import as_text, json_hash, to_json

if TYPE_CHECKING:
    from playhead.importing.agents import ToolItem
    from playhead.importing.findings import Findings
    from playhead.importing.readings import ForeignMessage
    from playhead.trace.events import ErrorInfo
    from playhead.trace.values import JsonValue

_UNDERSTOOD: Final = re.compile(r"\(understood as ([^\n]*)\)\n")
_HIDDEN: Final = "arguments or results are hidden"
_OTHER_ARGUMENTS: Final = "calls ran with other arguments than the model gave"
NO_RESULT: Final = "calls have no tool result"


def as_it_ran(item: ToolItem, call: ToolCall | None, otherwise: Findings) -> ToolCall:
    """Return the name and the arguments with which a call ran: those of its span, where it has any, else the model's.

    `otherwise` takes what a replay's plain loop would do otherwise.
    """
    given, name = item.reading.arguments, item.reading.name or item.span.name or "tool"
    ran = None if given is None else to_json(given)
    if call is None:
        return ToolCall(id="", name=name, arguments=ran, raw_arguments=item.reading.raw)
    if item.is_agent_span:
        return call  # its span holds a prompt, not arguments
    if call.name != name:
        otherwise.doubt("calls ran under other names than the model gave", f"{call.name} as {name}")
    if item.reading.raw is not None and call.arguments is not None and not is_hidden(item.reading.raw):
        forms = {as_text(call.arguments), str(call.arguments), *map(as_text, [*call.arguments.values()][:1])}
        otherwise.doubt(_OTHER_ARGUMENTS, call.name, times=item.reading.raw not in forms)
    if ran is None or is_hidden(ran) or json_hash(ran) == json_hash(call.arguments):
        return call.model_copy(update={"name": name})
    otherwise.doubt(_OTHER_ARGUMENTS, call.name)
    return call.model_copy(update={"name": name, "arguments": ran, "raw_arguments": None})


def started_call(  # noqa: PLR0913 - what the event is made of
    call: ToolCall, call_id: str, findings: Findings, *, position: int, request: int | None, by_program: bool
) -> ToolCallStarted:
    """Return the event of a call that starts."""
    arguments = call.arguments if call.arguments is not None else call.raw_arguments
    if arguments is None:
        if not by_program:  # no replay makes a program's own calls
            findings.missing("calls have no arguments", call.name)
        arguments = {}
    elif is_hidden(arguments):
        findings.missing(_HIDDEN, call.name)
    return ToolCallStarted(
        call_id=call_id,
        tool=call.name,
        position=position,
        args=arguments,
        args_hash=json_hash(arguments),
        source="plan" if by_program else "native",
        request=None if by_program else request,
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
    if told is not None and is_hidden(told):
        told = None
    if item.error is not None:
        words = text_of(told.content) if told is not None else result
        failed = _completed(started, item.span.duration_ms, ok=False, error=item.error)
        return _understood(failed, words) or failed.model_copy(update={"error": _with_words(item.error, words)})
    if result is NOTHING or is_hidden(result):
        if told is not None:
            return told_result(started, told, findings, item.span.duration_ms)
        findings.missing(NO_RESULT if result is NOTHING else _HIDDEN, started.tool)
        if result is NOTHING:
            return None
    value = to_json(result)
    completed = _completed(started, item.span.duration_ms, ok=True, result=value)
    words = None if told is None else text_of(told.content)
    return _understood(completed, words) or completed.model_copy(
        update={"result": _as_told(value, told, output, started, otherwise)}
    )


def told_result(
    started: ToolCallStarted, told: ForeignMessage, findings: Findings, duration_ms: float = 0.0
) -> ToolCallCompleted:
    """Return the event of a call whose result stands in a later prompt alone: whether it was an error is not known."""
    findings.note("results that only a later prompt holds, errors or not", started.tool)
    if is_hidden(told):
        findings.missing(_HIDDEN, started.tool)
    content = told.content if isinstance(told.content, str) else [part.model_dump(mode="json") for part in told.content]
    return _completed(started, duration_ms, ok=True, result=to_json(content))


def _as_told(
    value: JsonValue,
    told: ForeignMessage | None,
    output: Any,  # noqa: ANN401 - as above
    started: ToolCallStarted,
    otherwise: Findings,
) -> JsonValue:
    """Return a result as the model was told it, where a prompt writes the same JSON otherwise.

    A prompt that shows something else is a doubt: which of both the tool returned is not known.
    """
    if output is not NOTHING and as_text(to_json(output)) != as_text(value):
        otherwise.doubt("what the agents said that calls entered is not what the calls returned", started.tool)
    shown = None if told is None else text_of(told.content)
    if told is None or (shown == as_text(value) and not _has_image(told)):
        return value
    if shown is not None and output is NOTHING and not _has_image(told) and _same_json(shown, value):
        return shown
    otherwise.doubt("later prompts show other results than the tools' spans", started.tool)
    return value


def _has_image(message: ForeignMessage) -> bool:
    return not isinstance(message.content, str) and any(part.type == "image" for part in message.content)


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
    if not isinstance(told, str) or told == f"error: {error.message}":
        return error
    return error.model_copy(update={"told": told})


def _understood(completed: ToolCallCompleted, told: Any) -> ToolCallCompleted | None:  # noqa: ANN401 - any JSON value
    """Return the event with what a malformed call was read as, where the model was told it as Playhead does."""
    found = _UNDERSTOOD.match(told) if isinstance(told, str) else None
    read_as = completed.model_copy(update={"understood": found[1]}) if found else None
    return read_as if read_as is not None and read_as.message_text("tool") == told else None
