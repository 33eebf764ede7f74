"""How much an import takes in: what is beyond is refused, or counted and said.

Two bytes can be a message of 176 in memory, so the parts of a document are counted before anything is parsed.
"""

from __future__ import annotations

import re
from functools import cache
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import NotImportableError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.protobuf.descriptor import Descriptor

    from playhead.importing.spans import ForeignSpan

MAX_SPANS: Final = 200_000
"""Spans of one import, which are all in memory at once."""
MAX_FILE: Final = 4 * 1024**3
"""Bytes of a file, decompressed: of JSON lines or of messages one after the other."""
MAX_DOCUMENT: Final = 256 * 1024**2
"""Bytes of one JSON document or message, which is parsed as a whole."""
MAX_VALUES: Final = 5_000_000
"""Objects, lists and values of one JSON document or message: what parsing it costs, some 100 bytes each."""
MAX_PARTS: Final = 1_000_000
"""The same of a body that a collector receives. A batch of 16 MiB has about 900,000 when it is nothing but short attributes."""
MAX_MEMORY: Final = 1024**3
"""Bytes of memory that the spans of one import take, about, and what stands in them as JSON."""
MAX_INNER_VALUES: Final = 1_000_000
"""Objects, lists and values of JSON that stands in a text; one with more is a text."""
MAX_ATTRIBUTES: Final = 20_000
"""Attributes of a span, other than those inside a JSON text."""
MAX_DEPTH: Final = 32
"""Levels of an attribute's value, and parts of its name."""
MAX_NESTING: Final = 16
"""Agents and tools inside one another."""
MAX_NOTED: Final = 20
"""Problems that are told one by one."""
SMALLER: Final = "split the export by traces, or by time, and import its parts one after the other"
_PARSED: Final = 60
"""Bytes of memory of a part of JSON, about."""
_FEW: Final = 1000
"""Parts of a text that are not counted a second time, without what stands in its strings."""
_SPAN: Final = 600
"""Bytes of a span without its attributes."""
_MAX_DEPTH: Final = 100
"""Messages inside one another; protobuf's own limit."""
_LONGEST_NUMBER: Final = 10
"""Bytes of a number of 64 bits in protobuf."""
_STRINGS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


class Room:
    """Takes spans in until there is no room. Half a trace would look like a whole one, so nothing is imported then."""

    def __init__(self, spans: int = MAX_SPANS, memory: int = MAX_MEMORY) -> None:
        self._most, self._most_memory = spans, memory
        self._weight = Weight()
        self._spans = self._memory = 0

    def take(self, span: ForeignSpan) -> None:
        """Account for one more span, and for the JSON in its texts once it is read.

        Raises:
            NotImportableError: there is no room for it.
        """
        texts = (text for text in span.attributes.values() if isinstance(text, str) and text[:1] in ("{", "["))
        self._spans += 1
        self._memory += self._weight.of(span) + sum(_PARSED * parts_of(text) for text in texts)
        if self._spans > self._most:
            raise NotImportableError(f"more than {self._most:,} spans, which is what one import takes: {SMALLER}")
        if self._memory > self._most_memory:
            raise NotImportableError(
                f"its spans would take more than {self._most_memory:,} bytes of memory, which is what one import may: {SMALLER}"
            )


class Weight:
    """Weighs spans that are held together: those of a group share what their program is."""

    def __init__(self) -> None:
        self._resources: set[int] = set()

    def of(self, span: ForeignSpan) -> int:
        """Return about how many bytes of memory one more span takes, rather more than less."""
        values: list[Any] = [span.name, span.message, span.attributes]
        values += [each for event in span.events for each in (event.name, event.attributes)]
        if id(span.resource) not in self._resources:
            self._resources.add(id(span.resource))
            values.append(span.resource)
        size = _SPAN
        while values:
            value = values.pop()
            size += getsizeof(value)
            if isinstance(value, (dict, list)):
                values += (*value, *value.values()) if isinstance(value, dict) else value
        return size


def memory_of(spans: Iterable[ForeignSpan]) -> int:
    """Return about how many bytes of memory spans take that are held together."""
    weight = Weight()
    return sum(weight.of(span) for span in spans)


def too_many_in_json(content: bytes | str, most: int) -> bool:
    """Tell whether JSON has more parts than that."""
    return len(content) > most and parts_of(content) > most


def parts_of(content: bytes | str) -> int:
    """Return how many objects, lists and values JSON has, about; what stands in strings is none."""
    plain = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    found = _marks(plain)
    return _marks(_STRINGS.sub(b"", plain)) if found > _FEW else found


def _marks(content: bytes) -> int:
    return content.count(b"{") + content.count(b"[") + content.count(b",")


def too_many_in_message(content: bytes, descriptor: Descriptor, most: int) -> bool:
    """Tell whether a protobuf message has more messages in it than that.

    Raises:
        NotImportableError: it is no message, or one inside others too deep.
    """
    try:
        return len(content) > 2 * most and _messages(content, 0, len(content), descriptor, most, 0) > most
    except ValueError as error:
        raise NotImportableError(f"it is no OTLP message: {error}") from None


def _messages(content: bytes, at: int, end: int, descriptor: Descriptor, most: int, depth: int) -> int:  # noqa: PLR0913, PLR0917 - where it is
    """Return how many messages are in a part of one; counting ends after `most`."""
    if depth > _MAX_DEPTH:
        raise ValueError("messages are nested too deep")
    found, fields = 0, _fields(descriptor)
    while at < end and found <= most:
        tag, at = number_at(content, at)
        kind, inner = tag & 7, fields.get(tag >> 3)
        if kind in (0, 2):
            number, at = number_at(content, at)
        elif kind not in (1, 5):
            raise ValueError("it has a field of no known kind")
        size = {0: 0, 1: 8, 5: 4}.get(kind, number if kind == 2 else 0)  # noqa: PLR2004 - what has a length
        if at + size > end:
            raise ValueError("it is cut off")
        if kind == 2 and inner is not None:  # noqa: PLR2004 - the same
            found += 1 + (_messages(content, at, at + size, inner, most, depth + 1) if size else 0)
        at += size
    return found


def number_at(content: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins there, seven bits a byte and the lowest first, and the place of what follows it.

    Raises:
        ValueError: it does not end within the ten bytes that 64 bits take, or within the content.
    """
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
