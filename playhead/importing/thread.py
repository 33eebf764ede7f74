"""The thread of an agent, put together from the prompts of its model calls: each message is written once."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from typing import TYPE_CHECKING

from playhead.importing.following import follows
from playhead.trace.events import MessageAdded, MessageRef
from playhead.trace.types import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from playhead.importing.readings import ForeignCall, ForeignMessage
    from playhead.trace.events import LlmResponded, ToolCallCompleted
    from playhead.trace.types import Range


class ForeignThread:
    """Gives messages their ids; a prompt that goes on from the one before refers to the same messages again."""

    def __init__(self) -> None:
        self._keys: list[str] = []
        """Of every message, by its id."""
        self._ids: dict[str, list[int]] = defaultdict(list)
        self._before: list[int] = []
        """The ids of the prompt before."""
        self._answers: dict[str, int] = {}
        self._results: dict[str, ToolCallCompleted] = {}
        self._leading = 0
        """Messages of the system that the prompt before begins with."""
        self._last: LlmResponded | None = None
        self.rewritten = 0
        """Prompts that did not begin as the one before."""
        self.otherwise = 0
        """Prompts that went on with something else than the answer before and the results of its calls."""
        self.unseen = 0
        """Messages that prompts had and do not show."""

    def answered(self, response: LlmResponded) -> None:
        """Take an answer, to which a message of a later prompt may refer."""
        self._answers[_key_of_answer(response)] = response.request
        self._last = response

    def _goes_on(self, messages: Sequence[ForeignMessage], ids: list[int], cut: int) -> bool:
        """Tell whether what a prompt does not show is what the one before had: what it shows has to join on to that."""
        leading, place = self._leading, self._leading + cut
        if self._before[:leading] != ids[:leading] or len(ids) == leading:
            return False
        if place < len(self._before):
            return self._before[place] == ids[leading]
        if place > len(self._before) or self._last is None:
            return False
        answers_a_call = messages[leading].call_id in {call.id for call in self._last.tool_calls}
        return answers_a_call or _key(messages[leading]) == _key_of_answer(self._last)

    def _remember(self, response: LlmResponded, added: list[MessageAdded]) -> None:
        """Add the answer to the prompt before, which the next prompt had and does not show."""
        key = _key_of_answer(response)
        number = next(iter(self._ids.get(key, [])), len(self._keys))
        if number == len(self._keys):
            self._keys.append(key)
            self._ids[key].append(number)
            added.append(MessageAdded(id=number, role="assistant", ref=MessageRef(request=response.request)))
        self._before.append(number)

    def completed(self, result: ToolCallCompleted) -> None:
        """Take a result, to which a message of a later prompt may refer."""
        self._results[result.call_id] = result

    def place(self, messages: Sequence[ForeignMessage], cut: int = 0) -> tuple[list[MessageAdded], tuple[Range, ...]]:
        """Return the messages of a prompt that are new, and the ranges of ids that it is.

        `cut` messages between those of the system and the others are not shown; where the prompt before had them, they are
        put in again.
        """
        added: list[MessageAdded] = []
        remembers = bool(cut) and cut == len(self._before) - self._leading + 1 and self._last is not None
        if remembers and self._last is not None:
            self._remember(self._last, added)
        leading = self._leading = next(
            (place for place, each in enumerate(messages) if each.role != "system"), len(messages)
        )
        ids = self._ids_of(messages, cut, added)
        if cut and self._goes_on(messages, ids, cut):
            ids = [*self._before[: leading + cut], *ids[leading:]]
        else:
            self.unseen += cut
        if ids[: len(self._before)] != self._before:
            self.rewritten += 1
        elif self._before and len(ids) == len(messages) + cut:
            self.otherwise += not self._follows(messages[max(len(self._before) - cut, leading) :], not remembers)
        self._before, self._last = ids, None
        return added, ranges_of(ids)

    def _follows(self, new: Sequence[ForeignMessage], answer_is_shown: bool) -> bool:  # noqa: FBT001 - told by the prompt
        """Tell whether a prompt goes on as that of a replay does, which ends at an answer without calls."""
        ends = self._last is not None and self._last.text and not self._last.tool_calls
        return bool(ends) or follows(new, self._last, self._results, answer_is_shown=answer_is_shown)

    def _ids_of(self, messages: Sequence[ForeignMessage], cut: int, added: list[MessageAdded]) -> list[int]:
        """Return the ids of the messages of a prompt; those that are new join the thread."""
        ids: list[int] = []
        used: dict[str, int] = defaultdict(int)
        for place, message in enumerate(messages):
            key = _key(message)
            number = self._known(key, place if place < self._leading else place + cut, used)
            if number is None:
                number = len(self._keys)
                self._keys.append(key)
                self._ids[key].append(number)
                added.append(self._added(number, message))
            used[key] += 1
            ids.append(number)
        return ids

    def _known(self, key: str, place: int, used: dict[str, int]) -> int | None:
        """Return the id of an equal message that this prompt does not hold yet: the one of the same place first."""
        if place < len(self._before) and self._keys[self._before[place]] == key and not used[key]:
            return self._before[place]
        known = self._ids.get(key, [])
        return known[used[key]] if used[key] < len(known) else None

    def _added(self, number: int, message: ForeignMessage) -> MessageAdded:
        fields: dict[str, str] = {}
        if message.role == "tool":
            fields |= {"tool_call_id": message.call_id} if message.call_id else {}
            fields |= {"name": message.name} if message.name else {}
        ref = self._ref(message)
        if ref is not None:
            return MessageAdded(id=number, role=message.role, ref=ref, **fields)  # type: ignore[arg-type]
        calls = tuple(tool_call(call, call.id or f"call_{number}_{place}") for place, call in enumerate(message.calls))
        return MessageAdded(id=number, role=message.role, content=message.content, tool_calls=calls, **fields)  # type: ignore[arg-type]

    def _ref(self, message: ForeignMessage) -> MessageRef | None:
        """Return where the content of a message stands already."""
        if message.role == "assistant":
            request = self._answers.get(_key(message))
            return None if request is None else MessageRef(request=request)
        result = self._results.get(message.call_id or "") if message.role == "tool" else None
        if result is not None and result.message_text("tool") == message.content:
            return MessageRef(call=result.call_id)
        return None


def digest(value: object) -> str:
    """Return a digest of a JSON value: long prompts come again with every model call, and are compared by it."""
    text = json.dumps(value, sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def tool_call(call: ForeignCall, call_id: str) -> ToolCall:
    """Return a call as events hold it."""
    return ToolCall(id=call_id, name=call.name, arguments=call.arguments, raw_arguments=call.raw)


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
    return digest(
        [message.role, _said(message), [_asked(call) for call in message.calls], message.call_id, message.name]
    )


def _key_of_answer(response: LlmResponded) -> str:
    """Return the key of the message that an answer becomes."""
    return digest(["assistant", response.text, [_plain(call) for call in response.tool_calls], None, None])


def _said(message: ForeignMessage) -> object:
    content = message.content
    return content if isinstance(content, str) else [part.model_dump(mode="json") for part in content]


def _asked(call: ForeignCall) -> list[object]:
    return [call.id, call.name, call.arguments, call.raw]


def _plain(call: ToolCall) -> list[object]:
    return [call.id, call.name, call.arguments, call.raw_arguments]
