"""How much a document is once it is parsed: two bytes can be a message of 176, so parts are counted before anything is parsed.

And what its spans are in memory, where they stay until they are recorded.
"""

from __future__ import annotations

from functools import cache
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import NotImportableError
from playhead.trace.varint import decode_varint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from google.protobuf.descriptor import Descriptor

    from playhead.importing.spans import ForeignSpan

MAX_PARTS: Final = 1_000_000
"""Objects, lists and values of a body in JSON, or messages of one in protobuf. A batch of 16 MiB has about 900,000 when
it is nothing but short attributes."""
_LEAST: Final = 2
"""Bytes of a part."""
_PARSED: Final = 60
"""Bytes of memory of a part of JSON, about."""
_FEW: Final = 1000
"""Parts of a text that are not counted a second time, without what stands in its strings."""
_SPAN: Final = 600
"""Bytes of a span without its attributes, and of what an assembly knows of it."""
_MAX_DEPTH: Final = 100
"""Messages inside one another; protobuf's own limit."""
_PIECE: Final = 1 << 20
"""Bytes or characters that are looked at in one go: what strings hold is taken out, which costs memory."""
_BACKSLASH: Final = ord("\\")
_OTHERS: Final = bytes(set(range(256)) - set(b'"{[,'))


def memory_of(spans: Iterable[ForeignSpan]) -> int:
    """Return about how many bytes of memory spans take, rather more than less."""
    weight = Weight()
    return sum(weight.of(span) for span in spans)


class Weight:
    """Weighs spans that are held together: those of a group share what their program is."""

    def __init__(self) -> None:
        self._resources: set[int] = set()

    def of(self, span: ForeignSpan) -> int:
        """Return about how many bytes of memory one more span takes."""
        values: list[Any] = [span.name, span.message, span.attributes]
        values += [each for event in span.events for each in (event.name, event.attributes)]
        if id(span.resource) not in self._resources:
            self._resources.add(id(span.resource))
            values.append(span.resource)
        return _SPAN + _sizes(values)


def parsed_weight_of(span: ForeignSpan) -> int:
    """Return about how many bytes the JSON in the texts of a span takes, once it is read."""
    texts = (text for text in span.attributes.values() if isinstance(text, str) and text[:1] in ("{", "["))
    return sum(_PARSED * parts_of(text) for text in texts)


def _sizes(values: list[Any]) -> int:
    size = 0
    while values:
        value: Any = values.pop()
        size += getsizeof(value)
        if isinstance(value, dict):
            values += [*value, *value.values()]
        elif isinstance(value, list):
            values += value
    return size


def too_many_in_json(content: bytes | str, most: int | None = None) -> bool:
    """Tell whether JSON has more parts than that, or than `MAX_PARTS`; what stands in strings is none."""
    most = MAX_PARTS if most is None else most
    return len(content) > most and _commas_and_brackets(content) > most and parts_of(content) > most


def parts_of(content: bytes | str) -> int:
    """Return how many objects, lists and values JSON has, about."""
    found = _commas_and_brackets(content)
    return sum(_lengths_outside(content)) if found > _FEW else found


def _commas_and_brackets(content: bytes | str) -> int:
    if isinstance(content, str):
        return content.count("{") + content.count("[") + content.count(",")
    return content.count(b"{") + content.count(b"[") + content.count(b",")


def _lengths_outside(content: bytes | str) -> Iterator[int]:
    """Yield how many of `{`, `[` and `,` stand outside of strings, piece by piece."""
    at, in_string = 0, False
    while at < len(content):
        end = min(at + _PIECE, len(content))
        while end < len(content) and content[end - 1] in ("\\", _BACKSLASH):  # an escape stays whole
            end += 1
        piece = content[at:end]
        plain = piece.encode("utf-8", "surrogatepass") if isinstance(piece, str) else piece
        marks = plain.replace(rb"\\", b"").replace(rb"\"", b"").translate(None, _OTHERS).split(b'"')
        yield sum(map(len, marks[int(in_string) :: 2]))
        in_string ^= len(marks) % 2 == 0
        at = end


def too_many_in_message(content: bytes, descriptor: Descriptor, most: int | None = None) -> bool:
    """Tell whether a protobuf message has more messages in it than that, or than `MAX_PARTS`.

    Raises:
        NotImportableError: it is no message, or one inside others too deep.
    """
    most = MAX_PARTS if most is None else most
    if len(content) <= _LEAST * most:
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
        if messages > most:
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
    try:
        return decode_varint(content, at)
    except ValueError as error:
        raise NotImportableError(f"it is no OTLP message: {error}") from None
