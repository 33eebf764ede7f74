"""The thread of one owner: each message is recorded once, and requests refer to messages by id."""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right, insort
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.spans.messages import Shown, shown_answer, shown_message, shown_tool, tool_attributes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from playhead.spans.masking import Masking
    from playhead.trace.events import LlmResponded, MessageAdded, ToolCallCompleted, ToolsDefined
    from playhead.trace.types import Content, Range, ToolCall, ToolSpec

_TOLD: Final = 40
"""Characters of a tool's description that identify it in a prompt, which may shorten it."""


_LONGEST_TURN: Final = 128
"""Most messages of the newest turn beyond the cap; OpenAI allows as many tools in a request."""


class Prompt(NamedTuple):
    """The messages of a request that its span shows."""

    messages: list[Shown]
    cut: int
    """Messages that are not shown: between the first user message and the newest turns."""
    missing: int
    """Messages that are not in the records."""


class Offered(NamedTuple):
    """The tools of a request."""

    attributes: dict[str, str]
    json: str
    """OpenAI's list of them."""
    tools: tuple[ToolSpec, ...]


class ToolNames:
    """The tools of one owner, for spans that are not described."""

    def __init__(self) -> None:
        self._by_name: dict[str, ToolSpec] = {}

    def define(self, defined: ToolsDefined) -> None:
        """Add tools."""
        self._by_name.update((tool.name, tool) for tool in defined.tools)

    def tool(self, name: str) -> ToolSpec | None:
        """Return the tool of this name that was defined last."""
        return self._by_name.get(name)

    def add(self, added: MessageAdded) -> None:
        """Need no message."""

    def answered(self, response: LlmResponded) -> tuple[LlmResponded, Shown]:
        """Need no answer."""
        return response, Shown((), (), "null", {})

    def completed(self, result: ToolCallCompleted) -> None:
        """Need no result."""

    def call_id(self, call_id: str) -> str:
        """Return the id of a call as it is."""
        return call_id


