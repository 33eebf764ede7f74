"""The model calls of one owner as events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.importing.findings import is_hidden
from playhead.importing.headers import model_name
from playhead.importing.thread import ForeignThread, digest, ranges_of, tool_calls
from playhead.importing.values import count_of
from playhead.trace.events import LlmFailed, LlmRequested, LlmResponded, LlmRetried
from playhead.trace.types import text_of
from playhead.trace.usage import Usage
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playhead.importing.agents import Item
    from playhead.importing.findings import Findings
    from playhead.importing.headers import Toolbox
    from playhead.importing.messages import ForeignMessage
    from playhead.trace.events import EventBase
    from playhead.trace.spending import Spent
    from playhead.trace.types import Range, ToolCall

Outcome = LlmResponded | LlmFailed
IMAGES_LEFT_OUT: Final = "playhead.images_left_out"
"""The attribute in which Playhead's own export counts images that were too large for a span."""


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

    def record(self, item: Item, emit: Callable[[int, EventBase], None]) -> Outcome | None:
        """Write a model call; `emit` takes the time in nanoseconds and an event. Return None when it was still under way."""
        said, start_ns = item.said.model, item.span.start_ns
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

    def _look_at(self, item: Item) -> None:
        said, findings = item.said.model, self._findings
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

    def _requested(self, item: Item, ranges: tuple[Range, ...]) -> LlmRequested:
        said = item.said.model
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

    def _outcome(self, item: Item, requested: LlmRequested) -> Outcome | None:
        said, answer, findings = item.said.model, item.said.model.answer, self._findings
        fields: dict[str, Any] = {
            "request": requested.request,
            "attempt": requested.attempt,
            "latency_ms": item.span.duration_ms,
            "cost_usd": said.cost_usd,
        }
        self.last_is_known = answer is not None and (answer.known or bool(answer.calls))
        if answer is None and item.said.error is not None:
            return LlmFailed(error=item.said.error, usage=said.usage, **fields)
        if not self.last_is_known and item.span.end_ns is None:
            return None
        for kind in () if answer is None else answer.lost:
            findings.note("parts of answers that are left out", kind)
        findings.doubt("answers of the model are not in the spans", times=not self.last_is_known)
        findings.note("model calls whose tokens the spans do not hold", times=said.usage is None)
        findings.note("errors of model calls that answered all the same", times=item.said.error is not None)
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
