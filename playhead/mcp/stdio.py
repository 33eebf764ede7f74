"""A server as a process of our own, spoken to over its standard input and output.

The `mcp` package has such a transport, too. This one knows how the server ended and what it said last, bounds the length of
a message, keeps the server's standard error off the terminal, and leaves nothing of the server's process group behind.
"""

from __future__ import annotations

import logging
import os
import signal
from collections import deque
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from subprocess import PIPE
from typing import TYPE_CHECKING, Final

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from playhead.mcp.plain import one_line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from anyio.abc import ByteReceiveStream, ByteSendStream, Process
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

Incoming = SessionMessage | Exception
log = logging.getLogger("playhead.mcp")

MAX_MESSAGE_BYTES: Final = 64 * 2**20
"""The longest message that a server may send."""
MAX_LISTING_BYTES: Final = 8 * 2**20
"""The longest that it may send until its tools are known: each of them takes time."""
CLOSING_S: Final = 1.0
"""Seconds that a server has to end by itself when its input is closed, as the protocol asks it to."""
TERMINATING_S: Final = 0.5
"""Seconds between SIGTERM and SIGKILL."""
_LOOK_S: Final = 0.01
_BROKEN: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)
"""How a pipe or a stream says that its other end is gone."""
_LAST_WORDS: Final = 5
"""Lines of standard error that an error message quotes."""


@dataclass
class StdioServer:
    """A program that is started as a server, and what is known of its end."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the few variables that are safe to hand on (PATH, HOME …)."""
    cwd: str | Path | None = None
    process: Process | None = None
    trouble: str | None = None
    """Why we stopped listening, when it was not the server's end."""
    last_words: deque[str] = field(default_factory=lambda: deque(maxlen=_LAST_WORDS))
    """The newest lines of its standard error, cleaned."""

    max_bytes: int = MAX_LISTING_BYTES
    """The longest message that is read now."""
    ended: bool = False
    """Whether its output has ended, or is not listened to any more."""

    def has_listed(self) -> None:
        """Note that the tools are known: what comes now are results, which may be long."""
        self.max_bytes = MAX_MESSAGE_BYTES

    def account(self) -> str:
        """Return what is known of the server's end, for an error message."""
        code = None if self.process is None else self.process.returncode
        said = f"; it said last: {' | '.join(self.last_words)}" if self.last_words else ""
        if self.trouble is not None:
            return f"{self.trouble}{said}"
        if code is None:
            return f"its output has ended{said}"
        return f"{_ending(code)}{said}"

    @asynccontextmanager
    async def connected(
        self,
    ) -> AsyncGenerator[tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]], None]:
        """Start the program; when this is left, nothing of it runs any more.

        Raises:
            OSError: it cannot be started.
        """
        with anyio.CancelScope(shield=True):  # cancelled half-way, it would leave a process behind that nobody knows
            self.process = process = await anyio.open_process(
                list(self.command),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env={**get_default_environment(), **self.env},
                cwd=self.cwd,
                start_new_session=True,
            )
        assert process.stdin is not None  # noqa: S101 - three pipes
        assert process.stdout is not None  # noqa: S101
        assert process.stderr is not None  # noqa: S101
        received, incoming = anyio.create_memory_object_stream[Incoming](0)
        outgoing, to_send = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as group, incoming, outgoing, received, to_send:
            group.start_soon(self._listen, process.stdout, received)
            group.start_soon(self._send, process.stdin, to_send, received)
            group.start_soon(self._overhear, process.stderr)
            try:
                yield incoming, outgoing
            finally:
                with anyio.CancelScope(shield=True):
                    await _end(process)
                group.cancel_scope.cancel()

    async def _listen(self, stream: ByteReceiveStream, received: MemoryObjectSendStream[Incoming]) -> None:
        lines = BufferedByteReceiveStream(stream)
        async with received:
            await self._relay(lines, received)
            self.ended = True

    async def _relay(self, lines: BufferedByteReceiveStream, received: MemoryObjectSendStream[Incoming]) -> None:
        while True:
            try:
                line = await lines.receive_until(b"\n", self.max_bytes)
            except anyio.DelimiterNotFound:
                self.trouble = f"it sent a message of more than {self.max_bytes} bytes"
                return
            except (anyio.IncompleteRead, *_BROKEN):
                await self._see_it_end()
                return
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                log.info("%s printed something that is no message: %s", self.command[0], _shown(line))
                continue
            with suppress(*_BROKEN):  # the session is gone, and the process has to be read on
                await received.send(SessionMessage(message))

    async def _see_it_end(self) -> None:
        """Wait a moment for the exit code: the output ends just before it is there."""
        with anyio.move_on_after(TERMINATING_S):
            while self.process is not None and self.process.returncode is None:  # noqa: ASYNC110 - see `_gone`
                await anyio.sleep(_LOOK_S)

    async def _send(
        self,
        stream: ByteSendStream,
        to_send: MemoryObjectReceiveStream[SessionMessage],
        received: MemoryObjectSendStream[Incoming],
    ) -> None:
        try:
            async for each in to_send:
                await stream.send(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        except _BROKEN:
            await self._see_it_end()
            if self.process is not None and self.process.returncode is None:
                self.trouble = "it does not read its input any more"
            self.ended = True
            received.close()  # whoever waits for an answer hears of the end

    async def _overhear(self, stream: ByteReceiveStream) -> None:
        """Read the standard error on, so that the server never waits for us, and keep its newest lines."""
        begun = b""
        with suppress(anyio.EndOfStream, *_BROKEN):
            while True:
                *lines, begun = (begun + await stream.receive()).split(b"\n")
                begun = begun[-1000:]
                for line in filter(bytes.strip, lines):
                    self.last_words.append(_shown(line))
                    log.info("%s: %s", self.command[0], self.last_words[-1])


def _shown(line: bytes) -> str:
    return one_line(line[:2000].decode(errors="replace"))


def _ending(code: int) -> str:
    if code >= 0:
        return f"its process ended with exit code {code}"
    try:
        return f"its process was killed by signal {-code} ({signal.Signals(-code).name})"
    except ValueError:  # a real-time signal has no name
        return f"its process was killed by signal {-code}"


async def _end(process: Process) -> None:
    """Close the input, then ask the process group to end, then kill what is left of it."""
    assert process.stdin is not None  # noqa: S101 - a pipe
    with suppress(*_BROKEN):
        await process.stdin.aclose()
    await _gone(process, CLOSING_S)
    if _signal(process.pid, signal.SIGTERM):
        await _gone(process, TERMINATING_S, group=True)
        _signal(process.pid, signal.SIGKILL)
        await _gone(process, TERMINATING_S)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            await stream.aclose()
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:  # else asyncio complains when a process that left the group holds a pipe open
        transport.close()


async def _gone(process: Process, seconds: float, *, group: bool = False) -> None:
    """Wait until the process has ended, or its whole group, at most so long.

    Not with `process.wait`, which waits for the pipes, too, and those a grandchild may hold open.
    """
    with anyio.move_on_after(seconds):
        while process.returncode is None or (group and _signal(process.pid, 0)):  # noqa: ASYNC110 - nobody tells of it
            await anyio.sleep(_LOOK_S)


def _signal(group: int, number: int) -> bool:
    """Return whether there is something left in the group to get the signal."""
    try:
        os.killpg(group, number)
    except PermissionError:  # there is, and it belongs to somebody else
        return number == 0
    except OSError:
        return False
    return True