class SpanThread(ToolNames):
    """The messages and tools of one owner."""

    def __init__(self, owner: str, masking: Masking) -> None:
        super().__init__()
        self._suffix = "" if owner == "root" else f"_{hashlib.sha256(owner.encode()).hexdigest()[:6]}"
        self._masking = masking
        self._told: set[str] = set()
        self._messages: dict[int, Shown] = {}
        self._ids: list[int] = []
        self._system: list[int] = []
        self._user: list[int] = []
        self._answers: dict[int, tuple[LlmResponded, Shown]] = {}
        self._results: dict[str, ToolCallCompleted] = {}
        self._tools: dict[int, ToolSpec] = {}
        self._offered: dict[tuple[Range, ...], Offered] = {}

    def add(self, added: MessageAdded) -> None:
        """Add a message; it is empty if the records do not contain its content."""
        if added.id in self._messages:
            return
        self._messages[added.id] = self._answer_sent(added) or self._shown(added)
        insort(self._ids, added.id)
        if added.role in {"system", "user"}:
            insort(self._system if added.role == "system" else self._user, added.id)

    def _shown(self, added: MessageAdded) -> Shown:
        content, calls = self._content_of(added)
        name = added.name and self._masking.tool_name(added.name, self.tool(added.name))
        if self._suffix and added.tool_call_id is not None:
            added = added.model_copy(update={"tool_call_id": self.call_id(added.tool_call_id)})
        unique = self._with_own_ids(self._masking.calls(calls, self._by_name))
        return shown_message(added, name, content, unique, self._masking.image)

    def call_id(self, given: str) -> str:
        """Return the id of a call in spans: unique in the trace, while events have ids that are unique in their owner."""
        return given + self._suffix

    def _with_own_ids(self, calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
        return [call.model_copy(update={"id": self.call_id(call.id)}) for call in calls] if self._suffix else calls

    def lists_tools(self, added: MessageAdded) -> bool:
        """Return whether a prompt describes a tool, which is hidden, in words, regardless of line breaks."""
        content = added.content or ""
        texts = [content] if isinstance(content, str) else [part.text for part in content if part.type == "text"]
        return any(said in " ".join(text.split()) for text in texts for said in self._told)

    def _answer_sent(self, added: MessageAdded) -> Shown | None:
        """Return the converted answer that an assistant message repeats; None with reasoning, which is not sent back."""
        if added.ref is None or added.ref.request not in self._answers or added.role != "assistant":
            return None
        answer, shown = self._answers[added.ref.request]
        return None if answer.thinking else shown

    def _content_of(self, added: MessageAdded) -> tuple[Content, tuple[ToolCall, ...]]:
        """Return the content and the calls of a message, resolving a reference to an answer or a result."""
        ref = added.ref
        if ref is not None and ref.request is not None:
            known = self._answers.get(ref.request)
            return (known[0].text, known[0].tool_calls) if known else ("", ())
        if ref is not None and ref.call is not None:
            result = self._results.get(ref.call)
            return result.message_text(added.role) if result else "", added.tool_calls
        return added.content or "", added.tool_calls

    def answered(self, response: LlmResponded) -> tuple[LlmResponded, Shown]:
        """Add an answer, which messages may refer to; return it masked, and as a message."""
        said = self._masking.answer(response, self._by_name)
        if self._suffix:
            said = said.model_copy(update={"tool_calls": self._with_own_ids(said.tool_calls)})
        answer = self._answers[response.request] = said, shown_answer(said)
        return answer

    def completed(self, result: ToolCallCompleted) -> None:
        """Add a result, which messages may refer to."""
        self._results[result.call_id] = result

    def define(self, defined: ToolsDefined) -> None:
        """Add tools."""
        self._tools.update(enumerate(defined.tools, defined.first_id))
        super().define(defined)
        if not self._masking.tools:
            self._told |= {_as_told(tool) for tool in defined.tools}
        self._offered.clear()

    def prompt(self, ranges: Sequence[Range], most: int | None) -> Prompt:
        """Return the messages of these ids, or, if they are more than `most`, those that still are a valid conversation.

        These are the system messages, the first user message and the newest turns: a user message, or an assistant
        message with the results of its calls. The newest turn is always among them, so there can be a few more than `most`.
        """
        places = [(bisect_left(self._ids, first), bisect_right(self._ids, last)) for first, last in ranges]
        known = sum(max(0, end - start) for start, end in places)
        if most is None or known <= most:
            ids = [number for start, end in places for number in self._ids[start:end]][: len(self._ids)]
        else:
            ids = self._cut(
                ranges, (self._ids[at] for start, end in reversed(places) for at in range(end - 1, start - 1, -1)), most
            )
        return Prompt(
            [self._messages[number] for number in ids],
            known - len(ids),
            sum(max(0, last - first + 1) for first, last in ranges) - known,
        )

    def _cut(self, ranges: Sequence[Range], newest_first: Iterator[int], most: int) -> list[int]:
        """Return the ids to show, in send order."""
        head = {*islice(_within(self._system, ranges), most), *islice(_within(self._user, ranges), 1)}
        shown = len(head)
        recent: list[int] = []
        turn: list[int] = []
        for number in newest_first:
            if len(turn) > _LONGEST_TURN:
                break
            if number in head:
                recent.append(number)  # it keeps its place
                continue
            turn.append(number)
            if self._messages[number].message["role"] != "tool":  # the turn begins with it
                if shown > len(head) and shown + len(turn) > most:
                    break
                shown, recent, turn = shown + len(turn), recent + turn, []
        return [*sorted(head.difference(recent)), *reversed(recent)]

    def offered(self, ranges: tuple[Range, ...]) -> Offered:
        """Return the tools of these ids."""
        known = self._offered.get(ranges)
        if known is None:
            known = self._offered[ranges] = self._offer(ranges)
        return known

    def _offer(self, ranges: Sequence[Range]) -> Offered:
        ids = sorted(self._tools)
        asked = (
            self._tools[number]
            for first, last in ranges
            for number in ids[bisect_left(ids, first) : bisect_right(ids, last)]
        )
        found = tuple(islice(asked, len(ids)))  # a hostile file may repeat ids without end
        shown = [shown_tool(tool) for tool in found]
        return Offered(tool_attributes(shown), f"[{','.join(shown)}]", found)


def _within(ids: Sequence[int], ranges: Iterable[Range]) -> Iterator[int]:
    """Yield those of the sorted ids that are in the ranges, in send order."""
    for first, last in ranges:
        for place in range(bisect_left(ids, first), bisect_right(ids, last)):
            yield ids[place]


def _as_told(tool: ToolSpec) -> str:
    """Return the words that identify a tool's description in a prompt: the start of its first line."""
    first_line = tool.description.strip().partition("\n")[0] or f"{tool.name}("
    return " ".join(first_line.split())[:_TOLD]
