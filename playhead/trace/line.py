"""Writes, reads and hash-chains events: one event is one line.

    {"seq":0,"ts":1790000000000000,"kind":"thought","owner":"root","iteration":0,"data":{…},"h":"<64 hex>"}

`h` is the lower-case hex SHA-256 over the previous line's `h` (its 64 bytes, nothing for the first line) and this line's
bytes before `,"h":`. Encoder and decoder are side by side in this file so that they cannot drift apart. Change
`playhead.trace.format.FORMAT` when today's reader would misread the lines written here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from playhead.trace.base import is_made
from playhead.trace.events import EVENT_TYPES, EventBase, UnknownEvent
from playhead.trace.values import MAX_DEPTH, repair_json, scrub

if TYPE_CHECKING:
    from playhead.trace.values import JsonValue

TAIL: Final = len(b',"h":""}') + 64
"""Bytes at the end of a line, without its newline, that the hash does not cover."""

TORN: Final = b"\x18"
"""CAN, "the data before this are in error": ends the line of an event that was only partly written. No event contains
this byte, because JSON escapes it."""

BLOB: Final = b'{"$type":"blob"'
"""How a reference to a blob begins; inside a text its quotes would be escaped."""

_KIND: Final = re.compile("[a-z][a-z0-9-]{0,63}")
ENVELOPE: Final = re.compile(
    rb'\{"seq":(0|[1-9]\d{0,17}),"ts":(0|[1-9]\d{0,17}),"kind":"([a-z][a-z0-9-]{0,63})","owner":("[^"\\]*(?:\\.[^"\\]*)*")'
    rb'(?:,"iteration":(0|[1-9]\d{0,17}))?(,"erased":true)?,"data":'
)
HASH_TAIL: Final = re.compile(rb',"h":"[0-9a-f]{64}"\}')
_LONGEST_NUMBER: Final = 4_000
"""Digits; pydantic's parser refuses integers of more than 4,300."""
_BEFORE_FIELDS: Final = len('{"kind":"",')
Resolve = Callable[[dict[str, Any]], dict[str, Any]]
"""Takes the data of an event that refers to blobs, and returns them with the blobs' values."""


class Record(NamedTuple):
    """An event with its envelope: its time, its owner, and its position in the file.

    (A named tuple, because a frozen data class takes three times as long to create, and a reader creates one per line.)
    """

    seq: int
    """Position in the file: 0, 1, 2 … without gaps."""
    ts: int
    """Microseconds since the Unix epoch."""
    owner: str
    """`root`, or the call that started the sub-agent, such as `root/researcher@3.0`."""
    iteration: int | None
    """Turn of the owner's loop, from 0; None outside it."""
    event: EventBase
    """What happened."""
    h: str = ""
    """The chained hash; empty when the event was not written to a file."""

    @property
    def kind(self) -> str:
        """The event's kind."""
        return self.event.kind

    def as_json(self) -> dict[str, Any]:
        """Return the record in the form of its line."""
        line: dict[str, Any] = {"seq": self.seq, "ts": self.ts, "kind": self.kind, "owner": self.owner}
        if self.iteration is not None:
            line["iteration"] = self.iteration
        return {**line, "data": json.loads(encode_data(self.event)), "h": self.h}


class LineError(ValueError):
    """A line is not an event of this format; the message says why."""


def encode_data(event: EventBase) -> bytes:
    """Return the JSON of the event's own fields; never raises. Fields that are None are left out, except unknown ones."""
    extra = event.__pydantic_extra__
    if not extra or None not in extra.values():
        try:
            data = event.__pydantic_serializer__.to_json(event, exclude_none=True)
            if not is_made(event) and _may_be_refused(data):
                from_json(data, allow_inf_nan=False, cache_strings="none")
        except Exception:  # noqa: BLE001, S110 - a field cannot be JSON: lone surrogates, an object, 1,000 levels …
            pass
        else:  # without the kind, the first field: excluding it takes longer
            return b"{" + (data[len(event.kind) + _BEFORE_FIELDS :] or b"}")
    return to_json({name: value for name, value in _fields_of(event).items() if name != "kind"})


