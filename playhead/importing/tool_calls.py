"""Tool calls as events: with which arguments they ran, and what came of them."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from playhead.importing.hiding import is_hidden, is_hidden_content
from playhead.importing.truncation import without_mark
from playhead.importing.values import NOTHING
from playhead.importing.wording import how_shown, same_json
from playhead.trace.events import ToolCallCompleted, ToolCallStarted
from playhead.trace.types import ToolCall, text_of
from playhead.trace.values import as_text, json_hash, to_json

if TYPE_CHECKING:
    from playhead.importing.agents import ToolItem, Work
    from playhead.importing.findings import Findings
    from playhead.importing.readings import ForeignMessage
    from playhead.trace.events import ErrorInfo
    from playhead.trace.types import Content


_UNDERSTOOD: Final = re.compile(r"\(understood as ([^\n]*)\)\n")


def as_it_ran(item: ToolItem, call: ToolCall | None, findings: Findings) -> ToolCall:
    """Return the name and the arguments with which a call ran: the model's, when the span has more than these, or none."""
    given, name = item.reading.arguments, item.reading.name or item.span.name or "tool"
    ran = None if given is None else to_json(given)
    if call is None:
        return ToolCall(id="", name=name, arguments=ran, raw_arguments=item.reading.raw)
    if item.is_agent_span and call.arguments is not None:
        return call  # its span holds a prompt, not arguments
    if not item.is_agent_span and call.name != name:
        findings.renamed.append(f"{call.name} as {name}")
        call = call.model_copy(update={"name": name})
    if ran is None:
        findings.ran_otherwise += [call.name] if _is_other(item.reading.raw, call, findings) else []
        return call
    if is_hidden(ran) or same_json(ran, call.arguments):
        return call
    if call.arguments and _adds(ran, call.arguments):
        findings.counts["calls to whose arguments the program added something"] += 1
        return call
    if call.arguments is not None or (call.raw_arguments and not is_hidden(call.raw_arguments)):
        findings.ran_otherwise.append(call.name)
    return call.model_copy(update={"arguments": ran, "raw_arguments": None})


def started_call(  # noqa: PLR0913 - what the event is made of
    call: ToolCall, call_id: str, findings: Findings, *, position: int, request: int | None, by_program: bool
) -> ToolCallStarted:
    """Return the event of a call that starts."""
    arguments = call.arguments if call.arguments is not None else call.raw_arguments
    if arguments is None:
        findings.without_arguments += [] if by_program else [call.name]  # no replay makes a program's own calls
        arguments = {}
    else:
        findings.hold(call.name, arguments)
    return ToolCallStarted(
        call_id=call_id,
        tool=call.name,
        position=position,
        args=arguments,
        args_hash=json_hash(arguments),
        source="plan" if by_program else "native",
        request=None if by_program else request,
    )


def completed_call(
    item: ToolItem,
    started: ToolCallStarted,
    output: Any,  # noqa: ANN401 - what the agent that it entered returned, `NOTHING` when it entered none
    told: ForeignMessage | None,
    findings: Findings,
) -> ToolCallCompleted | None:
    """Return the event of a call that ended, None when nothing says how; `told` is the result as a later prompt has it."""
    result = item.reading.result if item.reading.result is not NOTHING else output
    if told is not None and _is_less(result, told.content, findings):
        result = NOTHING  # a later prompt shows what the span hides or cuts off
    if item.error is not None:
        words = told.content if told is not None else result or None
        failed = _completed(started, item.span.duration_ms, ok=False, error=item.error)
        understood = _understood(failed, words)
        if understood is not None:
            return understood
        return failed.model_copy(update={"error": _with_words(item.error, words)})
    if result is NOTHING and told is None:
        findings.unanswered.append(started.tool)
        return None
    if result is NOTHING and told is not None:
        return told_result(started, told, findings, item.span.duration_ms)
    words, is_entered = told.content if told is not None else None, _enters(item, started)
    if is_entered and output is not NOTHING and as_text(to_json(result)) != as_text(to_json(output)):
        findings.said_otherwise.append(started.tool)
    completed = _completed(started, item.span.duration_ms, ok=True, result=to_json(result))
    understood = _understood(completed, words)
    if understood is None:
        result = _as_told(result, told, item, findings, is_entered=is_entered)
    findings.hold(started.tool, result, words)
    return understood or completed.model_copy(update={"result": to_json(result)})


