"""Campaigns run whole under `make prove`, and as a sample in `make test`."""

from __future__ import annotations

import os
from typing import Final, TypeVar

PROVE: Final = "PROVE" in os.environ
"""Whether campaigns run whole, and bounds of time are asserted: only a quiet machine can keep them."""

Of = TypeVar("Of")


def sample(full: Of, few: Of) -> Of:
    """Return the full set of a campaign under `make prove`, and the few of every other run."""
    return full if PROVE else few


def bound(seconds: float) -> float:
    """Return a bound of time under `make prove`, and else what only code that hangs would take."""
    return sample(seconds, 60.0)