def _may_be_refused(data: bytes) -> bool:
    """Return whether JSON may hold NaN or a number that is too long, or nest too deep; quick, without parsing."""
    if len(data) > _LONGEST_NUMBER or data.count(b"[") + data.count(b"{") > MAX_DEPTH:
        return True
    return b"NaN" in data or b"Infinity" in data


def encode_line(  # noqa: PLR0913, PLR0917 - the fields of the envelope
    seq: int, ts: int, kind: str, owner: str, iteration: int | None, data: bytes, previous: str
) -> tuple[bytes, str]:
    """Return the line with its newline, and its hash.

    Raises:
        ValueError: `kind` is not a valid kind.
    """
    where = "" if iteration is None else f',"iteration":{iteration}'
    covered = f'{previous}{{"seq":{seq},"ts":{ts},{_kind_and_owner(kind, owner)}{where},"data":'.encode() + data
    h = hashlib.sha256(covered).hexdigest()
    return covered[len(previous) :] + f',"h":"{h}"}}\n'.encode(), h


def decode_data(kind: bytes, data: bytes, resolve: Resolve | None = None) -> EventBase:
    """Return the event of this kind.

    Raises:
        LineError: the data do not fit the kind.
    """
    try:
        if resolve is not None and b"$" in data and BLOB in data:
            return _event_of(kind.decode(), resolve(_parse_object(data)))
        return decoder_of(kind)(data)
    except ValidationError as error:
        raise LineError(f"its data do not fit {kind.decode()!r}: {_first(error)}") from None
    except LineError:
        raise
    except (ValueError, RecursionError) as error:
        raise LineError(f"its data are not JSON: {error}") from None


@lru_cache(maxsize=1024)
def decoder_of(kind: bytes) -> Callable[[bytes], EventBase]:
    """Return the function that creates an event of this kind from its data; the function raises `ValueError`."""
    name = kind.decode()
    if name not in EVENT_TYPES:
        return lambda data: _event_of(name, _parse_object(data))
    EVENT_TYPES[name].model_rebuild()  # the first access would do so too, but looks five frames up for names
    return EVENT_TYPES[name].__pydantic_validator__.validate_json


def _event_of(kind: str, fields: dict[str, Any]) -> EventBase:
    if "kind" in fields:
        raise LineError("its data hold a 'kind', which belongs into the envelope")
    return EVENT_TYPES.get(kind, UnknownEvent).model_validate({**fields, "kind": kind})


def _parse_object(data: bytes) -> dict[str, Any]:
    value = from_json(data)
    if not isinstance(value, dict):
        raise LineError("its data are not a JSON object")
    return value


def _first(error: ValidationError) -> str:
    detail = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, detail["loc"]))
    return f"{ascii(place)[1:-1]}: {detail['msg']}"  # a key may hold anything, and messages go to terminals


@lru_cache(maxsize=1024)
def _kind_and_owner(kind: str, owner: str) -> str:
    if not _KIND.fullmatch(kind):
        raise ValueError(f"{kind!r} is not a kind of event")
    return f'"kind":"{kind}","owner":{to_json(scrub(owner)).decode()}'


def _fields_of(model: BaseModel) -> dict[str, JsonValue]:
    """Return the model's fields as strict JSON, converting them one by one: slow, but correct for any values."""
    known = {name: value for name, value in model.__dict__.items() if value is not None}
    return {scrub(name): _field(value) for name, value in {**known, **(model.__pydantic_extra__ or {})}.items()}


def _field(value: Any) -> JsonValue:  # noqa: ANN401 - any field of any event
    if isinstance(value, BaseModel):
        return _fields_of(value)
    return [_field(item) for item in value] if isinstance(value, tuple) else repair_json(value)
