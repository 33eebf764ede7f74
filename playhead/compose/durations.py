"""Lengths of time as people write them."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Final

from playhead.errors import UsageError

Duration = float | str | timedelta
"""Seconds, or text such as `500ms`, `30s`, `5m`, `1.5h`, `1h30m`, or a timedelta."""

_UNITS: Final = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_NUMBER: Final = r"([0-9]{1,15}(?:\.[0-9]{1,15})?)"
_TEXT: Final = re.compile("".join(f"(?:{_NUMBER}{unit})?" for unit in _UNITS), re.ASCII)
_LONGEST: Final = 80
"""Characters of a value that are said again in an error."""


def seconds(value: Duration, name: str) -> float:
    """Return a length of time in seconds.

    Args:
        value: a number of seconds, text with units from days to milliseconds, the larger first, or a timedelta.
        name: what it is called where it was given, for the error.

    Raises:
        UsageError: it is no length of time, not more than 0, or without an end.
    """
    length = _read(value)
    if length is None or math.isnan(length):
        raise UsageError(
            f"{name} is a length of time: seconds, text such as '500ms', '30s', '5m', '1.5h' or '1h30m', or a "
            f"timedelta; it is {_shown(value)}"
        )
    if length <= 0 or math.isinf(length):
        what = "has an end" if length > 0 else "is more than 0"
        raise UsageError(f"{name} is a length of time that {what}; it is {_shown(value)}")
    return length


def _read(value: object) -> float | None:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, str):
        return _read_text(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _read_text(text: str) -> float | None:
    found = _TEXT.fullmatch(text)
    if not text or found is None:
        return None
    return math.fsum(
        float(number) * unit for number, unit in zip(found.groups(), _UNITS.values(), strict=True) if number
    )


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a foreign object, or a number with more digits than Python writes
        text = type(value).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
