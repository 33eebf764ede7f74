"""The thread of an agent, put together from the prompts of its model calls: each message is written once."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from playhead.importing.messages import ForeignMessage
from playhead.trace.events import MessageAdded, MessageRef
from playhead.trace.types import ToolCall, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from playhead.importing.findings import Findings
    from playhead.importing.messages import ForeignCall
    from playhead.trace.events import LlmResponded, ToolCallCompleted
    from playhead.trace.types import Range


class ForeignThread:
    """Gives messages their ids; `findings` takes where prompts are not what a replay's plain loop would send."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._ids: dict[str, int] = {}
        """Of every message, by what it says."""
        self._answers: dict[str, int] = {}
        self._results: dict[str, ToolCallCompleted] = {}
        self._before: list[int] | None = None
        """The ids of the prompt before."""
        self._last: LlmResponded | None = None
        self._next: list[ForeignMessage] = []
        """What a replay adds to the prompt before: the answer, and the results of its calls."""

    def answered(self, response: LlmResponded, answer: ForeignMessage | None) -> None:
        """Take an answer, with which a later prompt goes on."""
        calls = [[call.id, call.name, call.arguments, call.raw_arguments] for call in response.tool_calls]
        self._answers[digest(["assistant", response.text, calls, None])] = response.request
        self._last = response
        self._next = [] if answer is None else [answer]

    def completed(self, result: ToolCallCompleted, call_id: str | None) -> None:
        """Take the result of a call that was asked for by this id."""
        self._results[result.call_id] = result
        self._next.append(ForeignMessage("tool", result.message_text("tool"), call_id=call_id))

    def place(self, messages: Sequence[ForeignMessage]) -> tuple[list[MessageAdded], tuple[Range, ...]]:
        """Return the messages of a prompt that are new, and the ranges of ids that it is."""
        added: list[MessageAdded] = []
        ids: list[int] = []
        for message in messages:
            key = _key(message)
            if key not in self._ids:
                self._ids[key] = len(self._ids)
                added.append(self._added(self._ids[key], message, key))
            ids.append(self._ids[key])
        if self._before is not None:
            self._compare(messages, ids, self._before)
        self._before, self._last, self._next = ids, None, []
        return added, ranges_of(ids)

    def _compare(self, messages: Sequence[ForeignMessage], ids: list[int], before: list[int]) -> None:
        """Find whether the prompt is the one before, the answer and its results, as that of a replay is."""
        if self._last is not None and self._last.text and not self._last.tool_calls:
            self._findings.doubt("the run goes on after an answer that calls no tool, where a replay ends")
        elif ids[: len(before)] != before:
            self._findings.doubt("prompts do not begin with the one before, as those of a replay do")
        elif [_key(each) for each in messages[len(before) :]] != [_key(each) for each in self._next]:
            self._findings.doubt(
                "prompts go on with something else than the answer before and the results of its calls, which a replay "
                "does not send"
            )

    def _added(self, number: int, message: ForeignMessage, key: str) -> MessageAdded:
        is_result = message.role == "tool"
        told: dict[str, Any] = {"tool_call_id": message.call_id, "name": message.name} if is_result else {}
        request = self._answers.get(key) if message.role == "assistant" else None
        result = self._results.get(message.call_id or "") if is_result else None
        if request is not None:
            return MessageAdded(id=number, role="assistant", ref=MessageRef(request=request))
        if result is not None and result.message_text("tool") == message.content:
            return MessageAdded(id=number, role="tool", ref=MessageRef(call=result.call_id), **told)
        calls = tool_calls(message.calls, number)
        return MessageAdded(id=number, role=message.role, content=message.content, tool_calls=calls, **told)


def digest(value: object) -> str:
    """Return a digest of a JSON value: long prompts come again with every model call, and are compared by it."""
    text = json.dumps(value, sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def tool_calls(calls: Sequence[ForeignCall], number: int) -> tuple[ToolCall, ...]:
    """Return the calls of a message as events hold them; those without an id get one of the message's number."""
    return tuple(
        ToolCall(
            id=call.id or f"call_{number}_{place}", name=call.name, arguments=call.arguments, raw_arguments=call.raw
        )
        for place, call in enumerate(calls)
    )


def ranges_of(ids: Iterable[int]) -> tuple[Range, ...]:
    """Return ids as inclusive ranges, in their order."""
    ranges: list[Range] = []
    for number in ids:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return tuple(ranges)


def _key(message: ForeignMessage) -> str:
    """Return a digest of what has to be the same of a message in a replay: by it messages are told apart, and compared."""
    content = message.content
    has_image = not isinstance(content, str) and any(part.type == "image" for part in content)
    said = [part.model_dump(mode="json") for part in content] if has_image else text_of(content)  # type: ignore[union-attr]
    calls = [[call.id, call.name, call.arguments, call.raw] for call in message.calls]
    return digest([message.role, said, calls, message.call_id])
