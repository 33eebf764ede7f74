"""Readers of formats, a file each: what they hold becomes `ForeignSpan`s, and what of it could not be read is counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedReader

    from playhead.importing.spans import ForeignSpan

Problems = Counter[str]
"""What was left out of a file, by why."""
NO_START = "start times that are not there or cannot be read, for which the end stands"

MORE_PAGES = "pages that come after this one, as it says"
"""Counted for a document that an API answered with, and that is not the last one."""
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """A format whose documents are JSON."""

    name: str
    fits: Callable[[Any], bool]
    """Tells from one document whether it is of this format."""
    spans: Callable[[Any, Problems], Iterator[ForeignSpan]]
    """Yields the spans of one document, and counts what is none."""


def listed(document: Any, *names: str) -> list[Any]:  # noqa: ANN401 - any JSON value
    """Return the rows of a document: of a list, of an object with a list under one of these names, or the object itself."""
    if isinstance(document, list):
        return document
    if isinstance(document, dict):
        for name in names:
            if isinstance(document.get(name), list):
                return document[name]  # type: ignore[no-any-return]
        return [document]
    return []


def first_row(document: Any, *names: str) -> dict[str, Any]:  # noqa: ANN401
    """Return the first row that is an object, or an empty one."""
    return next((row for row in listed(document, *names)[:100] if isinstance(row, dict)), {})


def read_up_to(file: BufferedReader, most: int) -> bytes:
    """Return what a file still holds, at most so many bytes; no more memory is taken than comes."""
    pieces = []
    while most > 0 and (piece := file.read(min(most, _PIECE))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)
