"""The thread of an agent, put together from the prompts of its model calls: each message is written once."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from typing import TYPE_CHECKING

from playhead.importing.readings import ForeignMessage
from playhead.trace.events import MessageAdded, MessageRef
from playhead.trace.types import ToolCall, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from playhead.importing.findings import Findings
    from playhead.importing.readings import ForeignCall
    from playhead.trace.events import LlmResponded, ToolCallCompleted
    from playhead.trace.types import Range


class ForeignThread:
    """Gives messages their ids; a prompt that goes on from the one before refers to the same messages again."""

    def __init__(self, findings: Findings, otherwise: Findings) -> None:
        self._findings = findings
        self._otherwise = otherwise
        """Takes what a replay's plain loop would send otherwise."""
        self._keys: list[str] = []
        """Of every message, by its id."""
        self._ids: dict[str, list[int]] = defaultdict(list)
        self._before: list[int] | None = None
        """The ids of the prompt before."""
        self._leading = 0
        """Messages of the system that the prompt before begins with."""
        self._answers: dict[str, int] = {}
        self._results: dict[str, ToolCallCompleted] = {}
        self._last: LlmResponded | None = None
        self._next: list[ForeignMessage] = []
        """What a replay adds to the prompt before: the answer, and the results of its calls."""

    def answered(self, response: LlmResponded, answer: ForeignMessage | None) -> None:
        """Take an answer, with which a later prompt goes on."""
        self._answers[_key_of_answer(response)] = response.request
        self._last = response
        self._next = [] if answer is None else [answer]

    def completed(self, result: ToolCallCompleted, call_id: str | None) -> None:
        """Take the result of a call that was asked for by this id."""
        self._results[result.call_id] = result
        self._next.append(ForeignMessage("tool", result.message_text("tool"), call_id=call_id))

    def place(self, messages: Sequence[ForeignMessage], cut: int = 0) -> tuple[list[MessageAdded], tuple[Range, ...]]:
        """Return the messages of a prompt that are new, and the ranges of ids that it is.

        `cut` messages between those of the system and the others are not shown; where the prompt before had them, they are
        put in again.
        """
        added: list[MessageAdded] = []
        before = self._before or []
        if cut and self._last is not None and cut == len(before) - self._leading + 1:
            self._remember(self._last, before, added)
        leading = next((place for place, each in enumerate(messages) if each.role != "system"), len(messages))
        ids = self._ids_of(messages, leading, cut, added)
        if cut and self._joins_on(messages, ids, leading, cut):
            ids = [*before[: leading + cut], *ids[leading:]]
        else:
            self._findings.doubt("messages that prompts had and do not show", times=cut)
        if self._before is not None:
            self._compare(messages, ids, cut)
        self._before, self._leading, self._last, self._next = ids, leading, None, []
        return added, ranges_of(ids)

    def _compare(self, messages: Sequence[ForeignMessage], ids: list[int], cut: int) -> None:
        """Find whether the prompt is the one before, the answer and its results, as that of a replay is."""
        before = self._before or []
        if self._last is not None and self._last.text and not self._last.tool_calls:
            self._otherwise.doubt("the run goes on after an answer that calls no tool, where a replay ends")
        elif ids[: len(before)] != before:
            self._otherwise.doubt("prompts do not begin with the one before, as those of a replay do")
        elif [_plain(each) for each in messages[max(0, len(before) - cut) :]] != [_plain(each) for each in self._next]:
            self._otherwise.doubt(
                "prompts go on with something else than the answer before and the results of its calls, which a replay "
                "does not send"
            )

    def _joins_on(self, messages: Sequence[ForeignMessage], ids: list[int], leading: int, cut: int) -> bool:
        """Tell whether what a prompt does not show is what the one before had: what it shows has to join on to that."""
        before, place = self._before or [], leading + cut
        if self._leading != leading or before[:leading] != ids[:leading] or len(ids) == leading:
            return False
        if place < len(before):
            return before[place] == ids[leading]
        if place > len(before) or self._last is None:
            return False
        answers_a_call = messages[leading].call_id in {call.id for call in self._last.tool_calls}
        return answers_a_call or _key(messages[leading]) == _key_of_answer(self._last)

    def _remember(self, response: LlmResponded, before: list[int], added: list[MessageAdded]) -> None:
        """Add the answer to the prompt before, which the next prompt had and does not show."""
        key = _key_of_answer(response)
        number = next(iter(self._ids.get(key, [])), len(self._keys))
        if number == len(self._keys):
            self._keys.append(key)
            self._ids[key].append(number)
            added.append(MessageAdded(id=number, role="assistant", ref=MessageRef(request=response.request)))
        before.append(number)

    def _ids_of(
        self, messages: Sequence[ForeignMessage], leading: int, cut: int, added: list[MessageAdded]
    ) -> list[int]:
        """Return the ids of the messages of a prompt; those that are new join the thread."""
        ids: list[int] = []
        used: dict[str, int] = defaultdict(int)
        for place, message in enumerate(messages):
            key = _key(message)
            number = self._known(key, place if place < leading else place + cut, used)
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
        before = self._before or []
        if place < len(before) and self._keys[before[place]] == key and not used[key]:
            return before[place]
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


def _plain(message: ForeignMessage) -> object:
    """Return what of a message has to be the same in a replay."""
    has_image = not isinstance(message.content, str) and any(part.type == "image" for part in message.content)
    said = message.content if has_image else text_of(message.content)
    return (
        message.role,
        said,
        [(call.id, call.name, call.arguments, call.raw) for call in message.calls],
        message.call_id,
    )


def _key(message: ForeignMessage) -> str:
    content = message.content
    said = content if isinstance(content, str) else [part.model_dump(mode="json") for part in content]
    calls = [[call.id, call.name, call.arguments, call.raw] for call in message.calls]
    return digest([message.role, said, calls, message.call_id, message.name])


def _key_of_answer(response: LlmResponded) -> str:
    """Return the key of the message that an answer becomes."""
    calls = [[call.id, call.name, call.arguments, call.raw_arguments] for call in response.tool_calls]
    return digest(["assistant", response.text, calls, None, None])
