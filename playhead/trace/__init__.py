"""What happened: event types, writer, reader, recording, redaction."""

from typing import Final

VERSION: Final = "0.2.0"
"""The version of Playhead; it stands here since what every room needs has to be in the first one."""
