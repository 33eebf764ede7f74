"""Talking to a model: requests and answers."""

from typing import Annotated

from pydantic import Field

from playhead.trace.base import VOLATILE, EventBase, Id, Integer, Value
from playhead.trace.types import Dollars, Range, ToolCall, Usage, Wire
from playhead.trace.values import JsonValue


class ErrorInfo(Value):
    """An error as data."""

    type: Id
    """Name of the exception or of the failure."""
    message: str
    """The error's message."""
    told: str | None = None
    """The text that the model received instead of `message`, in an imported run."""


class RequestEvent(EventBase):
    """A fact about one attempt at a request to the model."""

    request: Integer
    """The request: dense per owner, 0, 1, 2 …; a retried request keeps its number."""
    attempt: Integer = 0
    """The attempt: 0 for the first one, then 1, 2 …"""
    wire: Wire | None = None
    """In a recorded program: what its client sent, or received."""


class LlmRequested(RequestEvent, kind="llm-requested"):
    """A request is about to be handed to the adapter; written before it is sent."""

    model: Id
    """`provider/model` as asked for."""
    messages: tuple[Range, ...]
    """The messages, by inclusive id ranges in send order."""
    tools: tuple[Range, ...] = ()
    """The tools offered, by inclusive id ranges in send order."""
    tools_in_text: tuple[Range, ...] = ()
    """The tools that the system message describes instead, for an agent whose `tool_format` is `text`."""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    """Sampling and other parameters, as handed to the adapter."""
    purpose: Id = "think"
    """The purpose of the call: `think`, or one that the strategy declares, such as `critique`."""
    step: str | None = None
    """The plan step that makes the request."""


class LlmResponded(RequestEvent, kind="llm-responded"):
    """The adapter returned an answer."""

    text: str = ""
    """The text of the answer."""
    thinking: str | None = None
    """Its reasoning, when the provider shows it."""
    tool_calls: tuple[ToolCall, ...] = ()
    """The calls it asks for, in its order."""
    finish_reason: Id | None = None
    """The finish reason, in the provider's word."""
    usage: Usage = Field(default_factory=Usage)
    """Tokens as the provider counts them."""
    cost_usd: Dollars = None
    """US dollars; None when the price is not known."""
    latency_ms: Annotated[float, VOLATILE] = 0.0
    """Milliseconds from the request to the whole answer."""
    first_token_ms: Annotated[float | None, VOLATILE] = None
    """Milliseconds from the request to the first text of a streamed answer; absent when nobody listened to a stream."""
    model: Id | None = None
    """The model that answered, in the provider's word."""


class LlmFailed(RequestEvent, kind="llm-failed"):
    """An attempt ended without an answer."""

    error: ErrorInfo
    """The error."""
    retryable: bool = False
    """Whether the same request may succeed later."""
    cancelled: bool | None = None
    """True when the request was cancelled; absent when the adapter failed."""
    usage: Usage | None = None
    """Tokens that the attempt spent, as reported by the adapter; absent when not known, so that sums are lower bounds."""
    cost_usd: Dollars = None
    """US dollars for `usage`; None when they are not known."""
    latency_ms: Annotated[float, VOLATILE] = 0.0
    """Milliseconds from the request to the failure."""
    retry_after_s: float | None = None
    """Seconds to wait before a retry, as the provider asks; absent when the provider did not say."""
    stack: Annotated[str | None, VOLATILE] = None
    """The stack trace of the adapter's exception, at most 8,000 characters."""


class LlmRetried(RequestEvent, kind="llm-retried"):
    """The same request will be sent again, as this attempt."""

    delay_s: float
    """Seconds waited before it."""


class ProviderFallback(EventBase, kind="provider-fallback"):
    """Another model takes over."""

    from_model: str
    """The model given up."""
    to_model: str
    """The model used from now on."""
    reason: str
    """The reason."""
    attempt: Integer
    """Failures in a row that led here."""
