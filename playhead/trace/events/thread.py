"""The thread of an agent: each message and each tool is written once and referred to by id."""

from playhead.trace.base import EventBase, Id, Integer, Value
from playhead.trace.types import Content, Role, ToolCall, ToolSpec


class MessageRef(Value):
    """The earlier event that contains a message's content."""

    request: Integer | None = None
    """The request whose `llm-responded` contains the text and the tool calls."""
    call: str | None = None
    """The call whose `tool-call-completed` contains the result."""


class MessageAdded(EventBase, kind="message-added"):
    """A message joins the thread of its owner."""

    id: Integer
    """Dense per owner, in order of addition."""
    role: Role
    """Who speaks."""
    content: Content | None = None
    """The content, unless `ref` refers to it."""
    ref: MessageRef | None = None
    """The event that contains the content, instead of `content`."""
    tool_calls: tuple[ToolCall, ...] = ()
    """The calls an assistant message asks for, unless `ref` refers to them."""
    tool_call_id: Id | None = None
    """In a tool message, the call that this answers."""
    name: Id | None = None
    """In a tool message, the tool's name."""
    replaces: tuple[Integer, ...] = ()
    """Ids of the messages that this one replaces (rewritten or compacted)."""
    transient: bool = False
    """Whether the message is sent in one request and not kept in the thread."""
    stored: str | None = None
    """For a result that is too long: the key that the agent passes to `recall` to read all of it."""


class ToolsDefined(EventBase, kind="tools-defined"):
    """Tool schemas join the owner's list; requests name them by id."""

    first_id: Integer
    """Id of the first of `tools`; the others follow densely."""
    tools: tuple[ToolSpec, ...]
    """The tools."""
    offered: bool = False
    """Whether a hook changed these descriptions for a request; the agent's own tools run all the same."""
