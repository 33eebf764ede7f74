"""What every account of a run is made of: frozen parts, ready for JSON, and texts that say how much of them is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict

from playhead.trace.values import as_text, scrub

if TYPE_CHECKING:
    from playhead.trace.types import Content

SHORT: Final = 300
"""Characters of a result, an error or an argument list that an account shows."""
LONG: Final = 1200
"""Characters of a goal or an answer that an account shows."""


def _scrubbed(value: object) -> object:
    return scrub(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_scrubbed)]
"""Text that every JSON writer takes: a live run may hold half characters that a file never does."""


class Part(BaseModel):
    """A part of an account."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Placed(Part):
    """Something that stands in the trace."""

    seq: int
    """The event that says it."""
    owner: Text
    """Whose it is: `root`, or a sub-agent such as `root/researcher@3.0`."""
    iteration: int | None
    """Turn of the owner's loop, from 0; null outside it."""


def short(text: str, limit: int = SHORT) -> str:
    """Return the beginning of a text, which says how much is missing."""
    text = scrub(text[: limit + 1]) + text[limit + 1 :]
    if len(text) <= limit:
        return text
    kept = text[:limit]
    words = kept.rsplit(None, 1)
    kept = words[0] if len(words) > 1 and len(words[0]) > limit // 2 else kept
    return f"{kept} … ({len(text) - len(kept):,} more characters)"


def shown(value: object, limit: int = SHORT) -> str:
    """Return the beginning of a JSON value as a model reads it."""
    return short(whole(value), limit)


def whole(value: object) -> str:
    """Return a JSON value as a model reads it; of what has no form, its type."""
    try:
        return value if isinstance(value, str) else as_text(value)
    except (TypeError, ValueError, RecursionError):  # a tag in a hostile file, an integer that Python will not print
        return type(value).__name__


def content_text(content: Content | None) -> str:
    """Return the text of a message."""
    if content is None or isinstance(content, str):
        return content or ""
    return " ".join(part.text if part.type == "text" else f"[image {part.url[:80]}]" for part in content)


def finite(number: float) -> float:
    """Return the number, or 0 for one that is none."""
    return number if abs(number) < float("inf") else 0.0


def counted(number: int, noun: str) -> str:
    """Return how many there are of something."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
