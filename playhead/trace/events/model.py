"""Talking to a model: the thread, where each message and tool is written once and referred to by id, requests and answers."""

from typing import Annotated, Literal

from pydantic import Field

from playhead.trace.types import (
    VOLATILE,
    Content,
    Dollars,
    EventBase,
    Id,
    Integer,
    Range,
    RequestEvent,
    Role,
    SpanIds,
    ToolCall,
    ToolSpec,
    Usage,
    Value,
)
from playhead.trace.values import JsonValue


class MessageRef(Value):
    """Where the content of a message already stands."""

    request: Integer | None = None
    """The request whose `llm-responded` holds the text and the tool calls."""
    call: str | None = None
    """The call whose `tool-call-completed` holds the result."""


class MessageAdded(EventBase):
    """A message joins the thread of its owner."""

    kind: Literal["message-added"] = "message-added"
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


class ToolsDefined(EventBase):
    """Tool schemas join the owner's list; requests name them by id."""

    kind: Literal["tools-defined"] = "tools-defined"
    first_id: Integer
    """Id of the first of `tools`; the others follow densely."""
    tools: tuple[ToolSpec, ...]
    """The tools."""
    offered: bool = False
    """Whether this is how tools were described for a request, by a hook; what runs are the agent's own."""


class ErrorInfo(Value):
    """An error as data."""

    type: Id
    """Name of the exception or of the failure."""
    message: str
    """What it said."""
    told: str | None = None
    """What a model was told of it, where that is not this message: an imported run's own words."""


class LlmRequested(RequestEvent):
    """A request is about to be handed to the adapter; written before it is sent."""

    kind: Literal["llm-requested"] = "llm-requested"
    model: Id
    """`provider/model` as asked for."""
    messages: tuple[Range, ...]
    """The messages, by inclusive id ranges in send order."""
    tools: tuple[Range, ...] = ()
    """The tools offered, by inclusive id ranges in send order."""
    tools_in_text: tuple[Range, ...] = ()
    """Those whose descriptions stand in the system message instead, for an agent whose `tool_format` is `text`."""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    """Sampling and other parameters, as handed to the adapter."""
    purpose: Id = "think"
    """What the call is for: `think`, or one of the purposes that the strategy declares, such as `critique`."""
    step: str | None = None
    """The step of a plan that it is made in."""
    span: Annotated[SpanIds | None, VOLATILE] = None
    """The span that the application's own tracer opened for it; absent: none is known."""


class LlmResponded(RequestEvent):
    """The adapter returned an answer."""

    kind: Literal["llm-responded"] = "llm-responded"
    text: str = ""
    """What the model said."""
    thinking: str | None = None
    """Its reasoning, when the provider shows it."""
    tool_calls: tuple[ToolCall, ...] = ()
    """The calls it asks for, in its order."""
    finish_reason: Id | None = None
    """Why it stopped, in the provider's word."""
    usage: Usage = Field(default_factory=Usage)
    """Tokens as the provider counts them."""
    cost_usd: Dollars = None
    """US dollars; None when the price is not known."""
    latency_ms: Annotated[float, VOLATILE] = 0.0
    """Milliseconds from the request to the whole answer."""
    model: Id | None = None
    """The model that answered, in the provider's word."""


class LlmFailed(RequestEvent):
    """An attempt ended without an answer."""

    kind: Literal["llm-failed"] = "llm-failed"
    error: ErrorInfo
    """What went wrong."""
    retryable: bool = False
    """Whether the same request may pass later."""
    cancelled: bool | None = None
    """True when nobody waited for the answer any more; absent when the adapter failed."""
    usage: Usage | None = None
    """Tokens that it spent all the same, as far as the adapter says; absent: not known, so that sums are at least that."""
    cost_usd: Dollars = None
    """US dollars for `usage`; None when they are not known."""
    latency_ms: Annotated[float, VOLATILE] = 0.0
    """Milliseconds from the request to the failure."""
    retry_after_s: float | None = None
    """Seconds after which the provider asks to be asked again; absent when it did not say."""


class LlmRetried(RequestEvent):
    """The same request will be sent again, as this attempt."""

    kind: Literal["llm-retried"] = "llm-retried"
    delay_s: float
    """Seconds waited before it."""


class ProviderFallback(EventBase):
    """Another model takes over."""

    kind: Literal["provider-fallback"] = "provider-fallback"
    from_model: str
    """The model given up."""
    to_model: str
    """The model used from now on."""
    reason: str
    """Why."""
    attempt: Integer
    """Failures in a row that led here."""
