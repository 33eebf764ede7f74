"""Converts any Python value to strict JSON, and back.

A value that JSON cannot express becomes an object with a `$type` key. `bytes`, `set`, `int` beyond 2^53, not-a-number and
dictionaries with non-string keys are restored exactly; tuples become lists. Data classes, pydantic models, dates, paths,
UUIDs, decimals and enums become their usual plain JSON. Text with lone surrogates, cycles, values nested deeper than
`MAX_DEPTH` and all other objects cannot be restored: their tag says `"lossy": true`.
docs/trace-format.md lists the tags.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from numbers import Integral
from operator import index
from pathlib import PurePath
from typing import Any, Final

import pydantic_core

TYPE_TAG: Final = "$type"
MAX_DEPTH: Final = 100
"""Levels of nested JSON, counted from the value. Parsers that read traces give up at 128 (serde), 200 (pydantic), 255 …"""
SAFE_INTEGER: Final = 2**53
"""From here on a double, and so JSON in most languages, cannot represent every integer (RFC 7493, 2.2)."""
_LONGEST_DECIMAL_BITS: Final = 2048
"""617 digits. Python can be configured to refuse decimal integers of more than 640 digits; it always accepts hex."""

JsonValue = Any
"""None, bool, int, float, str, or a list or dict of these. (A recursive alias costs pydantic milliseconds per model.)"""


def to_json(value: object) -> JsonValue:
    """Return `value` as strict JSON, with a tag for each part that JSON cannot express; never raises."""
    if type(value) is str and value.isascii():
        return value
    return _Conversion(escaped_key=TYPE_TAG).run(value)


def repair_json(value: JsonValue) -> JsonValue:
    """Return a value that should already be JSON, tags included, as strict JSON; valid JSON is unchanged. Never raises."""
    return _Conversion(escaped_key=None).run(value)


def from_json(value: JsonValue) -> Any:  # noqa: ANN401 - the value may be of any type
    """Return the value that `to_json` was given; lossy and unknown tags stay as they are."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    tag = value.get(TYPE_TAG)
    restore = _RESTORE.get(tag) if isinstance(tag, str) else None
    if restore is None:
        return {key: from_json(item) for key, item in value.items()}
    try:
        return restore(value)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):  # a tag that somebody else wrote
        return value


def canonical_json(value: object) -> bytes:
    """Return the canonical JSON of `value` for hashing and matching: RFC 8785 after tagging, integral floats included."""
    return encoded(to_json(value))


def content_hash(value: object) -> str:
    """Return the lower-case hex SHA-256 of the canonical JSON of `value`."""
    return json_hash(to_json(value))


def json_hash(value: JsonValue) -> str:
    """Return the hash of a value that `to_json` returned: `json_hash(to_json(x)) == content_hash(x)`."""
    return hashlib.sha256(encoded(value)).hexdigest()


def encoded(value: JsonValue) -> bytes:
    """Return the canonical JSON of a value that `to_json` returned."""
    if is_plain(value):
        return pydantic_core.to_json(dict(sorted(value.items())))
    import rfc8785  # noqa: PLC0415 - not needed to read a trace

    try:
        return rfc8785.dumps(_with_tagged_floats(value))
    except (ValueError, RecursionError):  # no JSON after all
        return rfc8785.dumps(_with_tagged_floats(repair_json(value)))


def is_plain(value: object) -> bool:
    """Return whether a value is a flat dict of ASCII texts, small integers, booleans and None, as most arguments are.

    Nothing in it is tagged or scrubbed, and any compact JSON of it, with sorted keys, is its canonical one.
    """
    if type(value) is not dict or TYPE_TAG in value:
        return False
    for key, item in value.items():
        kind = type(item)
        if not (type(key) is str and key.isascii()):
            return False
        if kind is str:
            if not item.isascii():
                return False
        elif kind is int:
            if not -SAFE_INTEGER < item < SAFE_INTEGER:
                return False
        elif item is not None and kind is not bool:
            return False
    return True


def _with_tagged_floats(value: JsonValue) -> JsonValue:
    """Return the JSON value with floats tagged that RFC 8785 writes as integers: 1.0 is not 1, and -0.0 not 0.0."""
    kind = type(value)
    if kind is float:
        return {TYPE_TAG: "float", "value": repr(value)} if value.is_integer() else value
    if kind is list:
        return [_with_tagged_floats(item) for item in value]
    if kind is dict:
        return {key: _with_tagged_floats(item) for key, item in value.items()}
    return value


