"""The tracing of the application that a run began in."""

from __future__ import annotations

from pydantic import Field

from playhead.trace.frozen import Value
from playhead.trace.values import JsonValue


class SpanIds(Value):
    """The span that the application's own tracer opened for something that is an event here."""

    trace_id: str
    """Its trace, 32 hexadecimal digits."""
    span_id: str
    """The span, 16 hexadecimal digits."""


class TelemetryContext(Value):
    """What the application's own tracing (OpenTelemetry, OpenInference) said when the run began."""

    trace_id: str | None = None
    """The trace that the run joined, 32 hexadecimal digits; None: the run is a trace of its own."""
    span_id: str | None = None
    """The application's span that was open, 16 hexadecimal digits."""
    remote: bool = False
    """Whether that span is in another process."""
    sampled: bool = True
    """Whether the application keeps that trace; when not, nothing is exported while the run goes on."""
    suppressed: bool = False
    """Whether tracing was suppressed: nothing is exported while the run goes on."""
    session_id: str | None = None
    """The session that the run belongs to (`using_session`)."""
    user_id: str | None = None
    """Whom it runs for (`using_user`)."""
    tags: tuple[str, ...] = ()
    """Tags of its spans (`using_tags`)."""
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    """Metadata of its spans (`using_metadata`)."""
    prompt_template: str | None = None
    """The template that its prompts were made with (`using_prompt_template`)."""
    prompt_template_version: str | None = None
    """The version of that template."""
    prompt_template_variables: dict[str, JsonValue] = Field(default_factory=dict)
    """What was put into the template, by name."""
    service: dict[str, str] = Field(default_factory=dict)
    """Who the application says that it is: `service.*`, `deployment.*` and `openinference.*` of its resource."""
    earlier_trace_id: str | None = None
    """The trace of the run that this one continues, when that run had joined one, too."""
