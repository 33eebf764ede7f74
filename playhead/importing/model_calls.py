"""The model calls of one owner as events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.importing.findings import is_hidden
from playhead.importing.headers import model_name
from playhead.importing.thread import ForeignThread, digest, ranges_of, tool_call
from playhead.importing.values import count_of
from playhead.trace.events import LlmFailed, LlmRequested, LlmResponded, LlmRetried
from playhead.trace.types import ToolCall, text_of
from playhead.trace.usage import Usage
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playhead.importing.agents import ModelItem
    from playhead.importing.findings import Findings
    from playhead.importing.readings import ForeignCall
    from playhead.importing.toolbox import Toolbox
    from playhead.trace.events import EventBase
    from playhead.trace.spending import Spent
    from playhead.trace.types import Range

Outcome = LlmResponded | LlmFailed
IMAGES_LEFT_OUT: Final = "playhead.images_left_out"
"""The attribute in which Playhead's own export counts images that were too large for a span."""


class CallIds:
    """Ids of calls, unique within an owner, as events want them."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def take(self, call_id: str | None, other: str) -> str:
        """Return the id of a call, or the other one when it has none; one that was taken before gets a number."""
        name = call_id or other
        while name in self._used:
            self._used[name] += 1
            name = f"{name}_{self._used[name]}"
        self._used[name] = 1
        return name


class ModelCalls:
    """Writes requests and what became of them; a request that failed and came again is another attempt at the same one."""

    def __init__(self, tools: Toolbox, spent: Spent, findings: Findings, otherwise: Findings) -> None:
        self._tools = tools
        self.ids = CallIds()
        self._spent = spent
        self._findings = findings
        self.thread = ForeignThread(findings, otherwise)
        self.last: Outcome | None = None
        """What became of the newest request."""
        self.last_is_known = False
        """Whether its answer is in the spans."""
        self._asked: LlmRequested | None = None
        self._key = ""
        self.number: int | None = None
        """The newest request."""

    def record(self, item: ModelItem, emit: Callable[[int, EventBase], None]) -> Outcome | None:
        """Write a model call; `emit` takes the time in nanoseconds and an event. Return None when it was still under way."""
        said, start_ns = item.reading, item.span.start_ns
        self._look_at(item)
        added, ranges = self.thread.place(said.messages or (), said.cut or 0)
        requested = self._requested(item, ranges)
        if requested.attempt:
            emit(start_ns, LlmRetried(request=requested.request, attempt=requested.attempt, delay_s=0.0))
        for message in added:
            emit(start_ns, message)
        emit(start_ns, requested)
        self.last = self._outcome(item, requested)
        if self.last is not None:
            emit(item.span.end_ns or start_ns, self.last)
        return self.last

    def _look_at(self, item: ModelItem) -> None:
        said, findings = item.reading, self._findings
        messages = said.messages or ()
        findings.doubt("prompts are not in the spans: content was not captured", times=said.messages is None)
        unknown = sum(not each.known and each.role != "assistant" for each in messages)
        findings.doubt("messages of prompts are in the spans without their content", times=unknown)
        findings.doubt("prompts or answers are hidden", times=is_hidden(messages) or is_hidden(said.answer))
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
        again = isinstance(self.last, LlmFailed) and self._asked is not None and key == self._key
        attempt = self._asked.attempt + 1 if again and self._asked is not None else 0
        self.number = self.number if again else 0 if self.number is None else self.number + 1
        self._key = key
        self._asked = LlmRequested(
            request=self.number or 0,
            attempt=attempt,
            model=model_name(said),
            messages=ranges,
            tools=ranges_of(tools),
            parameters=parameters,
        )
        return self._asked

    def _outcome(self, item: ModelItem, requested: LlmRequested) -> Outcome | None:
        said, answer, findings = item.reading, item.reading.answer, self._findings
        fields: dict[str, Any] = {
            "request": requested.request,
            "attempt": requested.attempt,
            "latency_ms": item.span.duration_ms,
        }
        self.last_is_known = answer is not None and (answer.known or bool(answer.calls))
        if answer is None and item.error is not None:
            failed = LlmFailed(error=item.error, usage=said.usage, cost_usd=said.cost_usd, **fields)
            self._spent.take(failed)
            return failed
        if not self.last_is_known and item.span.end_ns is None:
            return None
        for kind in () if answer is None else answer.lost:
            findings.note("parts of answers that are left out", kind)
        for name in said.unread:
            findings.note("numbers that cannot be read and are left out", name)
        findings.doubt("answers of the model are not in the spans", times=not self.last_is_known)
        findings.note("model calls whose tokens the spans do not hold", times=said.usage is None)
        findings.note("errors of model calls that answered all the same", times=item.error is not None)
        responded = LlmResponded(
            **fields,
            text=text_of(answer.content) if answer else "",
            thinking=answer.thinking if answer else None,
            tool_calls=tuple(self._calls(answer.calls if answer else (), requested.request)),
            finish_reason=said.finish_reason,
            usage=(said.usage or Usage()).of_answer(),
            cost_usd=said.cost_usd,
            model=said.answered_by,
        )
        self.thread.answered(responded, answer)
        self._spent.take(responded)
        return responded

    def _calls(self, calls: tuple[ForeignCall, ...], request: int) -> Iterator[ToolCall]:
        for place, call in enumerate(calls):
            made = tool_call(call, self.ids.take(call.id, f"call_{request}_{place}"))
            yield made.model_copy(update={"arguments": to_json(made.arguments)})
