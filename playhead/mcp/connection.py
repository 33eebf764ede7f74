"""A connection to one server, with its own event loop and daemon thread, so that agents in any loop or thread can use it.

The server is a child process with pipes, or an address; both use the transports of the `mcp` package.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import threading
from collections import deque
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import CONNECTION_CLOSED, CallToolRequest, CallToolRequestParams, CallToolResult, Implementation
from pydantic import ValidationError

from playhead.errors import ToolServerError
from playhead.kernel.describe import describe
from playhead.mcp.choices import one_line
from playhead.trace import VERSION

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    import mcp_types
    from anyio.abc import TaskStatus

    from playhead.mcp.choices import Choices

log = logging.getLogger("playhead.mcp")

MAX_TOOLS: Final = 1_000
MAX_MESSAGE_BYTES: Final = 64 * 2**20
"""The longest message that a server may send."""
LONGEST: Final = 2000
"""Largest number of characters of an error's text, and of a line of standard error."""
LAST_LINES_S: Final = 0.3
"""Seconds that an error waits for the last lines of a server that has ended."""
_SAY_GROUP_AND_RUN: Final = 'echo $$ >&2; exec "$0" "$@"'
"""The `mcp` package does not expose the process; it leads its process group, so its id is that of the group."""

for _name in ("mcp", "client"):  # the package's own loggers: a server's text must not reach a terminal unescaped
    logging.getLogger(_name).addHandler(logging.NullHandler())


@dataclass
class HttpServer:
    """A server at an address."""

    url: str
    headers: Mapping[str, str]
    trouble: str | None = None
    """The error of the transport, if known."""

    def account(self) -> str:
        """Return why the connection ended, if known, for an error message."""
        return self.trouble or ""

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[Any, None]:
        """Connect when the first message is sent."""
        headers = {"Accept-Encoding": "identity", **self.headers}
        async with create_mcp_http_client(headers=headers) as client:
            client.event_hooks = {"response": [self._bound]}
            async with streamable_http_client(
                self.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES
            ) as streams:
                yield streams

    async def _bound(self, response: httpx2.Response) -> None:
        """Limit the size of an answer that is not a stream of events."""
        if response.headers.get("content-encoding", "identity") != "identity":
            self.trouble = "it sent a compressed answer, which was not requested"
            raise httpx2.DecodingError(self.trouble, request=response.request)
        stream, body = response.stream, bytearray()
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            return
        assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - the client is async
        async for part in stream:
            body += part
            if len(body) > MAX_MESSAGE_BYTES:
                self.trouble = f"it sent a message of more than {MAX_MESSAGE_BYTES} bytes"
                raise httpx2.ReadError(self.trouble)
        await stream.aclose()
        response.stream = httpx2.ByteStream(bytes(body))


