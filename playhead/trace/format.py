"""The version of the trace format, and what is said of a file of another one."""

from __future__ import annotations

import json
import re
from typing import Final

from playhead.trace import VERSION

FORMAT: Final = "2.0"
"""Raise the minor version when a kind or an optional field is added, the major when an old reader would misread."""
_READ_BY: Final = {"1": "0.1"}
"""The last version of Playhead that read an older major format."""
_SAID: Final = re.compile(rb'"format":"((\d{1,9})(?:\.\d{1,9})?)')
_VERSION: Final = re.compile(r"[0-9][0-9A-Za-z.+-]{0,30}")
_BEGINNING: Final = 4096
"""Bytes of the first line in which it says its format."""


def other_format(first_line: bytes) -> str | None:
    """Return the version of the trace format that a file's first line names, if this is of another major format."""
    start = first_line[:_BEGINNING]
    said = _SAID.search(start) if b'"run-started"' in start else None
    return None if said is None or said[2] == FORMAT.partition(".")[0].encode() else said[1].decode()


def refusal(name: str, version: str, first_line: bytes) -> str:
    """Return the sentence that refuses a file of another major format and names the version of Playhead that reads it."""
    reader = _READ_BY.get(version.partition(".")[0]) or _written_by(first_line)
    which = f"Playhead {reader}" if reader else "a newer Playhead"
    return f"{name} is in trace format {version}, which {which} reads; Playhead {VERSION} reads {FORMAT}"


def _written_by(first_line: bytes) -> str | None:
    try:
        said = json.loads(first_line)["data"]["versions"]["playhead"]
        return said if _VERSION.fullmatch(said) and said != VERSION else None
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
