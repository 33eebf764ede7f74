"""Ids of runs: what may be one, and how new ones are made."""

from __future__ import annotations

import re
import secrets
import time
from itertools import count
from typing import Final

from playhead.errors import RunIdError

_RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_ULID: Final = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Of ULIDs."""
_CROCKFORD: Final = str.maketrans(_ALPHABET[10:], "ABCDEFGHIJKLMNOPQRSTUV")
"""From the alphabet of ULIDs to the one that `int(…, 32)` reads."""
_numbers: Final = count()


def checked_run_id(run_id: str) -> str:
    """Return the id unchanged when it is a safe file name.

    Raises:
        RunIdError: it is not.
    """
    if not _RUN_ID.fullmatch(run_id):
        raise RunIdError(
            f"{run_id[:80]!r} is no run id: letters, digits, '.', '_' and '-' only, first a letter or digit, "
            "at most 128 characters. (A trace outside the trace folder is named by its path, ending in .jsonl)"
        )
    return run_id


def new_run_id() -> str:
    """Return a new ULID: sorts by time, and its 128 bits are the OpenTelemetry trace id.

    The ids that a process makes in one millisecond are told apart by a number, in their order, and by 64 random bits.
    """
    number = time.time_ns() // 1_000_000 << 80 | next(_numbers) % 2**16 << 64 | secrets.randbits(64)
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def ulid_number(run_id: str) -> int | None:
    """Return the 128 bits of a ULID; None for an id that is none."""
    text = run_id.upper()
    return int(text.translate(_CROCKFORD), 32) if _ULID.fullmatch(text) else None


def ulid_time_ms(name: str) -> int | None:
    """Return the milliseconds since the Unix epoch that a name begins with which begins with a ULID; None for others."""
    return int(name[:10].translate(_CROCKFORD), 32) if _ULID.match(name) else None
