"""What a span shows of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.errors import UsageError

if TYPE_CHECKING:
    from openinference.instrumentation import TraceConfig

MAX_MESSAGES: Final = 20
"""Messages of a prompt that a span shows, unless told otherwise."""


@dataclass(frozen=True)
class SpanOptions:
    """What a span shows of a run."""

    content: bool = True
    """Whether prompts, answers, arguments, results, the words of errors, and the application's tags and metadata are shown;
    without it names, ids, times, tokens, costs and statuses are left."""
    max_messages: int | None = MAX_MESSAGES
    """Messages of a prompt that its span shows: those of the system and the newest; `metadata` says how many were cut.
    None: all, which makes the spans of a long run grow with the square of its length."""
    gen_ai: bool = False
    """Whether spans carry the attributes of OpenTelemetry's GenAI conventions as well."""
    masking: TraceConfig | None = None
    """What is masked; None: as the `OPENINFERENCE_HIDE_*` variables say when the builder is made."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            UsageError: not even one message is to be shown; `content=False` shows none.
        """
        if self.max_messages is not None and self.max_messages < 1:
            raise UsageError(f"max_messages={self.max_messages}: at least 1, or None for all; content=False shows none")