def told_result(
    started: ToolCallStarted, told: ForeignMessage, findings: Findings, duration_ms: float = 0.0
) -> ToolCallCompleted:
    """Return the event of a call whose result stands in a later prompt alone: whether it was an error is not known."""
    findings.counts["results that only a later prompt holds, errors or not"] += 1
    findings.hold(started.tool, told.content if isinstance(told.content, str) else None)
    content = told.content if isinstance(told.content, str) else [part.model_dump(mode="json") for part in told.content]
    return _completed(started, duration_ms, ok=True, result=to_json(content))


class LaterResults:
    """The results that prompts hold, by the call's id; an id that comes again stands for the next call of that id."""

    def __init__(self, work: Work) -> None:
        self._found: dict[str, list[ForeignMessage]] = {}
        self._given: Counter[str] = Counter()
        for item in work.models:
            seen: Counter[str] = Counter()
            for message in item.reading.messages or ():
                if message.role == "tool" and message.call_id and message.known:
                    known = self._found.setdefault(message.call_id, [])
                    known += [message] if seen[message.call_id] == len(known) else []
                    seen[message.call_id] += 1

    def next_of(self, call_id: str | None) -> ForeignMessage | None:
        """Return the result of the next call of this id, in the order in which they were asked for."""
        known, place = self._found.get(call_id or "", []), self._given[call_id or ""]
        self._given[call_id or ""] += 1
        return known[place] if place < len(known) else None


def _as_told(
    result: Any,  # noqa: ANN401 - any JSON value
    told: ForeignMessage | None,
    item: ToolItem,
    findings: Findings,
    *,
    is_entered: bool,
) -> Any:  # noqa: ANN401
    """Return a result as the model was told it, where a prompt writes it otherwise: so a replay tells it again.

    A prompt that shows something else is a finding: which of both the tool returned is not known. So is one that writes what
    an agent said in another way, for a replay enters the agent again.
    """
    if told is None or is_hidden_content(told.content):
        return result
    text, value = text_of(told.content), to_json(result)
    if findings.lengths.cut(text) is not None and as_text(value).startswith(without_mark(text)):
        return result  # the export cut the prompt off
    shown = how_shown(value, text)
    images = {part.url for part in told.content if part.type == "image"} if isinstance(told.content, tuple) else set()
    if shown == "other" or (is_entered and text != as_text(value)) or any(url not in as_text(value) for url in images):
        findings.told_otherwise.append(item.reading.name or item.span.name)
        return result
    if is_entered or images:
        return result
    if shown == "same":
        return text if isinstance(value, str) else result
    findings.counts["results that stand in prompts with other words around them, or without, and are taken so"] += 1
    return text


def _enters(item: ToolItem, started: ToolCallStarted) -> bool:
    """Tell whether a replay enters the agent that the call entered: one that is given a task, and nothing else."""
    given = started.args
    is_task = isinstance(given, dict) and set(given) == {"task"} and isinstance(given["task"], str)
    return is_task and item.inside is not None and bool(item.inside.agents)


def _is_other(raw: str | None, call: ToolCall, findings: Findings) -> bool:
    """Tell whether a span that has arguments as a text, not as JSON, has other ones than the model gave."""
    if raw is None or call.arguments is None or is_hidden(raw) or findings.lengths.cut(raw) is not None:
        return False
    return how_shown(call.arguments, raw) == "other"


def _is_less(result: Any, told: Content, findings: Findings) -> bool:  # noqa: ANN401 - any JSON value
    """Tell whether a span holds less of a result than a later prompt."""
    if is_hidden(result):
        return not is_hidden_content(told)
    if not isinstance(result, str) or not isinstance(told, str) or told == result:
        return False
    return findings.lengths.cut(result) is not None and told.startswith(without_mark(result))


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


def _adds(given: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Tell whether the given arguments are the wanted ones and more."""
    return len(given) > len(wanted) and all(
        name in given and same_json(given[name], each) for name, each in wanted.items()
    )
