"""How much an import takes in: what is beyond is refused, or counted and said.

Two bytes can be a message of 176 in memory, so what a document takes is estimated before anything is parsed.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from playhead.errors import NotImportableError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

MAX_SPANS: Final = 200_000
"""Spans of one import, which are all in memory at once."""
MAX_MEMORY: Final = 1024**3
"""Bytes of memory that the documents of one import take once they are read, about; and so more than their own bytes."""
MAX_DOCUMENT: Final = 256 * 1024**2
"""Bytes of one JSON document or message, which is parsed as a whole."""
MAX_INNER_VALUES: Final = 1_000_000
"""Objects, lists and commas of JSON that stands in a text; one with more is a text."""
MAX_ATTRIBUTES: Final = 20_000
"""Attributes of a span, other than those inside a JSON text."""
MAX_DEPTH: Final = 32
"""Levels of an attribute's value, and parts of its name."""
MAX_IDLE: Final = 10_000
"""Lines or messages in a row without a span, behind which nothing is read: a look at junk must not take minutes."""
MAX_NESTING: Final = 16
"""Agents and tools inside one another."""
SMALLER: Final = "split the export by traces, or by time, and import its parts one after the other"
_OBJECT: Final = 150
"""Bytes of memory of an object of JSON, about."""
_VALUE: Final = 60
"""The same of a list, or of a value in one."""
_MESSAGE: Final = 300
"""The same of a message of protobuf, and of what is read from it."""
_MAX_MESSAGES_DEEP: Final = 100
"""Messages inside one another; protobuf's own limit."""
_LONGEST_NUMBER: Final = 10
"""Bytes of a number of 64 bits in protobuf."""


class Room:
    """Takes in what is read until there is no room. Half a trace would look like a whole one, so nothing is imported then."""

    def __init__(self, spans: int = MAX_SPANS, memory: int = MAX_MEMORY) -> None:
        self._most, self._most_memory = spans, memory
        self._spans = self._idle = 0
        self.memory = 0
        """Bytes of memory that what was taken in needs, about."""

    def take_json(self, content: bytes) -> None:
        """Account for a document of JSON, with the JSON in its texts; raises `NotImportableError` when there is no room."""
        self._take(_OBJECT * content.count(b"{") + _VALUE * (content.count(b"[") + content.count(b",")) + len(content))

    def take_message(self, content: bytes, descriptor: Descriptor) -> None:
        """Account for a message of protobuf.

        Raises:
            NotImportableError: there is no room for it; it is no message, or one inside others too deep.
        """
        self._take(len(content))
        most = (self._most_memory - self.memory) // _MESSAGE
        try:
            self._take(_MESSAGE * _messages(content, (0, len(content)), descriptor, most))
        except ValueError as error:
            raise NotImportableError(f"it is no OTLP message: {error}") from None

    def take_line(self) -> bool:
        """Account for a line or a message; return whether those without a span are too many by now."""
        self._idle += 1
        return self._idle > MAX_IDLE

    def take_span(self) -> None:
        """Account for one more span; raises `NotImportableError` when there is no room."""
        self._idle = 0
        self._spans += 1
        if self._spans > self._most:
            raise NotImportableError(f"more than {self._most:,} spans, which is what one import takes: {SMALLER}")

    def _take(self, memory: int) -> None:
        self.memory += memory
        if self.memory > self._most_memory:
            raise NotImportableError(
                f"what it holds would take more than {self._most_memory:,} bytes of memory, which is what one import may: "
                f"{SMALLER}"
            )


def _messages(content: bytes, span: tuple[int, int], descriptor: Descriptor, most: int, depth: int = 0) -> int:
    """Return how many messages are in a part of one; counting ends after `most`.

    Raises:
        ValueError: it is no message, or one inside others too deep.
    """
    if depth > _MAX_MESSAGES_DEEP:
        raise ValueError("messages are nested too deep")
    (at, end), found, fields = span, 0, _fields(descriptor)
    while at < end and found <= most:
        tag, at = _number_at(content, at)
        kind, inner, size = tag & 7, fields.get(tag >> 3), {0: 0, 1: 8, 2: 0, 5: 4}.get(tag & 7)
        if size is None:
            raise ValueError("it has a field of no known kind")
        if kind in (0, 2):
            number, at = _number_at(content, at)
            size = number if kind else 0
        if at + size > end:
            raise ValueError("it is cut off")
        if kind == 2 and inner is not None:  # noqa: PLR2004 - what has a length
            found += 1 + (_messages(content, (at, at + size), inner, most, depth + 1) if size else 0)
        at += size
    return found


def _number_at(content: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins there, seven bits a byte and the lowest first, and the place of what follows it."""
    number = 0
    for place, byte in enumerate(content[at : at + _LONGEST_NUMBER]):
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that another byte follows
            return number, at + place + 1
    raise ValueError("a number in it does not end")


@cache
def _fields(descriptor: Descriptor) -> dict[int, Descriptor]:
    """Return the fields of a message that are messages, by number."""
    return {field.number: field.message_type for field in descriptor.fields if field.message_type is not None}
