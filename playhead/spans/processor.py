"""An application's own span processor as the place where spans go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.spans.delivery import Delivered, Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor


class ToProcessor:
    """Hands spans to a span processor; what it does with them, it alone knows."""

    def __init__(self, processor: SpanProcessor) -> None:
        self._processor = processor

    def deliver(self, spans: Sequence[ReadableSpan], *, timeout_s: float | None = None) -> Delivered:  # noqa: ARG002
        """Hand spans over in order; one at which the processor raises counts as refused."""
        delivered = Delivered(settled=len(spans))
        for place, span in enumerate(spans):
            try:
                self._processor.on_end(span)
            except Exception as error:  # noqa: BLE001 - a processor is code of the user's
                delivered.refusals.append(Refusal(place, place, 1, type(error).__name__))
        return delivered

    def close(self) -> None:
        """Do nothing: the processor is its application's."""
