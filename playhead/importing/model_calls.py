"""Converts the model calls of one owner to events, and its prompts to a thread that contains each message once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.importing.headers import model_name
from playhead.importing.messages import ForeignMessage, tool_calls
from playhead.importing.values import digest
from playhead.trace.events import LlmFailed, LlmRequested, LlmResponded, MessageAdded
from playhead.trace.types import Usage, text_of, with_ids
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.diagnose.spending import Spent
    from playhead.importing.agents import Item, Work
    from playhead.importing.findings import Findings
    from playhead.trace.events import EventBase, ToolCallCompleted
    from playhead.trace.types import Range, ToolSpec

Outcome = LlmResponded | LlmFailed


class ForeignThread:
    """Assigns message ids; `findings` collects the places where prompts differ from those of a replay."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._ids: dict[str, int] = {}
        """The id of every message, by its content."""
        self._before: list[int] | None = None
        """The ids of the previous prompt."""
        self._last: LlmResponded | None = None
        self._next: list[ForeignMessage] = []
        """The messages that a replay adds to the previous prompt: the answer, and the results of its calls."""

    def answered(self, response: LlmResponded, answer: ForeignMessage | None) -> None:
        """Add an answer, which the next prompt should continue."""
        self._last = response
        self._next = [] if answer is None else [answer]

    def completed(self, result: ToolCallCompleted, call_id: str | None) -> None:
        """Add the result of a call that was asked for by this id."""
        self._next.append(ForeignMessage("tool", result.message_text("tool"), call_id=call_id, name=result.tool))

    def place(self, messages: Sequence[ForeignMessage]) -> tuple[list[MessageAdded], tuple[Range, ...]]:
        """Return the new messages of a prompt, and the ranges of ids of all its messages."""
        added: list[MessageAdded] = []
        ids: list[int] = []
        for message in messages:
            key = _key(message)
            if key not in self._ids:
                self._ids[key] = len(self._ids)
                added.append(_added(self._ids[key], message))
            ids.append(self._ids[key])
        if self._before is not None:
            self._compare(messages, ids, self._before)
        self._before, self._last, self._next = ids, None, []
        return added, with_ids((), ids)

    def _compare(self, messages: Sequence[ForeignMessage], ids: list[int], before: list[int]) -> None:
        """Check that the prompt is the previous prompt plus the answer and its results, as in a replay."""
        if self._last is not None and self._last.text and not self._last.tool_calls:
            self._findings.doubt("the run continues after an answer without calls, where a replay ends")
        elif ids[: len(before)] != before:
            self._findings.doubt("prompts do not begin with the previous one, as those of a replay do")
        elif not _are_alike(messages[len(before) :], self._next):
            self._findings.doubt(
                "prompts continue with something other than the previous answer and the results of its calls, which a replay "
                "does not send"
            )


