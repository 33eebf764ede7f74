"""Talking to a model: requests and answers."""

from typing import Annotated

from pydantic import Field

from playhead.trace.types import (
    VOLATILE,
    Dollars,
    EventBase,
    Id,
    Integer,
    Range,
    RequestEvent,
    SpanIds,
    ToolCall,
    Usage,
    Value,
)
from playhead.trace.values import JsonValue


class ErrorInfo(Value):
    """An error as data."""

    type: Id
    """Name of the exception or of the failure."""
    message: str
    """What it said."""
    told: str | None = None
    """What a model was told of it, where that is not this message: an imported run's own words."""


class LlmRequested(RequestEvent, kind="llm-requested"):
    """A request is about to be handed to the adapter; written before it is sent."""

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


class LlmResponded(RequestEvent, kind="llm-responded"):
    """The adapter returned an answer."""

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


class LlmFailed(RequestEvent, kind="llm-failed"):
    """An attempt ended without an answer."""

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
    """Why."""
    attempt: Integer
    """Failures in a row that led here."""
