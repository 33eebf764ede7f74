"""The words of providers for an answer that is not whole, and how a run ends with it."""

from __future__ import annotations

from typing import Final

# fmt: off
INCOMPLETE: Final = {
    **dict.fromkeys(
        ("length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"), "output_truncated"
    ),
    **dict.fromkeys((
        "blocklist", "content_filter", "content_filtered", "guardrail_intervened", "prohibited_content", "recitation",
        "refusal", "safety", "spii",
    ), "output_filtered"),
}
# fmt: on
"""By finish reason, in small letters."""


def incomplete(finish_reason: str | None) -> str | None:
    """Return how a run ends with an answer of this finish reason; None with one that is whole."""
    return INCOMPLETE.get((finish_reason or "").lower())
