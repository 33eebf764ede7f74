"""The trace format's version, run ids, and the reason codes of endings."""

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
"""Bytes at the start of the first line that contain the format version."""


def require_format(name: str, first_line: bytes) -> None:
    """Refuse a file whose first line names another major format.

    Raises:
        TraceFormatError: the format differs; the message names the version of Playhead that reads it.
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
"""The alphabet of ULIDs."""
_CROCKFORD: Final = str.maketrans(_ALPHABET[10:], "ABCDEFGHIJKLMNOPQRSTUV")
"""Translates a ULID to the digits that `int(…, 32)` reads."""
_numbers: Final = count()


def checked_run_id(run_id: str) -> str:
    """Return the id unchanged when it is a safe file name.

    Raises:
        RunIdError: it is not.
    """
    if not _RUN_ID.fullmatch(run_id):
        raise RunIdError(
            f"{run_id[:80]!r} is not a run id: letters, digits, '.', '_' and '-' only, first a letter or digit, "
            "at most 128 characters. (A trace outside the trace folder is named by its path, ending in .jsonl)"
        )
    return run_id


def new_run_id() -> str:
    """Return a new ULID: ids sort by time, and the 128 bits are the OpenTelemetry trace id.

    A counter and 64 random bits distinguish the ids that a process creates in one millisecond.
    """
    number = time.time_ns() // 1_000_000 << 80 | next(_numbers) % 2**16 << 64 | int.from_bytes(os.urandom(8))
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def ulid_number(run_id: str) -> int | None:
    """Return the 128 bits of a run id, or None for an id that is not a ULID."""
    text = run_id.upper()
    return int(text.translate(_CROCKFORD), 32) if _ULID.fullmatch(text) else None


def ulid_time_ms(name: str) -> int | None:
    """Return the time in a name that starts with a ULID, in milliseconds since the Unix epoch; None for other names."""
    return int(name[:10].translate(_CROCKFORD), 32) if _ULID.match(name) else None


ANSWERED: Final = frozenset({"final_answer_tool", "final_answer", "end_turn"})
"""Reason codes of runs that ended with the model's own answer."""
UNACCEPTED: Final = frozenset({"output_rejected", "required_tools_missing", "unsatisfied"})
"""Reason codes of runs whose answer was not accepted by a validator, a required-tools check or a critic."""
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
"""The reason code of an incomplete answer, by lower-case finish reason."""


def incomplete(finish_reason: str | None) -> str | None:
    """Return the reason code for an answer with this finish reason; None when the answer is complete."""
    return INCOMPLETE.get((finish_reason or "").lower())
