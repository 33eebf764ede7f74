"""Recordings of runs: event types, writer, reader, redaction."""

from typing import Final

VERSION: Final = "0.2.0"
"""The version of Playhead. It is here because every other package needs it and may import this one."""
