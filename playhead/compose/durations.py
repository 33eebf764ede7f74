"""Durations as people write them."""

from __future__ import annotations

import math
import re
import reprlib
from datetime import timedelta
from typing import Final

from playhead.errors import UsageError

Duration = float | str | timedelta
"""Seconds, or text such as `500ms`, `30s`, `5m`, `1.5h`, `1h30m`, or a timedelta."""

_UNITS: Final = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_NUMBER: Final = r"([0-9]{1,15}(?:\.[0-9]{1,15})?)"
_TEXT: Final = re.compile("".join(f"(?:{_NUMBER}{unit})?" for unit in _UNITS), re.ASCII)


def seconds(value: Duration, name: str) -> float:
    """Return a duration in seconds.

    Args:
        value: a number of seconds, text with units from days to milliseconds, larger units first, or a timedelta.
        name: the name of the argument, for the error.

    Raises:
        UsageError: it is not a duration, not above 0, or infinite.
    """
    length = _read(value)
    if length is None or math.isnan(length):
        raise UsageError(
            f"{name} is a length of time: seconds, text such as '500ms', '30s', '5m', '1.5h' or '1h30m', or a "
            f"timedelta; it is {reprlib.repr(value)}"
        )
    if length <= 0 or math.isinf(length):
        what = "has an end" if length > 0 else "is more than 0"
        raise UsageError(f"{name} is a length of time that {what}; it is {reprlib.repr(value)}")
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
        return math.inf


def _read_text(text: str) -> float | None:
    found = _TEXT.fullmatch(text)
    if not text or found is None:
        return None
    numbers = zip(found.groups(), _UNITS.values(), strict=True)
    return math.fsum(float(number) * unit for number, unit in numbers if number)