@dataclass
class StdioServer:
    """A program that is started as a server, and its standard error."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    """Variables in addition to the few that are safe to pass on (PATH, HOME …)."""
    cwd: Path | None
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=5))
    """The newest lines of its standard error, cleaned."""
    _reader: threading.Thread | None = None
    _group: int | None = None

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[Any, None]:
        """Start the program; on exit, end its whole process group."""
        arguments = ["-c", _SAY_GROUP_AND_RUN, *self.command]
        parameters = StdioServerParameters(command="/bin/sh", args=arguments, env=dict(self.env), cwd=self.cwd)
        reading, writing = os.pipe()
        self._reader = threading.Thread(target=self._read_errors, args=(reading,), name="playhead-mcp", daemon=True)
        self._reader.start()
        try:
            with os.fdopen(writing, "w") as errors:
                async with stdio_client(parameters, errors) as streams:
                    errors.close()  # so that our pipe ends when the server does
                    yield streams
        finally:  # the package ends the group only if the server does not end by itself
            if self._group is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._group, signal.SIGKILL)

    def account(self) -> str:
        """Return the last lines of standard error, for an error message."""
        if self._reader is not None:
            self._reader.join(LAST_LINES_S)
        said = " | ".join(self.last_lines)
        return f"it said last: {said}" if said else "it said nothing"

    def _read_errors(self, reading: int) -> None:
        """Read the standard error, so that the server never blocks on it, and keep its newest lines."""
        with os.fdopen(reading, errors="replace") as stream:
            first = stream.readline(LONGEST)
            self._group = int(first) if first.strip().isdecimal() else None
            while line := stream.readline(LONGEST):
                if line.strip():
                    self.last_lines.append(one_line(line))
                    log.info("%s: %s", self.command[0], self.last_lines[-1])


class Connection:
    """An open connection; public methods may be called from any thread."""

    def __init__(self, choices: Choices) -> None:
        """Describe it; nothing starts before `open`."""
        self.name = choices.server
        self.secrets = choices.secrets
        """Values given to the server that must not be recorded, by name."""
        self._server: StdioServer | HttpServer = (
            HttpServer(choices.url, choices.given)
            if choices.url is not None
            else StdioServer(choices.command or (), choices.given, choices.cwd)
        )
        self._start_timeout_s = choices.start_timeout_s
        self._thread: AbstractContextManager[BlockingPortal] = start_blocking_portal()
        self._portal: BlockingPortal | None = None
        self._client: Client | None = None
        self._broken: BaseException | None = None
        """What ended the connection before it was closed."""
        self._pid = os.getpid()

    def open(self) -> list[mcp_types.Tool]:
        """Start or reach the server, and return the tools that it lists; blocks until then.

        Raises:
            ToolServerError: it cannot be started or reached, or is not an MCP server.
        """
        self._portal = self._thread.__enter__()
        try:
            _, listed = self._portal.start_task(self._serve)
        except (Exception, CancelledError) as error:  # noqa: BLE001 - the protocol's package raises any
            raise ToolServerError(f"the MCP server {self.name} cannot be used: {self._why(first_of(error))}") from None
        return listed  # type: ignore[no-any-return]

    def close(self) -> None:
        """End the calls, the connection and a server that was started; blocks until it has ended."""
        if self._portal is None or os.getpid() != self._pid:  # in the child of a fork the connection is its parent's
            return
        with suppress(RuntimeError):
            self._portal.call(self._portal.stop, True)  # noqa: FBT003 - with all tasks in it
        self._thread.__exit__(None, None, None)

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """Return the server's answer; cancelling this cancels the call on the server.

        Raises:
            ToolServerError: there is no connection, or it ended, or the server answered with an error of the protocol.
        """
        if self._portal is None or os.getpid() != self._pid:
            raise self._error()
        try:
            answer = self._portal.start_task_soon(self._ask, tool, arguments)
        except RuntimeError:
            raise self._error() from None
        try:
            return await asyncio.wrap_future(answer)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise self._error() from None  # the connection was closed
        except Exception as error:  # noqa: BLE001 - the protocol's package raises any
            raise self._error(error) from None

    # --- in the connection's thread ------------------------------------------------------------------------------------

    async def _serve(self, *, task_status: TaskStatus[list[mcp_types.Tool]]) -> None:
        info = Implementation(name="playhead", version=VERSION)
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + self._start_timeout_s) as scope:
                # The client refuses a server's requests (sampling, elicitation, roots).
                async with Client(self._server.connected(), client_info=info, cache=None) as self._client:
                    listed = await _listed(self._client)
                    scope.deadline = math.inf
                    task_status.started(listed)
                    await anyio.sleep_forever()
        except Exception as error:
            self._broken = first_of(error)
            raise
        raise TimeoutError(f"it did not answer as an MCP server within {self._start_timeout_s:g} s")

    async def _ask(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        assert self._client is not None  # noqa: S101 - it is open
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
        return await self._client.session.send_request(request, CallToolResult)

    def _error(self, error: BaseException | None = None) -> ToolServerError:
        """Return why there is no answer; a connection that was closed or never opened has no error."""
        error = self._broken or error
        if error is None:
            return ToolServerError(
                f"there is no connection to the MCP server {self.name}: runs have to be inside the `with` of mcp_tools"
            )
        if isinstance(error, MCPError) and error.code != CONNECTION_CLOSED:
            return ToolServerError(f"the MCP server {self.name} answered: {one_line(error.message, LONGEST)}")
        if isinstance(error, ValidationError):
            return ToolServerError(f"the MCP server {self.name} answered with what is not a result: {self._why(error)}")
        return ToolServerError(
            f"the MCP server {self.name} is gone: {self._why(error)}. Whether the call took effect is not known. "
            "It is not started again: leave the `with` of mcp_tools and enter it anew"
        )

    def _why(self, error: BaseException) -> str:
        return "; ".join(filter(None, (one_line(describe(error), LONGEST), self._server.account())))


def first_of(error: BaseException) -> BaseException:
    """Return the first error inside groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _listed(client: Client) -> list[mcp_types.Tool]:
    page = await client.list_tools()
    tools = page.tools
    while page.next_cursor is not None and page.tools and len(tools) <= MAX_TOOLS:
        page = await client.list_tools(cursor=page.next_cursor)
        tools += page.tools
    if page.next_cursor is not None or len(tools) > MAX_TOOLS:
        raise ToolServerError(f"it lists more than {MAX_TOOLS} tools, or pages of tools without end")
    return tools
