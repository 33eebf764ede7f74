"""The thread of a program, from the requests that it sends: each message is written once, and requests name it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.trace.events import MessageRef
from playhead.trace.types import Message, made, with_ids

if TYPE_CHECKING:
    from collections.abc import Hashable

    from playhead.kernel.session import Session
    from playhead.trace.events import LlmResponded, ToolCallCompleted
    from playhead.trace.types import Range


class SentMessages:
    """The messages of a program's requests, with dense ids. The caller holds the scope's lock."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ids: dict[Hashable, int] = {}
        """Ids by content."""
        self._refs: dict[Hashable, MessageRef] = {}
        """Answers and results that the program may send back, by the message that it would send."""

    def ranges(self, messages: tuple[Message, ...]) -> tuple[Range, ...]:
        """Return the ids of a request's messages as ranges; write those that are new."""
        return with_ids((), [self._id(each) for each in messages])

    def note_answer(self, response: LlmResponded) -> None:
        """Know the message that repeats an answer."""
        message = made(Message, id=0, role="assistant", content=response.text, tool_calls=response.tool_calls)
        self._refs[_key(message)] = made(MessageRef, request=response.request)

    def note_result(self, completed: ToolCallCompleted) -> None:
        """Know the message that repeats a result."""
        message = Message(id=0, role="tool", content=completed.observation(), tool_call_id=completed.call_id)
        self._refs[_key(message)] = made(MessageRef, call=completed.call_id)

    def _id(self, message: Message) -> int:
        key = _key(message)
        number = self._ids.get(key)
        if number is not None:
            return number
        ref, port = self._refs.get(_key(message, name=None)), self._session.messages
        fields: dict[str, Any] = message.model_dump(include={"tool_call_id", "name"}, exclude_none=True)
        if ref is not None:
            added = port.refer(message, ref, fields)
        else:
            if message.tool_calls:
                fields["tool_calls"] = message.tool_calls
            added = port.add(message.role, message.content, **fields)
        self._ids[key] = added.id
        return added.id


def _key(message: Message, **other: object) -> Hashable:
    """Return what a message says, as a key; the JSON of its parts would cost as much as the whole request."""
    name = other.get("name", message.name)
    is_plain = type(message.content) is str and not message.tool_calls
    said = message.content if is_plain else message.model_dump_json(include={"content", "tool_calls"})
    return message.role, said, message.tool_call_id, name
