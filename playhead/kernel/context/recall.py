"""The tool `recall`: read on in a stored result, and keep notes that outlive the thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from playhead.errors import nearest
from playhead.kernel.context.expressions import ExpressionError, as_bounded_text, transformed
from playhead.kernel.context.shelf import search
from playhead.kernel.meta_tools import Arguments
from playhead.kernel.tools import Outcome

if TYPE_CHECKING:
    from playhead.kernel.context.shelf import Shelf
    from playhead.kernel.session import Session
    from playhead.trace.values import JsonValue

PAGE: Final = 800
"""Characters of a page, where the agent does not say how long a result may be."""
MAX_PAGE: Final = 8000
"""Characters of the longest page."""
MAX_FOUND: Final = 10
"""Places that a search returns."""
DESCRIPTION: Final = (
    "Read a stored result by its key, page by page or through a JMESPath expression, or keep notes: "
    "store (key, content), retrieve (key), list, search (query). A call of any other tool may have `_transform` beside its "
    "arguments: an expression through which you see its result."
)


class RecallArguments(Arguments):
    """What `recall` takes."""

    action: Literal["retrieve", "store", "list", "search"] = "retrieve"
    key: str = Field(default="", description="Of a stored result or a note.")
    content: str = Field(default="", description="The note to store.")
    query: str = Field(default="", description="Words to search for.")
    transform: str = Field(default="", description="A JMESPath expression, such as [?price > `10`].name or length(@).")
    offset: int = Field(default=0, ge=0, description="Character to begin with.")
    length: int = Field(default=0, ge=0, le=MAX_PAGE, description="Characters to read; 0 for a page.")


def recall(session: Session, arguments: RecallArguments) -> JsonValue | Outcome:
    """Do what the model asked for."""
    assert session.curator is not None  # noqa: S101 - agents that have this tool have one
    shelf = session.curator.shelf
    if arguments.action == "list":
        return shelf.listed()[-200:]
    if arguments.action == "search":
        return search(shelf.texts(), arguments.query, MAX_FOUND) or f"nothing holds {arguments.query!r}"
    if arguments.action == "store":
        problem = shelf.note(arguments.key, arguments.content)
        return "stored" if problem is None else Outcome.failure("NoteRefused", problem)
    return _retrieved(shelf, arguments)


def _retrieved(shelf: Shelf, arguments: RecallArguments) -> JsonValue | Outcome:
    key = arguments.key
    text = shelf.text_of(key)
    if text is None:
        return Outcome.failure(
            "UnknownKey", f"nothing is stored as {key!r}.{nearest(key, [*shelf.notes, *shelf.stored])}"
        )
    if arguments.transform:
        try:
            text = as_bounded_text(transformed(arguments.transform, shelf.value_of(key), len(text)))
        except ExpressionError as error:
            shown = f"\n{shelf.preview(key)}" if key in shelf.stored else ""
            return Outcome.failure("TransformFailed", f"{error}{shown}")
    return page(key, text, arguments.offset, arguments.length or _page_of(shelf))


def page(key: str, text: str, offset: int, length: int) -> dict[str, JsonValue]:
    """Return a part of a text: with where it begins and what follows, unless it is all."""
    part = text[offset : offset + length]
    if offset == 0 and len(part) == len(text):
        return {"key": key, "content": part}
    end = offset + len(part)
    found: dict[str, JsonValue] = {"key": key, "content": part, "offset": offset, "total": len(text)}
    return {**found, "next_offset": end} if end < len(text) else found


def _page_of(shelf: Shelf) -> int:
    return min(PAGE if shelf.compression is None else shelf.compression.budget, MAX_PAGE)