def as_text(value: JsonValue) -> str:
    """Return what `to_json` returned as the text that a model reads: strings bare, all else as compact JSON."""
    shown = value if type(value) is str else untagged(value)
    return shown if isinstance(shown, str) else _COMPACT.encode(shown)


def untagged(value: JsonValue) -> JsonValue:
    """Return what `to_json` returned in the form that a model reads: integers, texts and names replace their tags.

    Bytes that are not UTF-8, sets, and dictionaries with non-string keys keep their tags. Do not apply this twice: the
    program's own objects may have a `$type` key.
    """
    if isinstance(value, list):
        return [untagged(item) for item in value]
    if not isinstance(value, dict):
        return value
    shown = _shown(value) if TYPE_TAG in value else None
    return {key: untagged(item) for key, item in value.items()} if shown is None else shown


def scrub(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, by U+FFFD."""
    if text.isascii() or not _torn(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


_COMPACT: Final = json.JSONEncoder(ensure_ascii=False, separators=(", ", ": "))
_DECIMAL: Final = re.compile(r"-?[0-9]{1,640}")
"""Integers that Python can always read and print."""


def _shown(tag: dict[str, JsonValue]) -> JsonValue:
    """Return the plain JSON for a tag, or None when it has none."""
    match tag:
        case {"$type": "int", "value": str(digits)}:
            return int(digits) if _DECIMAL.fullmatch(digits) else digits
        case {"$type": "float", "value": str(text)} | {"$type": "text", "text": str(text)}:
            return text
        case {"$type": "bytes", "utf8": str(text)}:
            return text
        case {"$type": "dict", "entries": list(entries)}:
            return _shown_dict(entries)
    return None


def _shown_dict(entries: list[JsonValue]) -> JsonValue:
    try:
        shown = {untagged(key): untagged(item) for key, item in entries}
    except (TypeError, ValueError):  # no pairs, or keys that are containers
        return None
    return shown if len(shown) == len(entries) and all(isinstance(key, str) for key in shown) else None


class _Conversion:
    """One walk over one value."""

    def __init__(self, escaped_key: str | None) -> None:
        self._escaped_key = escaped_key
        self._open: set[int] = set()  # ids of the containers that the walk is inside of

    def run(self, value: object) -> JsonValue:
        try:
            return self._convert(value, 0)
        except Exception as error:  # noqa: BLE001 - no stack or no memory left: the run continues
            return _opaque(value, error)

    def _convert(self, value: Any, depth: int) -> JsonValue:  # noqa: ANN401 - any type
        # By exact type first: most values have one of these, and `isinstance` would trust an object's own `__class__`.
        kind = type(value)
        if kind is str:
            return _text(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return _int(value)
        if kind is float:
            return _float(value)
        try:
            has_parts = issubclass(kind, _CONTAINERS) or dataclasses.is_dataclass(kind) or hasattr(kind, "model_dump")
            return self._inside(value, depth) if has_parts else _leaf(value)
        except Exception as error:  # noqa: BLE001 - a foreign object may raise anything while it is read
            return _opaque(value, error)

    def _inside(self, value: Any, depth: int) -> JsonValue:  # noqa: ANN401 - what can be iterated over
        if depth >= MAX_DEPTH:
            return {TYPE_TAG: "too-deep", "depth": depth, "lossy": True}
        if id(value) in self._open:
            return {TYPE_TAG: "cycle", "lossy": True}
        self._open.add(id(value))
        try:
            return self._container(value, depth)
        finally:
            self._open.discard(id(value))

    def _container(self, value: Any, depth: int) -> JsonValue:  # noqa: ANN401 - what can be iterated over
        kind = type(value)
        if issubclass(kind, Mapping):
            return self._mapping(list(value.items()), depth)
        if issubclass(kind, AbstractSet):
            items = [self._convert(item, depth + 2) for item in value]
            return {TYPE_TAG: "set", "items": sorted(items, key=lambda item: json.dumps(item, sort_keys=True))}
        if issubclass(kind, (list, tuple, deque)):
            return [self._convert(item, depth + 1) for item in value]
        return self._convert(_fields(value), depth)

    def _mapping(self, entries: list[tuple[object, object]], depth: int) -> JsonValue:
        # The keys first, because converting the values twice would be exponential in the depth.
        names = [self._key(key) for key, _ in entries]
        if None not in names and len(set(names)) == len(names):
            return {name: self._convert(item, depth + 1) for name, (_, item) in zip(names, entries, strict=True)}
        pairs = [[self._convert(key, depth + 3), self._convert(item, depth + 3)] for key, item in entries]
        return {TYPE_TAG: "dict", "entries": pairs}

    def _key(self, key: object) -> str | None:
        """Return the key as it can stand in a JSON object, or None."""
        if not issubclass(type(key), str):
            return None
        name = str.__str__(key)
        return None if name == self._escaped_key or _torn(name) else name


_CONTAINERS: Final = (dict, list, tuple, Mapping, AbstractSet, deque, Enum)


def _fields(value: Any) -> object:  # noqa: ANN401 - an enum, a data class or a pydantic model
    if issubclass(type(value), Enum):
        return value.value
    if hasattr(type(value), "model_dump"):
        return value.model_dump(by_alias=True, warnings=False)
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _leaf(value: Any) -> JsonValue:  # noqa: ANN401, PLR0911 - a kind of value each
    kind = type(value)
    if issubclass(kind, str):
        return _text(str.__str__(value))
    if issubclass(kind, Integral):  # NumPy's integers, too
        return _int(int(index(value)))
    if issubclass(kind, float):
        return _float(float.__float__(value))
    if issubclass(kind, (bytes, bytearray, memoryview)):
        return _bytes(bytes(value))
    if issubclass(kind, Iterator):  # to read a generator, or a file, would use it up
        return _opaque(value)
    if issubclass(kind, PurePath):  # pydantic knows `Path` alone
        return _text(str(value))
    try:
        return repair_json(pydantic_core.to_jsonable_python(value, inf_nan_mode="constants"))
    except pydantic_core.PydanticSerializationError:
        return _opaque(value)


def _torn(text: str) -> bool:
    """Return whether the text holds lone surrogates."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _text(value: str) -> JsonValue:
    return {TYPE_TAG: "text", "text": scrub(value), "lossy": True} if _torn(value) else value


def _int(value: int) -> JsonValue:
    if -SAFE_INTEGER < value < SAFE_INTEGER:
        return value
    return {TYPE_TAG: "int", "value": str(value) if value.bit_length() <= _LONGEST_DECIMAL_BITS else hex(value)}


def _float(value: float) -> JsonValue:
    if math.isfinite(value):
        return value
    return {TYPE_TAG: "float", "value": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}


def _bytes(value: bytes) -> JsonValue:
    # As text in either case, so that redaction finds secrets in it as in any other text.
    try:
        return {TYPE_TAG: "bytes", "utf8": value.decode()}
    except UnicodeDecodeError:
        return {TYPE_TAG: "bytes", "latin1": value.decode("latin-1")}


def _opaque(value: object, error: Exception | None = None) -> JsonValue:
    shown = f"<{type(error).__name__} while it was read>" if error else _tried(lambda: repr(value))
    name = _tried(lambda: f"{type(value).__module__}.{type(value).__qualname__}")
    # A default `repr` says where the object lies in memory, which is another place in each process.
    return {TYPE_TAG: "object", "class": name, "repr": re.sub(r" at 0x[0-9a-fA-F]+", "", shown), "lossy": True}


def _tried(text: Callable[[], str]) -> str:
    try:
        return scrub(str.__str__(text()))
    except Exception as error:  # noqa: BLE001 - a failing repr must not end a run
        return f"<{type(error).__name__}>"


def _restore_bytes(tag: dict[str, Any]) -> bytes:
    return bytes(tag["utf8"], "utf-8") if "utf8" in tag else bytes(tag["latin1"], "latin-1")


def _restore_set(tag: dict[str, Any]) -> set[object]:
    return set(_restore_dict({"entries": [(item, None) for item in tag["items"]]}))


def _restore_dict(tag: dict[str, Any]) -> dict[object, Any]:
    restored = {_hashable(from_json(key)): from_json(item) for key, item in tag["entries"]}
    if len(restored) != len(tag["entries"]):
        raise ValueError("keys that were different are the same as JSON (an enum's member and its value)")
    return restored


def _hashable(value: object) -> object:
    if isinstance(value, list):
        return tuple(_hashable(item) for item in value)
    return frozenset(value) if isinstance(value, set) else value


_RESTORE: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "int": lambda tag: int(tag["value"], 0),
    "float": lambda tag: float(tag["value"]),
    "bytes": _restore_bytes,
    "set": _restore_set,
    "dict": _restore_dict,
}
