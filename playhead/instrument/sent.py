"""What a program's request repeats of the one before: of a thread that grows, only what is new is read, redacted and looked up."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from playhead.importing.bodies import at, parsed
from playhead.importing.wire import WireRequest
from playhead.instrument.formats import read_request
from playhead.trace.base import made
from playhead.trace.events import MessageRef
from playhead.trace.parameters import fingerprint, is_keyed
from playhead.trace.types import Message, with_ids
from playhead.trace.values import scrub

if TYPE_CHECKING:
    from collections.abc import Hashable

    from playhead.importing.wire import Asked
    from playhead.kernel.session import Session
    from playhead.trace.events import LlmResponded, ToolCallCompleted
    from playhead.trace.redaction import Redactor
    from playhead.trace.types import Content, Range, ToolCall


@dataclass(slots=True)
class Sent:
    """A request as its program sends it."""

    asked: Asked
    wire: WireRequest | None
    """The body, read; None when the wire format is unknown."""
    known: int = 0
    """How many of its messages are those of the request before."""
    begin: int = 0
    """Where the messages that are new begin in the body."""
    end: int = 0
    """Where the last message ends; 0 where that is not known."""
    needles: tuple[bytes, ...] | None = None
    """The known secrets when the body was found to hold none of them; None if redaction concerns it."""
    hashed: Any = None
    """The running hash of the body: up to `begin` before `identity`, up to `end` after it; None where it is not known."""
    ranges: tuple[Range, ...] = ()
    """The ids of the messages, as far as they are known."""

    def identity(self, redactor: Redactor) -> str:
        """Return the hash of the body after redaction; with a fingerprint where redaction makes different bodies look the same."""
        body, begin = self.asked.body, self.begin if self.needles is redactor.needles else 0
        # A part without secrets stays so in a longer body: no secret spans messages, because JSON escapes quotes within texts.
        is_clean = not redactor.concerns(body[begin:])
        self.needles = redactor.needles if is_clean else None
        known, self.hashed = self.hashed, None
        if is_clean:
            whole = sha256() if known is None else known.copy()
            whole.update(body[0 if known is None else self.begin : self.end])
            self.hashed = whole.copy() if self.end else None
            whole.update(body[self.end :])
            return str(whole.hexdigest())
        text = scrub(body.decode(errors="replace"))
        redacted = redactor.redact_text(text)
        hashed = sha256(body if redacted == text else redacted.encode()).hexdigest()
        is_shown = redacted == text or (is_keyed(redacted) and not redactor.has_rules)
        return hashed if is_shown else f"{hashed}.{fingerprint(text)}"


def read(asked: Asked, last: Sent | None) -> Sent:
    """Return a request, given the one before of the same thread or task."""
    grown = None if last is None or last.wire is None or last.asked.url != asked.url else _grown(asked, last, last.wire)
    return grown or Sent(asked, read_request(asked.method, asked.url, asked.body))


def _grown(asked: Asked, last: Sent, wire: WireRequest) -> Sent | None:
    """Return a request that repeats the bytes of the one before and adds messages; None for any other."""
    old, body = last.asked.body, asked.body
    longer = len(body) - len(old)
    last.end = last.end or (_end(wire) if longer > 0 else 0)
    is_longer = last.end and body.startswith(old[: last.end]) and body.startswith(b",", last.end)
    if not (is_longer and body.endswith(old[last.end :])):
        return None
    name, end = wire.format.thread, last.end + longer
    more = parsed(b"[" + body[last.end + 1 : end] + b"]")
    if not (isinstance(more, list) and more):
        return None
    if wire.messages[-1].role == "assistant":  # a message of calls may be merged into that
        return None
    messages = (*wire.messages, *wire.format.messages({name: more}))
    grown = WireRequest(wire.format, wire.url, body, wire.model, messages, wire.tools, wire.parameters)
    return Sent(asked, grown, len(wire.messages), last.end, end, last.needles, last.hashed, last.ranges)


def _end(wire: WireRequest) -> int:
    """Return where the last message ends in a body that is written as SDKs write JSON; 0 where that is not known."""
    name = wire.format.thread
    items = wire.body.get(name)
    if not isinstance(items, list) or not items:
        return 0
    before, found, after = wire.raw.partition(to_json(items))
    is_there = found and at(parsed(before + b"0" + after), name) == 0
    return len(before) + len(found) - 1 if is_there else 0


class SentMessages:
    """The messages of a program's requests, with dense ids. The caller holds the scope's lock."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ids: dict[Hashable, int] = {}
        """Ids by content."""
        self._refs: dict[Hashable, dict[str, Any]] = {}
        """References to answers and results that the program may send back, by the message that it would send."""

    def ranges(self, messages: tuple[Message, ...], known: tuple[Range, ...]) -> tuple[Range, ...]:
        """Return the ids of a request's messages as ranges, after those that are `known`; write the messages that are new."""
        return with_ids(known, [self._id(each) for each in messages])

    def note_answer(self, response: LlmResponded) -> None:
        """Remember the message that would repeat an answer."""
        self._refs["assistant", _said(response.text, response.tool_calls), None] = {"request": response.request}

    def note_result(self, completed: ToolCallCompleted) -> None:
        """Remember the message that would repeat a result."""
        self._refs["tool", completed.observation(), completed.call_id] = {"call": completed.call_id}

    def _id(self, message: Message) -> int:
        key = message.role, _said(message.content, message.tool_calls), message.tool_call_id
        if (number := self._ids.get((key, message.name))) is None:
            ref, port = self._refs.get(key), self._session.messages
            fields: dict[str, Any] = {"tool_call_id": message.tool_call_id, "name": message.name}
            if ref is not None:
                added = port.join(message, ref=made(MessageRef, **ref), **fields)
            elif message.tool_calls:  # with arguments that nobody has checked
                added = port.add(message.role, message.content, tool_calls=message.tool_calls, **fields)
            else:
                added = port.join(message, content=message.content, **fields)
            number = self._ids[key, message.name] = added.id
        return number


def _said(content: Content, calls: tuple[ToolCall, ...]) -> Hashable:
    """Return what a message says, as a key: its text, or the bytes of its parts, whose JSON would cost as much as the request."""
    if type(content) is str and not calls:
        return content
    return made(Message, id=0, role="assistant", content=content, tool_calls=calls).model_dump_json().encode()
