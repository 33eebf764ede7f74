"""What happened: event types, writer, reader, recording, redaction."""

from typing import Final

VERSION: Final = "0.2.0"
"""The version of Playhead. It is here because every other package needs it and may import this one."""