class ModelCalls:
    """Creates the events for requests and their outcomes."""

    def __init__(self, work: Work, tools: Sequence[ToolSpec], spent: Spent, findings: Findings) -> None:
        self._tool_ids = {spec.name: number for number, spec in enumerate(tools)}
        self._unstated = [] if any(item.reading.model.tools for item in work.models) else list(self._tool_ids.values())
        """The tools of a request whose span does not list them: all tools if no other span lists them either."""
        self._spent = spent
        self._findings = findings
        self.thread = ForeignThread(findings)
        self.last: Outcome | None = None
        """The outcome of the newest request."""
        self.last_is_known = False
        """Whether the newest request's answer is in the spans."""
        self.number: int | None = None
        """The newest request."""
        self._call_ids: dict[str, int] = {}

    def record(self, item: Item) -> list[tuple[int, EventBase]]:
        """Return the events of a model call, each with its time in nanoseconds; without an outcome if the call had not ended."""
        reading, start_ns = item.reading.model, item.span.start_ns
        self._examine(item)
        self._findings.doubt("model calls failed, and the run continued", times=isinstance(self.last, LlmFailed))
        self.number = 0 if self.number is None else self.number + 1
        added, ranges = self.thread.place(reading.messages or ())
        tools = self._unstated if reading.tools is None else [self._tool_ids[spec.name] for spec in reading.tools]
        requested = LlmRequested(
            request=self.number,
            model=model_name(reading),
            messages=ranges,
            tools=with_ids((), tools),
            parameters=to_json(reading.parameters or {}),
        )
        self.last = self._outcome(item, self.number)
        outcome = [] if self.last is None else [(item.span.end_ns or start_ns, self.last)]
        if self.last is not None:
            self._spent.take(self.last)
        return [*((start_ns, event) for event in (*added, requested)), *outcome]

    def call_id(self, given: str) -> str:
        """Return the id of a call; one that was used before gets a number."""
        name = given
        while name in self._call_ids:
            self._call_ids[name] += 1
            name = f"{name}_{self._call_ids[name]}"
        self._call_ids[name] = 1
        return name

    def _examine(self, item: Item) -> None:
        """Find the missing parts of a prompt."""
        reading, findings = item.reading.model, self._findings
        messages = reading.messages or ()
        findings.doubt("prompts are not in the spans: content was not captured", times=reading.messages is None)
        unknown = sum(not each.known and each.role != "assistant" for each in messages)
        findings.doubt("messages of prompts are in the spans without their content", times=unknown)
        findings.doubt(
            "messages of prompts are not in the spans (`playhead export --max-messages 0` includes them)",
            times=reading.cut,
        )
        for kind in (kind for each in messages for kind in each.lost):
            findings.doubt("prompts have parts that are neither text nor image, which a replay cannot send", kind)
        for name in reading.unrecorded:
            findings.note("request parameters that the recording does not hold (a replay takes them by --set)", name)

    def _outcome(self, item: Item, number: int) -> Outcome | None:
        reading, answer, findings = item.reading.model, item.reading.model.answer, self._findings
        measured = {"latency_ms": item.span.duration_ms, "cost_usd": reading.cost_usd}
        fields: dict[str, Any] = {"request": number, **measured}
        self.last_is_known = answer is not None and (answer.known or bool(answer.calls))
        if answer is None and item.reading.error is not None:
            return LlmFailed(error=item.reading.error, usage=reading.usage, **fields)
        if not self.last_is_known and item.span.end_ns is None:
            return None
        answer = answer or ForeignMessage("assistant")
        for kind in answer.lost:
            findings.note("parts of answers that are left out", kind)
        findings.doubt("answers of the model are not in the spans", times=not self.last_is_known)
        findings.note("model calls whose tokens the spans do not hold", times=reading.usage is None)
        findings.note("model calls with an error that still have an answer", times=item.reading.error is not None)
        calls = (
            call.model_copy(update={"id": self.call_id(call.id), "arguments": to_json(call.arguments)})
            for call in tool_calls(answer.calls, number)
        )
        responded = LlmResponded(
            **fields,
            text=text_of(answer.content),
            thinking=answer.thinking,
            tool_calls=tuple(calls),
            finish_reason=reading.finish_reason,
            usage=(reading.usage or Usage()).of_answer(),
            model=reading.answered_by,
        )
        self.thread.answered(responded, reading.answer)
        return responded


def _added(number: int, message: ForeignMessage) -> MessageAdded:
    of_call: dict[str, Any] = {} if message.role != "tool" else {"tool_call_id": message.call_id, "name": message.name}
    calls = tool_calls(message.calls, number)
    return MessageAdded(id=number, role=message.role, content=message.content, tool_calls=calls, **of_call)


def _are_alike(sent: Sequence[ForeignMessage], known: Sequence[ForeignMessage]) -> bool:
    """Return whether messages equal those that a replay adds; many spans omit the tool's name of a result."""
    named = [other.name if each.name is None else each.name for each, other in zip(sent, known, strict=False)]
    return list(map(_key, sent)) == list(map(_key, known)) and named == [each.name for each in known]


def _key(message: ForeignMessage) -> str:
    """Return a digest of the parts of a message that a replay must send unchanged."""
    content = message.content
    has_image = not isinstance(content, str) and any(part.type == "image" for part in content)
    said = [part.model_dump(mode="json") for part in content] if has_image else text_of(content)  # type: ignore[union-attr]
    calls = [[call.id, call.name, call.arguments, call.raw] for call in message.calls]
    return digest([message.role, said, calls, message.call_id])
