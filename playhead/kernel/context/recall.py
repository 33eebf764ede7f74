"""The tool `recall`: read on in a stored result, and keep notes that outlive the thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from playhead.errors import nearest
from playhead.kernel.context.shelf import search
from playhead.kernel.meta_tools import Arguments
from playhead.kernel.outcome import Outcome

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.trace.values import JsonValue

PAGE: Final = 800
"""Characters of a page, where the agent does not say how long a result may be."""
MAX_PAGE: Final = 8000
"""Characters of the longest page."""
MAX_LISTED: Final = 200
"""Keys that are listed, the newest."""
DESCRIPTION: Final = (
    "Read a stored result by its key, page by page, or keep notes: store (key, content), retrieve (key), list, "
    "search (query)."
)


class RecallArguments(Arguments):
    """What `recall` takes."""

    action: Literal["retrieve", "store", "list", "search"] = "retrieve"
    key: str = Field(default="", description="Of a stored result or a note.")
    content: str = Field(default="", description="The note to store.")
    query: str = Field(default="", description="Words to search for.")
    offset: int = Field(default=0, ge=0, description="Character to begin with.")
    length: int = Field(default=0, ge=0, le=MAX_PAGE, description="Characters to read; 0 for a page.")


def recall(session: Session, arguments: RecallArguments) -> JsonValue | Outcome:
    """Do what the model asked for."""
    assert session.curator is not None  # noqa: S101 - agents that have this tool have one
    shelf, key = session.curator.shelf, arguments.key
    kept = {**shelf.notes, **shelf.stored}
    if arguments.action == "list":
        listed: list[JsonValue] = [{"key": name, "characters": len(text)} for name, text in kept.items()]
        return listed[-MAX_LISTED:]
    if arguments.action == "search":
        found: list[JsonValue] = [*search(shelf.texts(), arguments.query)]
        return found or f"nothing holds {arguments.query!r}"
    if arguments.action == "store":
        taken = Outcome.failure("NoteRefused", "a note needs a key of its own")
        return "stored" if shelf.note(key, arguments.content) else taken
    if key not in kept:
        return Outcome.failure("UnknownKey", f"nothing is stored as {key!r}.{nearest(key, kept)}")
    page = PAGE if shelf.compression is None else min(shelf.compression.budget, MAX_PAGE)
    return _page(key, kept[key], arguments.offset, arguments.length or page)


def _page(key: str, text: str, offset: int, length: int) -> dict[str, JsonValue]:
    """Return a part of a text: with where it begins and what follows, unless it is all."""
    part = text[offset : offset + length]
    if len(part) == len(text):
        return {"key": key, "content": part}
    end = offset + len(part)
    found: dict[str, JsonValue] = {"key": key, "content": part, "offset": offset, "total": len(text)}
    return {**found, "next_offset": end} if end < len(text) else found
