"""A server as a process of our own, spoken to over its standard input and output through the `mcp` package."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections import deque
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mcp.client.stdio import StdioServerParameters, stdio_client

from playhead.mcp.plain import one_line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

log = logging.getLogger("playhead.mcp")

LAST_WORDS_S: Final = 0.3
"""Seconds that an error waits for what a server that has ended wrote last."""
_LAST_WORDS: Final = 5
"""Lines of standard error that an error message quotes."""
_LONGEST_LINE: Final = 2000
"""Characters that are read as one line."""
_SAY_GROUP_AND_RUN: Final = 'echo $$ >&2; exec "$0" "$@"'
"""The package keeps the process to itself; it leads its process group, so its id is that of the group."""


@dataclass
class StdioServer:
    """A program that is started as a server, and what it writes to its standard error."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the few variables that are safe to hand on (PATH, HOME …)."""
    cwd: str | Path | None = None
    last_words: deque[str] = field(default_factory=lambda: deque(maxlen=_LAST_WORDS))
    """The newest lines of its standard error, cleaned."""
    _overhearing: threading.Thread | None = None
    _group: int | None = None

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[Any, None]:
        """Start the program; when this is left, nothing of its process group runs any more."""
        arguments = ["-c", _SAY_GROUP_AND_RUN, *self.command]
        parameters = StdioServerParameters(command="/bin/sh", args=arguments, env=dict(self.env), cwd=self.cwd)
        reading, writing = os.pipe()
        self._overhearing = threading.Thread(target=self._overhear, args=(reading,), name="playhead-mcp", daemon=True)
        self._overhearing.start()
        try:
            with os.fdopen(writing, "w") as errors:
                async with stdio_client(parameters, errors) as streams:
                    errors.close()  # so that the end of the server is the end of what we read
                    yield streams
        finally:  # the package ends the group only of a server that does not end by itself
            if self._group is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._group, signal.SIGKILL)

    def account(self) -> str:
        """Return what is known of the server, for an error message: its output may end just before its last words are read."""
        if self._overhearing is not None:
            self._overhearing.join(LAST_WORDS_S)
        said = " | ".join(self.last_words)
        return f"it said last: {said}" if said else "it said nothing"

    def _overhear(self, reading: int) -> None:
        """Read the standard error on, so that the server never waits for us, and keep its newest lines."""
        with os.fdopen(reading, errors="replace") as stream:
            first = stream.readline(_LONGEST_LINE)
            self._group = int(first) if first.strip().isdecimal() else None
            while line := stream.readline(_LONGEST_LINE):
                if line.strip():
                    self.last_words.append(one_line(line))
                    log.info("%s: %s", self.command[0], self.last_words[-1])
