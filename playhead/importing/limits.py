"""How much one import reads; anything larger is refused before it is parsed.

Two bytes of protobuf can become a message of 176 bytes in memory, so memory is estimated from the bytes of a document.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from playhead.errors import NotImportableError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

MAX_MEMORY: Final = 1024**3
"""Estimated bytes of memory of all documents of one import."""
MAX_FILE: Final = 256 * 1024**2
"""Bytes of one file, decompressed."""
MAX_INNER_VALUES: Final = 1_000_000
"""Objects, lists and commas of JSON inside a text; a text with more is not parsed."""
MAX_DEPTH: Final = 32
"""Parts of an attribute's name."""
MAX_NESTING: Final = 16
"""Depth of nested agents and tools."""
SMALLER: Final = "split the export by traces, or by time, and import the parts one after the other"
_OBJECT: Final = 150
"""Estimated bytes of memory of a JSON object."""
_VALUE: Final = 60
"""Estimated bytes of memory of a JSON list, or of a value in one."""
_MESSAGE: Final = 300
"""Estimated bytes of memory of a protobuf message and what is read from it."""
_MAX_MESSAGE_DEPTH: Final = 100
"""Protobuf's own limit for nested messages."""
_VARINT: Final = 10
"""Bytes of the longest varint in protobuf."""
_WIRE_SIZES: Final = {0: 0, 1: 8, 2: 0, 5: 4}
"""Bytes of a field's value by wire type; varints (0) and length-prefixed values (2) state their size."""
_LENGTH_PREFIXED: Final = 2


class Quota:
    """Counts the memory of an import. Exceeding the limit imports nothing, because half a trace would look like a whole one."""

    def __init__(self, memory: int = MAX_MEMORY) -> None:
        self._max_memory = memory
        self.memory = 0
        """Estimated bytes of memory so far."""

    def add_json(self, content: bytes) -> None:
        """Count a JSON document, with the JSON inside its texts; raises `NotImportableError` over the limit."""
        self._add(_OBJECT * content.count(b"{") + _VALUE * (content.count(b"[") + content.count(b",")) + len(content))

    def add_message(self, content: bytes, descriptor: Descriptor) -> None:
        """Count a protobuf message.

        Raises:
            NotImportableError: it exceeds the limit, is not a message, or is nested too deep.
        """
        self._add(len(content))
        most = (self._max_memory - self.memory) // _MESSAGE
        try:
            self._add(_MESSAGE * _count_messages(content, (0, len(content)), descriptor, most))
        except ValueError as error:
            raise NotImportableError(f"not an OTLP message: {error}") from None

    def _add(self, memory: int) -> None:
        self.memory += memory
        if self.memory > self._max_memory:
            raise NotImportableError(f"it would take more than {self._max_memory:,} bytes of memory: {SMALLER}")


def _count_messages(content: bytes, part: tuple[int, int], descriptor: Descriptor, most: int, depth: int = 0) -> int:
    """Return how many messages a part of a message contains; counting stops after `most`.

    Raises:
        ValueError: it is not a message, or is nested too deep.
    """
    if depth > _MAX_MESSAGE_DEPTH:
        raise ValueError("messages are nested too deep")
    (at, end), found, fields = part, 0, _message_fields(descriptor)
    while at < end and found <= most:
        tag, at = _varint(content, at)
        wire_type, inner, size = tag & 7, fields.get(tag >> 3), _WIRE_SIZES.get(tag & 7)
        if size is None:
            raise ValueError("a field has an unknown wire type")
        if wire_type in (0, _LENGTH_PREFIXED):
            number, at = _varint(content, at)
            size = number if wire_type else 0
        if at + size > end:
            raise ValueError("it is cut off")
        if wire_type == _LENGTH_PREFIXED and inner is not None:
            found += 1 + (_count_messages(content, (at, at + size), inner, most, depth + 1) if size else 0)
        at += size
    return found


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """Return the varint at a place, and the place after it."""
    number = 0
    for place, byte in enumerate(content[at : at + _VARINT]):
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:  # noqa: PLR2004 - the last byte of a varint
            return number, at + place + 1
    raise ValueError("a number in it does not end")


@cache
def _message_fields(descriptor: Descriptor) -> dict[int, Descriptor]:
    """Return the fields of a message that contain messages, by number."""
    return {field.number: field.message_type for field in descriptor.fields if field.message_type is not None}
