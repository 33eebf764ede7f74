"""How much a body is once it is parsed: two bytes can be a message of 176, so parts are counted before anything is parsed.

And what its spans are in memory, where they stay until they are recorded.
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

MAX_PARTS: Final = 1_000_000
"""Objects, lists and values of a body in JSON, or messages of one in protobuf. A batch of 16 MiB has about 900,000 when
it is nothing but short attributes."""
_LEAST: Final = 2
"""Bytes of a part."""
_SPAN: Final = 600
"""Bytes of a span without its attributes, and of what an assembly knows of it."""
_MAX_DEPTH: Final = 100
"""Messages inside one another; protobuf's own limit."""
_LONGEST_VARINT: Final = 10
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+', re.DOTALL)
"""A string of JSON, also one that does not end, so that nothing is looked at twice."""


def memory_of(spans: Iterable[ForeignSpan]) -> int:
    """Return about how many bytes of memory spans take, rather more than less."""
    size, values, resources = 0, [], set()
    for span in spans:
        size += _SPAN
        values += [span.name, span.message, span.attributes]
        values += [each for event in span.events for each in (event.name, event.attributes)]
        if id(span.resource) not in resources:  # the spans of a group share it
            resources.add(id(span.resource))
            values.append(span.resource)
    while values:
        value: Any = values.pop()
        size += getsizeof(value)
        if isinstance(value, dict):
            values += [*value, *value.values()]
        elif isinstance(value, list):
            values += value
    return size


def too_many_in_json(content: bytes) -> bool:
    """Tell whether JSON has more than `MAX_PARTS` parts; what stands in strings is none."""
    return _parts(content) > MAX_PARTS and _parts(_STRING.sub(b"", content)) > MAX_PARTS


def _parts(content: bytes) -> int:
    return content.count(b"{") + content.count(b"[") + content.count(b",")


def too_many_in_message(content: bytes, descriptor: Descriptor) -> bool:
    """Tell whether a protobuf message has more than `MAX_PARTS` messages in it.

    Raises:
        NotImportableError: it is no message, or one inside others too deep.
    """
    if len(content) <= _LEAST * MAX_PARTS:
        return False
    at, end, fields = 0, len(content), _fields(descriptor)
    outer: list[tuple[int, Any]] = []
    messages = 0
    while at < end or outer:
        if at == end:
            end, fields = outer.pop()
            continue
        tag, at = _varint(content, at)
        inner = fields.get(tag >> 3)
        length, start = _extent(content, at, tag & 7)
        if start + length > end:
            raise NotImportableError("it is no OTLP message: it is cut off")
        if inner is None or tag & 7 != 2:  # noqa: PLR2004 - what has a length
            at = start + length
            continue
        messages += 1
        if messages > MAX_PARTS:
            return True
        outer.append((end, fields))
        at, end, fields = start, start + length, _fields(inner)
        if len(outer) > _MAX_DEPTH:
            raise NotImportableError("it is no OTLP message: messages are nested too deep")
    return False


@cache
def _fields(descriptor: Descriptor) -> dict[int, Descriptor]:
    """Return the fields of a message that are messages, by number."""
    return {field.number: field.message_type for field in descriptor.fields if field.message_type is not None}


def _extent(content: bytes, at: int, wire_type: int) -> tuple[int, int]:
    """Return how many bytes the value of a field has, and where they begin."""
    match wire_type:
        case 0:
            return 0, _varint(content, at)[1]
        case 1:
            return 8, at
        case 2:
            return _varint(content, at)
        case 5:
            return 4, at
    raise NotImportableError("it is no OTLP message: it has a field of no known kind")


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """Return a number, and where what follows it begins."""
    number = 0
    for place, byte in enumerate(content[at : at + _LONGEST_VARINT]):
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:  # noqa: PLR2004 - the last byte has no highest bit
            return number, at + place + 1
    raise NotImportableError("it is no OTLP message: a number in it does not end")
