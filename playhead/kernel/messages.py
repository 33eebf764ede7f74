"""The record of an agent's thread: each message and each tool schema is written once, and requests refer to them.

Messages pass the hooks before they join the thread. Content that a hook changed is written out; unchanged content is a
reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.context.settings import curator_for
from playhead.kernel.hooks import SUPPRESS
from playhead.kernel.state import Thread
from playhead.trace.base import altered, made
from playhead.trace.events import MessageAdded, MessageRef, NudgeIssued, ToolsDefined
from playhead.trace.types import Message, text_of, with_ids

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.kernel.state import PlannedCall
    from playhead.trace.events import LlmResponded, ToolCallCompleted
    from playhead.trace.types import Content, Range, Request, Role, ToolSpec

REMOVED: Final = "(removed)"
"""Replaces a result that a hook removed, because providers require an answer to every call."""


class ThreadRecord:
    """Adds messages and tool schemas to the record, with dense ids."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._next = 0
        self._tools: dict[str, int] = {}
        """Ids of the recorded tools by their JSON, both original and as changed by hooks."""
        self._offered_tools: tuple[tuple[ToolSpec, ...], tuple[Range, ...]] = ((), ())
        """The tools of the last request, and their ids."""
        self.changed_results: dict[str, str] = {}
        """Results as hooks changed them for the model, by call."""
        self.curator = curator_for(session)
        """Shortens the thread; None if it is sent as it is."""

    def add(self, role: Role, content: Content, **fields: Any) -> Message:  # noqa: ANN401 - of MessageAdded
        """Add a message with its own content, and return it."""
        number = self._next
        self._next += 1
        added = MessageAdded(id=number, role=role, content=content, **fields)
        self._session.emit(added)
        own = {name: getattr(added, name) for name in ("tool_calls", "tool_call_id", "name")}
        return Message(id=number, role=role, content=content, **own)

    async def add_user(self, content: Content, *, replaces: tuple[int, ...] = ()) -> Message | None:
        """Add a message from the user or the kernel; None if a hook removed it.

        `replaces` names the messages that it replaces.
        """
        passed = await self._offered("message.user", Message(id=self._next, role="user", content=content))
        return None if passed is None else self.add("user", passed.content, replaces=replaces)

    async def add_reply(self, response: LlmResponded) -> Message | None:
        """Add the model's answer, whose content is already in the response; None if a hook removed it."""
        message = made(Message, id=self._next, role="assistant", content=response.text, tool_calls=response.tool_calls)
        passed: Message | None = message
        if self._session.gate.hooks is not None:
            passed = await self._offered("message.assistant", message)
            if passed is None and not message.tool_calls:
                return None
            passed = passed or message.model_copy(update={"content": ""})  # results refer to its calls
        if passed is message and response.request not in self._session.gate.rewritten:
            passed = self.join(message, ref=made(MessageRef, request=response.request))
        elif passed is not None:
            passed = self.add("assistant", passed.content, tool_calls=passed.tool_calls)
        if self.curator is not None:
            self.curator.note_reply(response)
        return passed

    async def add_result(
        self, planned: PlannedCall, completed: ToolCallCompleted, text: str | None = None
    ) -> Message | None:
        """Add a result, whose content is already in the completed call; None if a hook removed it.

        A native call needs an answer in the thread, so its result is emptied instead of removed.
        `text` replaces the result's own text.
        """
        role: Role = "user" if planned.source == "text" else "tool"
        fields = {"name": completed.tool, "tool_call_id": None if role == "user" else completed.call_id}
        message = made(Message, id=self._next, role=role, content=text or completed.message_text(role), **fields)
        session, passed = self._session, message
        if session.gate.hooks is not None:
            details = call_details(completed)
            offered = await self._offered("message.tool-result", message, key=completed.call_id, **details)
            if offered is None and role == "user":
                return None
            passed = offered or message.model_copy(update={"content": REMOVED})
            if passed is not message:
                self.changed_results[completed.call_id] = text_of(passed.content)
        shown = None if self.curator is None else self.curator.shown(completed, passed)
        if shown is not None:
            stored = {} if shown.key is None else {"stored": shown.key}
            passed = self.add(role, shown.content, **stored, **fields)
        elif passed is message and text is None and completed.call_id not in session.gate.rewritten:
            passed = self.join(message, ref=made(MessageRef, call=completed.call_id), **fields)
        else:
            passed = self.add(role, passed.content, **fields)
        if self.curator is not None:
            self.curator.note_result(passed, planned, completed)
        return passed

    async def nudge(self, thread: Thread, nudge: str, text: str, *, severity: str = "info") -> Thread:
        """Return the thread with a nudge at its end, and record it; the same thread if a hook removed the nudge."""
        passed = await self._session.offer(f"nudge.{nudge}", text, trigger=nudge, severity=severity)
        message = None if passed is SUPPRESS else await self.add_user(passed)
        if message is None:
            return thread
        self._session.emit(NudgeIssued(nudge=nudge, text=str(passed), severity=severity))  # type: ignore[arg-type]
        if self.curator is not None:
            self.curator.note_nudge(message)
        return thread.add(message)

    def sent(self, thread: Thread, request: Request) -> Thread:
        """Return the messages that a request sends; record those that hooks added or changed."""
        if request.messages is thread.messages or request.messages == thread.messages:
            return thread
        known = {message.id: message for message in thread.messages}
        sent = {id(message) for message in request.messages}
        gone = {number for number, message in known.items() if id(message) not in sent}
        return Thread().add(*(self._sent_once(message, known, gone) for message in request.messages))

    def define_tools(self, specs: tuple[ToolSpec, ...]) -> None:
        """Write the agent's tool schemas."""
        self._tools = {spec.model_dump_json(): number for number, spec in enumerate(specs)}
        if specs:
            self._session.emit(ToolsDefined(first_id=0, tools=specs))

    def tool_ranges(self, specs: tuple[ToolSpec, ...]) -> tuple[Range, ...]:
        """Return the ids of these tools as inclusive ranges; record tools that a hook changed."""
        if specs != self._offered_tools[0]:  # they are nearly always the same as in the last request
            self._offered_tools = specs, with_ids((), map(self.tool_id, specs))
        return self._offered_tools[1]

    def tool_id(self, spec: ToolSpec, *, offered: bool = True) -> int:
        """Return the id of a tool; the first time, record it, by default as one that was changed for a request."""
        as_json = spec.model_dump_json()
        if as_json not in self._tools:
            self._session.emit(ToolsDefined(first_id=len(self._tools), tools=(spec,), offered=offered))
            self._tools[as_json] = len(self._tools)
        return self._tools[as_json]

    def _sent_once(self, message: Message, known: dict[int, Message], gone: set[int]) -> Message:
        own = known.get(message.id)
        if own is not None and (own is message or own == message):
            return own
        fields = message.model_dump(include={"tool_call_id", "name"}, exclude_none=True)
        replaces = (message.id,) if message.id in gone else ()
        return self.add(
            message.role, message.content, tool_calls=message.tool_calls, transient=True, replaces=replaces, **fields
        )

    def join(self, message: Message, **fields: Any) -> Message:  # noqa: ANN401 - of MessageAdded
        """Add a message as these fields say it, which `made` takes as they are: its own content, or a reference to it."""
        if message.id != self._next:  # another message has joined while hooks ran
            message = altered(message, {"id": self._next})
        self._next += 1
        self._session.emit(made(MessageAdded, id=message.id, role=message.role, **fields))
        return message

    async def _offered(self, tag: str, message: Message, key: str = "", **details: Any) -> Message | None:  # noqa: ANN401
        passed = await self._session.offer(tag, message, key=key, **details)
        return None if passed is SUPPRESS else passed


def call_details(completed: ToolCallCompleted) -> dict[str, Any]:
    """Return the details of a completed call for hooks."""
    return {
        "tool": completed.tool,
        "call_id": completed.call_id,
        "repaired": completed.understood is not None,
        "duration_ms": completed.duration_ms,
    }
