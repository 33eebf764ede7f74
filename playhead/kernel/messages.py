"""The record of an agent's thread: each message and each tool schema is written once, and requests refer to them.

What joins the thread passes the hooks first. What a hook changed is written out; what it left alone is referred to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.hooks import SUPPRESS
from playhead.kernel.state import Thread, with_ids
from playhead.trace.events import MessageAdded, MessageRef, NudgeIssued, ToolsDefined
from playhead.trace.made import made
from playhead.trace.types import Message, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.kernel.session import Session
    from playhead.kernel.state import PlannedCall
    from playhead.trace.events import LlmResponded, ToolCallCompleted
    from playhead.trace.types import Content, Range, Request, Role, ToolSpec

REMOVED: Final = "(removed)"
"""What a model is told in place of a result that a hook removed: providers want an answer to every call."""


class ThreadRecord:
    """Adds messages and tool schemas to the record, with dense ids."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._next = 0
        self._tools: dict[str, int] = {}
        """Ids of the tools as they are, by name."""
        self._other_tools: dict[str, int] = {}
        """Ids of tools as hooks describe them, by their JSON."""
        self.changed_results: dict[str, str] = {}
        """What hooks made of results that the model is told, by their calls."""

    def add(self, role: Role, content: Content, **fields: Any) -> Message:  # noqa: ANN401 - of MessageAdded
        """Add a message with its own content, and return it."""
        number = self._next
        self._next += 1
        added = MessageAdded(id=number, role=role, content=content, **fields)
        self._session.emit(added)
        own = {name: getattr(added, name) for name in ("tool_calls", "tool_call_id", "name")}
        return Message(id=number, role=role, content=content, **own)

    async def add_user(self, content: Content, *, replaces: tuple[int, ...] = ()) -> Message | None:
        """Add a message of the user's or of the kernel's; None when a hook removed it.

        `replaces` names the messages that it stands for from now on.
        """
        passed = await self._offered("message.user", Message(id=self._next, role="user", content=content))
        fields: dict[str, Any] = {"replaces": replaces} if replaces else {}
        return None if passed is None else self.add("user", passed.content, **fields)

    async def add_assistant(self, content: str) -> Message | None:
        """Add what the model is to see as its own words, other than an answer of its as it came; None when a hook removed it."""
        passed = await self._offered("message.assistant", Message(id=self._next, role="assistant", content=content))
        return None if passed is None else self.add("assistant", passed.content)

    async def add_reply(self, response: LlmResponded) -> Message | None:
        """Add the model's answer, whose content stands in the response already; None when a hook removed it."""
        added = await self._added_reply(response)
        if added is not None and self._session.curator is not None:
            self._session.curator.note_reply(response)
        return added

    async def _added_reply(self, response: LlmResponded) -> Message | None:
        message = made(Message, id=self._next, role="assistant", content=response.text, tool_calls=response.tool_calls)
        ref = made(MessageRef, request=response.request)
        if self._session.gate.hooks is None:
            return self._refer(message, ref)
        passed = await self._offered("message.assistant", message)
        if passed is None and not message.tool_calls:
            return None
        passed = passed or message.model_copy(update={"content": ""})  # results refer to its calls
        if passed is message and response.request not in self._session.gate.rewritten:
            return self._refer(passed, ref)
        return self.add("assistant", passed.content, tool_calls=passed.tool_calls)

    async def add_result(
        self, planned: PlannedCall, completed: ToolCallCompleted, told: str | None = None
    ) -> Message | None:
        """Add a result, whose content stands in the completed call already; None when a hook removed it.

        A call that was asked for natively has to have an answer in the thread, so that one is not removed but emptied.
        `told` takes the place of the result's own words.
        """
        role: Role = "user" if planned.source == "text" else "tool"
        fields: dict[str, Any] = {"name": completed.tool}
        if role == "tool":
            fields["tool_call_id"] = completed.call_id
        message = made(Message, id=self._next, role=role, content=told or completed.message_text(role), **fields)
        passed: Message | None = message
        if self._session.gate.hooks is not None:
            details = call_details(completed)
            passed = await self._offered("message.tool-result", message, key=completed.call_id, **details)
        if passed is None and role == "user":
            return None
        passed = passed or message.model_copy(update={"content": REMOVED})
        whole = passed is message and told is None
        if passed is not message:
            self.changed_results[completed.call_id] = text_of(passed.content)
        added = self._added_result(completed, passed, fields, whole=whole)
        if self._session.curator is not None:
            self._session.curator.note_result(added, planned, completed)
        return added

    def _added_result(
        self, completed: ToolCallCompleted, passed: Message, fields: dict[str, Any], *, whole: bool
    ) -> Message:
        """Add the message of a result as hooks let it pass: in short, by reference, or with its content."""
        curator = self._session.curator
        shown = None if curator is None else curator.shown(completed, passed)
        if shown is not None:
            stored = {} if shown.key is None else {"stored": shown.key}
            return self.add(passed.role, shown.content, **stored, **fields)
        if whole and completed.call_id not in self._session.gate.rewritten:
            return self._refer(passed, made(MessageRef, call=completed.call_id))
        return self.add(passed.role, passed.content, **fields)

    async def nudge(self, thread: Thread, nudge: str, text: str, *, severity: str = "info") -> Thread:
        """Put a word of the kernel into the thread, and say so; the same thread comes back when a hook removed it."""
        passed = await self._session.offer(f"nudge.{nudge}", text, trigger=nudge, severity=severity)
        message = None if passed is SUPPRESS else await self.add_user(passed)
        if message is None:
            return thread
        self._session.emit(NudgeIssued(nudge=nudge, text=str(passed), severity=severity))  # type: ignore[arg-type]
        if self._session.curator is not None:
            self._session.curator.note_nudge(message)
        return thread.add(message)

    def sent(self, thread: Thread, request: Request) -> Thread:
        """Return the messages that a request sends; those that hooks put there or changed are recorded now."""
        if request.messages is thread.messages or request.messages == thread.messages:
            return thread
        known = {message.id: message for message in thread.messages}
        sent = {id(message) for message in request.messages}
        gone = {number for number, message in known.items() if id(message) not in sent}
        return Thread().add(*(self._sent_once(message, known, gone) for message in request.messages))

    def define_tools(self, specs: tuple[ToolSpec, ...]) -> None:
        """Write the agent's tool schemas."""
        self._tools = {spec.name: number for number, spec in enumerate(specs)}
        if self._tools:
            self._session.emit(ToolsDefined(first_id=0, tools=specs))

    def tool_ranges(self, specs: Iterable[ToolSpec]) -> tuple[Range, ...]:
        """Return the ids of these tools as inclusive ranges; what a hook made of a tool is recorded now."""
        return with_ids((), map(self._tool_id, specs))

    def _tool_id(self, spec: ToolSpec) -> int:
        own = self._session.toolset.get(spec.name)
        if own is not None and spec.name in self._tools and (own.spec is spec or own.spec == spec):
            return self._tools[spec.name]
        as_json = spec.model_dump_json()
        if as_json not in self._other_tools:
            number = self._other_tools[as_json] = len(self._tools) + len(self._other_tools)
            self._session.emit(ToolsDefined(first_id=number, tools=(spec,), offered=True))
        return self._other_tools[as_json]

    def _sent_once(self, message: Message, known: dict[int, Message], gone: set[int]) -> Message:
        own = known.get(message.id)
        if own is not None and (own is message or own == message):
            return own
        fields = message.model_dump(include={"tool_call_id", "name"}, exclude_none=True)
        replaces = (message.id,) if message.id in gone else ()
        return self.add(
            message.role, message.content, tool_calls=message.tool_calls, transient=True, replaces=replaces, **fields
        )

    def _refer(self, message: Message, ref: MessageRef) -> Message:
        if message.id != self._next:  # another message has joined while hooks were asked
            message = message.model_copy(update={"id": self._next})
        self._next += 1
        own = {name: getattr(message, name) for name in ("tool_call_id", "name")}
        fields = {
            name: value for name, value in own.items() if value is not None
        }  # a field that is not set is not written
        self._session.emit(made(MessageAdded, id=message.id, role=message.role, ref=ref, **fields))
        return message

    async def _offered(self, tag: str, message: Message, key: str = "", **details: Any) -> Message | None:  # noqa: ANN401
        passed = await self._session.offer(tag, message, key=key, **details)
        return None if passed is SUPPRESS else passed


def call_details(completed: ToolCallCompleted) -> dict[str, Any]:
    """Return what hooks are told about a call that is over."""
    return {
        "tool": completed.tool,
        "call_id": completed.call_id,
        "repaired": completed.understood is not None,
        "duration_ms": completed.duration_ms,
    }
