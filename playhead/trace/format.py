"""The version of the trace format, and what is said of a file of another one."""

from __future__ import annotations

import os
import re
import time
from itertools import count
from typing import Final

from playhead.errors import RunIdError, TraceFormatError
from playhead.trace import VERSION

FORMAT: Final = "2.0"
"""Raise the minor version when a kind or an optional field is added, the major when an old reader would misread."""
_READ_BY: Final = {"1": "0.1"}
"""The last version of Playhead that read an older major format."""
_SAID: Final = re.compile(rb'"format":"((\d{1,9})(?:\.\d{1,9})?)')
_WRITER: Final = re.compile(rb'"versions":\{[^{}]*"playhead":"([0-9][0-9A-Za-z.+-]{0,30})"')
_BEGINNING: Final = 4096
"""Bytes of the first line in which it says its format."""


def require_format(name: str, first_line: bytes) -> None:
    """Refuse a file whose first line names another major format.

    Raises:
        TraceFormatError: it does; one sentence names the version of Playhead that reads it.
    """
    start = first_line[:_BEGINNING]
    said = _SAID.search(start) if b'"run-started"' in start else None
    if said is None or said[2] == FORMAT.partition(".")[0].encode():
        return
    version, writer = said[1].decode(), _WRITER.search(first_line)
    reader = _READ_BY.get(said[2].decode()) or (writer[1].decode() if writer else VERSION)
    which = "a newer Playhead" if reader == VERSION else f"Playhead {reader}"
    raise TraceFormatError(
        f"{name} is in trace format {version}, which {which} reads; Playhead {VERSION} reads {FORMAT}", version
    )


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
    number = time.time_ns() // 1_000_000 << 80 | next(_numbers) % 2**16 << 64 | int.from_bytes(os.urandom(8))
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def ulid_number(run_id: str) -> int | None:
    """Return the 128 bits of a ULID; None for an id that is none."""
    text = run_id.upper()
    return int(text.translate(_CROCKFORD), 32) if _ULID.fullmatch(text) else None


def ulid_time_ms(name: str) -> int | None:
    """Return the milliseconds since the Unix epoch that a name begins with which begins with a ULID; None for others."""
    return int(name[:10].translate(_CROCKFORD), 32) if _ULID.match(name) else None


ANSWERED: Final = frozenset({"final_answer_tool", "final_answer", "end_turn"})
"""Reason codes of endings in which the model itself said what the answer is."""
UNACCEPTED: Final = frozenset({"output_rejected", "required_tools_missing", "unsatisfied"})
"""Reason codes of endings in which it said so, and whoever had to accept the answer did not."""
# fmt: off
INCOMPLETE: Final = {
    **dict.fromkeys(
        ("length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"), "output_truncated"
    ),
    **dict.fromkeys((
        "blocklist", "content_filter", "content_filtered", "guardrail_intervened", "prohibited_content", "recitation",
        "refusal", "safety", "spii",
    ), "output_filtered"),
}
# fmt: on
"""By finish reason, in small letters."""


def incomplete(finish_reason: str | None) -> str | None:
    """Return how a run ends with an answer of this finish reason; None with one that is whole."""
    return INCOMPLETE.get((finish_reason or "").lower())
