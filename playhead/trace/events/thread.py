"""The thread of an agent, where each message and each tool is written once and referred to by id."""

from playhead.trace.types import Content, EventBase, Id, Integer, Role, ToolCall, ToolSpec, Value


class MessageRef(Value):
    """Where the content of a message already stands."""

    request: Integer | None = None
    """The request whose `llm-responded` holds the text and the tool calls."""
    call: str | None = None
    """The call whose `tool-call-completed` holds the result."""


class MessageAdded(EventBase, kind="message-added"):
    """A message joins the thread of its owner."""

    id: Integer
    """Dense per owner, in order of addition."""
    role: Role
    """Who speaks."""
    content: Content | None = None
    """The content, unless `ref` says where it stands."""
    ref: MessageRef | None = None
    """Where the content stands, instead of `content`."""
    tool_calls: tuple[ToolCall, ...] = ()
    """The calls an assistant message asks for, unless `ref` holds them."""
    tool_call_id: Id | None = None
    """In a tool message, the call that this answers."""
    name: Id | None = None
    """In a tool message, the tool's name."""
    replaces: tuple[Integer, ...] = ()
    """Ids of the messages that this one stands for from now on (rewritten or compacted)."""
    transient: bool = False
    """Sent in some request and not kept in the thread."""
    stored: str | None = None
    """In place of a result that is too long: the key under which the agent may `recall` all of it."""


class ToolsDefined(EventBase, kind="tools-defined"):
    """Tool schemas join the owner's list; requests name them by id."""

    first_id: Integer
    """Id of the first of `tools`; the others follow densely."""
    tools: tuple[ToolSpec, ...]
    """The tools."""
    offered: bool = False
    """Whether this is how tools were described for a request, by a hook; what runs are the agent's own."""
