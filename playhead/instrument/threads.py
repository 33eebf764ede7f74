"""The thread of a program, from the requests that it sends: each message is written once, and requests name it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.trace.events import MessageRef
from playhead.trace.types import Message, made, with_ids

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.trace.events import LlmResponded, ToolCallCompleted
    from playhead.trace.types import Range


class SentMessages:
    """The messages of a program's requests, with dense ids. The caller holds the scope's lock."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ids: dict[str, int] = {}
        """Ids by content."""
        self._refs: dict[str, MessageRef] = {}
        """Answers and results that the program may send back, by the message that it would send."""

    def ranges(self, messages: tuple[Message, ...]) -> tuple[tuple[Message, ...], tuple[Range, ...]]:
        """Return the messages of a request with their ids, and the ids as ranges; write those that are new."""
        numbered = tuple([self._numbered(each) for each in messages])
        return numbered, with_ids((), [each.id for each in numbered])

    def note_answer(self, response: LlmResponded) -> None:
        """Know the message that repeats an answer."""
        message = made(Message, id=0, role="assistant", content=response.text, tool_calls=response.tool_calls)
        self._refs[_key(message)] = made(MessageRef, request=response.request)

    def note_result(self, completed: ToolCallCompleted) -> None:
        """Know the message that repeats a result."""
        message = Message(id=0, role="tool", content=completed.observation(), tool_call_id=completed.call_id)
        self._refs[_key(message)] = made(MessageRef, call=completed.call_id)

    def _numbered(self, message: Message) -> Message:
        key = _key(message)
        number = self._ids.get(key)
        if number is not None:
            return message.model_copy(update={"id": number})
        ref, port = self._refs.get(_key(message.model_copy(update={"name": None}))), self._session.messages
        fields: dict[str, Any] = message.model_dump(include={"tool_call_id", "name"}, exclude_none=True)
        if ref is not None:
            added = port.refer(message, ref, fields)
        else:
            if message.tool_calls:
                fields["tool_calls"] = message.tool_calls
            added = port.add(message.role, message.content, **fields)
        self._ids[key] = added.id
        return added


def _key(message: Message) -> str:
    return message.model_dump_json(exclude={"id"})
