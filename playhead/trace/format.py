"""The version of the trace format, and what is said of a file of another one."""

from __future__ import annotations

import re
from typing import Final

from playhead.errors import TraceFormatError
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
