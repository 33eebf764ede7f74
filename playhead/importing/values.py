"""Foreign values, taken for what they should be or for nothing: never an error, whatever they are."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json

from playhead.importing.limits import MAX_DEPTH, MAX_INNER_VALUES, too_many_in_json
from playhead.importing.spans import LAST_NS
from playhead.trace.frozen import INTEGER_LIMIT
from playhead.trace.values import scrub

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable

    Problems = Counter[str]

HALVES: Final = "documents with halves of characters (lone surrogates, broken UTF-8), which � replaces"
_HEX: Final = re.compile("[0-9a-fA-F]+")
_DIGITS: Final = re.compile(r"-?\d{1,19}")
_SECONDS, _MILLIS, _MICROS = 10**11, 10**14, 10**17
"""Below the first a number of since 1970 counts seconds, below the second milliseconds, below the third microseconds."""


class _Nothing:
    """Stands for a value that is not there, where None may be one."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Final = _Nothing()


def text_of(value: Any) -> str | None:  # noqa: ANN401 - any JSON value
    """Return the text as a file can hold it, or None when it is none or empty."""
    return scrub(value) if isinstance(value, str) and value else None


def first_text(values: Iterable[Any]) -> str | None:
    """Return the first text that is not empty."""
    return next((scrub(value) for value in values if isinstance(value, str) and value), None)


def object_of(value: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the object, or an empty one; one that was written as JSON is read."""
    parsed = parsed_json(value) if isinstance(value, str) else value
    return parsed if isinstance(parsed, dict) else {}


def list_of(value: Any) -> list[Any]:  # noqa: ANN401
    """Return the list, or an empty one; one that was written as JSON is read."""
    parsed = parsed_json(value) if isinstance(value, str) else value
    return parsed if isinstance(parsed, list) else []


def parsed_json(text: str) -> Any:  # noqa: ANN401
    """Return what a JSON text says, `NOTHING` when it is none; deep nesting and too many values count as none."""
    if too_many_in_json(text, MAX_INNER_VALUES):
        return NOTHING
    try:
        return from_json(text, allow_inf_nan=False)
    except (TypeError, ValueError):  # a TypeError for lone surrogates
        return _mended(text)


def read_json(content: bytes, problems: Problems) -> Any:  # noqa: ANN401
    """Return what a JSON document says; halves of characters in it are replaced, and it is counted.

    Raises:
        ValueError: it is none, or nested too deep.
    """
    bare = content.removeprefix(b"\xef\xbb\xbf")
    try:
        return from_json(bare)
    except ValueError:
        document = _mended(bare.decode("utf-8", "replace"))
        if document is NOTHING:
            raise
        problems[HALVES] += 1
        return document


def _mended(text: str) -> Any:  # noqa: ANN401
    """Return what JSON with halves of characters says, `NOTHING` when it is none: Python's own parser takes lone surrogates."""
    try:
        return from_json(scrub(json.dumps(json.loads(text), ensure_ascii=False)), allow_inf_nan=False)
    except (TypeError, ValueError, RecursionError):
        return NOTHING


def integer_of(value: Any) -> int | None:  # noqa: ANN401
    """Return the number as an integer that an event can hold, or None."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and math.isfinite(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if -INTEGER_LIMIT <= value < INTEGER_LIMIT else None


def count_of(value: Any) -> int:  # noqa: ANN401
    """Return the number, 0 when it is none or negative."""
    return max(0, integer_of(value) or 0)


def float_of(value: Any) -> float | None:  # noqa: ANN401
    """Return the finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def nanoseconds_of(value: Any) -> int | None:  # noqa: ANN401
    """Return a time in nanoseconds since the epoch: of a number of whatever unit by its size, or of an ISO 8601 text."""
    if isinstance(value, str) and not _DIGITS.fullmatch(value):
        return _from_iso(value)
    number = float_of(value) if isinstance(value, float) else integer_of(value)
    if number is None or number < 0:
        return None
    factor = 10**9 if number < _SECONDS else 10**6 if number < _MILLIS else 10**3 if number < _MICROS else 1
    return min(int(number * factor), LAST_NS)


def exact_nanoseconds_of(value: Any) -> int | None:  # noqa: ANN401
    """Return a time that is given in nanoseconds, as OTLP does; None for 0, which stands for none."""
    number = integer_of(value)
    return min(number, LAST_NS) if number is not None and number > 0 else None


def _from_iso(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    except OverflowError:
        return None
    return min(max(0, (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000), LAST_NS)


def id_of(value: Any, size: int) -> str | None:  # noqa: ANN401
    """Return an id of `size` bytes in hex: given so, with 0x before it, or in base64; None when it is none or all zero."""
    if not isinstance(value, str):
        return None
    bare = value.removeprefix("0x")
    if len(bare) == 2 * size and _HEX.fullmatch(bare):
        return bare.lower() if bare.strip("0") else None
    try:
        decoded = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None
    return decoded.hex() if len(decoded) == size and any(decoded) else None


def parent_of(value: Any) -> str | None:  # noqa: ANN401
    """Return the id of a span's parent, None when it has none; one that is no id stays, for it names a span that is not there."""
    found = id_of(value, 8)
    if found is not None or not isinstance(value, str) or not value.removeprefix("0x").strip("0"):
        return found
    empty = value.strip("A=") == ""  # eight bytes of 0 in base64
    return None if empty else scrub(value)


def flattened(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return nested objects as dotted names; lists stay, and what is too deep stays as it is."""
    flat: dict[str, Any] = {}
    waiting: list[tuple[str, Any, int]] = [(name, value, 1) for name, value in attributes.items()]
    while waiting:
        name, value, depth = waiting.pop()
        if isinstance(value, dict) and value and depth < MAX_DEPTH:
            waiting += [(f"{name}.{key}", each, depth + 1) for key, each in value.items()]
        elif value is not None:
            flat[name] = value
    return flat
