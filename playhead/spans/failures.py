"""Errors on spans: the status, and the exception as an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import Event
from opentelemetry.semconv.attributes.exception_attributes import EXCEPTION_MESSAGE, EXCEPTION_TYPE
from opentelemetry.trace import Status, StatusCode

from playhead.spans.texts import clean

if TYPE_CHECKING:
    from playhead.spans.masking import Masking
    from playhead.spans.tree import OpenSpan


def failed(span: OpenSpan, kind: str, message: str, now: int, masking: Masking) -> Status:
    """Note an error as an event of the span, and return the status that says it."""
    kind, message = clean(kind), masking.word(clean(message))
    attributes = {EXCEPTION_TYPE: kind, EXCEPTION_MESSAGE: message}
    span.events.append(Event("exception", attributes, timestamp=now))
    return Status(StatusCode.ERROR, f"{kind}: {message}")


def noted(span: OpenSpan, name: str, now: int, **attributes: str | float | None) -> None:
    """Note something that happened while the span was open."""
    said = {key: clean(value) if isinstance(value, str) else value for key, value in attributes.items()}
    present = {key: value for key, value in said.items() if value is not None}
    span.events.append(Event(name, present, timestamp=now))
