"""How a run ends with an answer: whole, or in the words of providers for one that is not."""

from __future__ import annotations

from typing import Final

ANSWERED: Final = frozenset({"final_answer_tool", "final_answer", "end_turn"})
"""Reason codes of endings in which the model itself said what the answer is."""
UNACCEPTED: Final = frozenset({"output_rejected", "required_tools_missing", "unsatisfied"})
"""Reason codes of endings in which it said so, and whoever had to accept the answer did not."""
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
