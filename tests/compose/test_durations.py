"""Lengths of time as people write them: read exactly, or refused with what was meant."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest

from playhead.compose.durations import seconds
from playhead.errors import UsageError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5.0), (0.25, 0.25), ("500ms", 0.5), ("30s", 30.0), ("5m", 300.0), ("1.5h", 5400.0), ("1h30m", 5400.0),
        ("1d", 86400.0), ("1d2h3m4s5ms", 93784.005), ("0h5s", 5.0), ("90m", 5400.0), (timedelta(minutes=2), 120.0),
        (timedelta(milliseconds=1), 0.001),
    ],
)  # fmt: skip
def test_a_length_of_time(value: Any, expected: float):
    """A number is seconds; text has units, the larger first; a timedelta is what it is."""
    assert seconds(value, "timeout") == expected


@pytest.mark.parametrize(
    "value",
    ["", "s", "5", "30 s", "5 minutes", "5x", "soon", "-5s", "5s5m", "5s 5s", "1e3s", ".5s", "5.s", "٣s", "5s\n", "x" * 500, True, None, [5], b"5s",
     math.nan, math.inf, 0, "0s", timedelta(0), -1, 5j, object(), "9" * 16 + "s"],
)  # fmt: skip
def test_an_invalid_duration_is_refused(value: Any):
    """Anything else is refused, in one short line."""
    with pytest.raises(
        UsageError,
        match=r"^timeout is a length of time(: seconds, text such as | that has an end| that is more than 0)",
    ) as error:
        seconds(value, "timeout")
    assert len(str(error.value)) < 300
