"""What an agent keeps beside its thread: long results, whole, and its own notes. Neither is ever put together or dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.context.preview import parsed, preview_of
from playhead.trace.values import untagged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.trace.types import Compression
    from playhead.trace.values import JsonValue

MAX_NOTES: Final = 200
"""Notes of one agent."""
MAX_NOTE_CHARS: Final = 10_000
"""Characters of one of them."""
MAX_SEARCHED: Final = 1_000_000
"""Characters that one search looks at, the newest first."""
AROUND: Final = 80
"""Characters that a search shows on each side of what it found."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A long result."""

    tool: str
    """What returned it."""
    value: JsonValue
    """All of it, as JSON that a model reads."""
    text: str
    """The same as text, as it would have joined the thread."""


class Shelf:
    """Stored results by key, and notes."""

    def __init__(self, compression: Compression | None) -> None:
        self.compression = compression
        self.stored: dict[str, Stored] = {}
        self.notes: dict[str, str] = {}

    def store(self, tool: str, value: JsonValue, text: str) -> tuple[str, str]:
        """Keep a result; returns its key, and what stands for it in the thread.

        `value` is a result as `to_json` returned it, `text` the same as a model would have read it.
        """
        key = f"_tool_result_{len(self.stored) + 1}"
        self.stored[key] = Stored(tool, untagged(value), text)
        return key, self.preview(key)

    def preview(self, key: str) -> str:
        """Return what stands for a stored result."""
        assert self.compression is not None  # noqa: S101 - nothing is stored without
        kept, settings = self.stored[key], self.compression
        return preview_of(kept.value, key=key, tool=kept.tool, budget=settings.budget, items=settings.preview_items)

    def note(self, key: str, content: str) -> str | None:
        """Keep a note, in place of one with the same key; returns why not, when it cannot be kept."""
        if not key or key in self.stored:
            return "a note needs a key of its own"
        if len(content) > MAX_NOTE_CHARS:
            return f"a note has at most {MAX_NOTE_CHARS} characters; this has {len(content)}"
        if key not in self.notes and len(self.notes) >= MAX_NOTES:
            return f"there are {MAX_NOTES} notes already; write over one of them"
        self.notes[key] = content
        return None

    def text_of(self, key: str) -> str | None:
        """Return a note, or a stored result as text; None when there is none of this key."""
        if key in self.notes:
            return self.notes[key]
        return self.stored[key].text if key in self.stored else None

    def value_of(self, key: str) -> Any:  # noqa: ANN401 - JSON
        """Return a note, or a stored result as JSON; a text that is JSON counts as what it says, as in the preview."""
        return parsed(self.stored[key].value) if key in self.stored else self.notes[key]

    def listed(self) -> list[dict[str, JsonValue]]:
        """Return what is here, the notes first."""
        notes: list[dict[str, JsonValue]] = [
            {"key": key, "characters": len(content)} for key, content in self.notes.items()
        ]
        return notes + [
            {"key": key, "tool": kept.tool, "characters": len(kept.text)} for key, kept in self.stored.items()
        ]

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield keys and texts, the newest first, the notes before the results."""
        for key in reversed(self.notes):
            yield key, self.notes[key]
        for key in reversed(self.stored):
            yield key, self.stored[key].text


def search(texts: Iterator[tuple[str, str]], query: str, most: int) -> list[dict[str, JsonValue]]:
    """Return where half of the words of a query stand, or more, in any case: the key, the place, and what is around it.

    At most one place of each text, and no more than `MAX_SEARCHED` characters are looked at.
    """
    words = [word.casefold() for word in query.split()][:10]
    found: list[dict[str, JsonValue]] = []
    room = MAX_SEARCHED
    for key, text in texts:
        looked_at = text[:room]
        room -= len(looked_at)
        folded = looked_at.lower()
        places = [place for place in (folded.find(word) for word in words) if place >= 0]
        if places and 2 * len(places) >= len(words):
            start = max(min(places) - AROUND, 0)
            found.append(
                {
                    "key": key,
                    "offset": min(places),
                    "words": len(places),
                    "text": " ".join(looked_at[start : min(places) + AROUND].split()),
                }
            )
        if room <= 0:
            break
    return sorted(found, key=lambda each: -each["words"])[:most]
