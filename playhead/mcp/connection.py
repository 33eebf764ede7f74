"""A connection to one server, in a loop and a daemon thread of its own: agents of any loop and thread may use it."""

from __future__ import annotations

import contextvars
import logging
import math
import os
import queue
import threading
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp import Client, MCPError
from mcp_types import CONNECTION_CLOSED, CallToolRequest, CallToolRequestParams, CallToolResult, Implementation

from playhead.errors import ToolDefinitionError, ToolServerError
from playhead.kernel.describe import describe
from playhead.kernel.lifecycle.threads import asyncio_loop, loop_scheduler
from playhead.mcp.definition import MAX_TOOLS
from playhead.mcp.plain import one_line
from playhead.trace import VERSION

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Mapping

    import mcp_types

    from playhead.mcp.http import HttpServer
    from playhead.mcp.stdio import StdioServer

CLOSED_S: Final = 5.0
"""Seconds that closing waits for the thread; the server's own end takes at most about 2."""
WHY_S: Final = 0.3
"""Seconds that a call waits to hear why the connection ended."""

for _name in ("mcp", "client"):  # the package's own loggers: what servers send must not reach a terminal unescaped
    logging.getLogger(_name).addHandler(logging.NullHandler())


class Call:
    """A request on its way through the connection's loop, for a caller in another one."""

    def __init__(self, ask: Callable[[], Awaitable[Any]]) -> None:
        """Make it in the caller's loop."""
        self.answer: Any = None
        self.error: BaseException | None = None
        self._ask = ask
        self._done = anyio.Event()
        self._in_callers_loop = loop_scheduler()
        self._scope: anyio.CancelScope | None = None
        self._cancelled = False

    async def wait(self) -> None:
        """Wait for the answer."""
        await self._done.wait()

    async def run(self) -> None:
        """Ask, and tell the caller; in the connection's loop."""
        try:
            with anyio.CancelScope() as self._scope:
                if not self._cancelled:
                    self.answer = await self._ask()
        except Exception as error:  # noqa: BLE001 - whatever the protocol's package raises belongs to the caller
            self.error = error
        finally:
            self._tell()

    def cancel(self) -> None:
        """End the request, and let the server know; in the connection's loop."""
        self._cancelled = True
        if self._scope is not None:
            self._scope.cancel()

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the caller's loop has ended
            self._in_callers_loop(self._done.set)


class Connection:
    """An open connection. What is public may be called from any thread."""

    def __init__(
        self, name: str, server: StdioServer | HttpServer, start_timeout_s: float, secrets: Mapping[str, str]
    ) -> None:
        """Describe it; nothing is started before `open`."""
        self.name = name
        self.secrets = secrets
        """What was given to the server and nobody may record, by name."""
        self._server = server
        self._start_timeout_s = start_timeout_s
        self._deadline = math.inf
        self._opened: queue.SimpleQueue[list[mcp_types.Tool] | BaseException] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scope: anyio.CancelScope | None = None
        self._client: Client | None = None
        self._group: anyio.abc.TaskGroup | None = None
        """Of the calls under way; None when there can be none."""
        self._broken: BaseException | None = None
        """What ended the connection before it was closed."""
        self._wanted = True
        """False from `close` on, for a thread that has not begun yet."""
        self._ended = threading.Event()
        self._pid = os.getpid()

    def open(self) -> list[mcp_types.Tool]:
        """Start the server, or reach it, and return the tools that it lists; waits for it.

        Raises:
            ToolServerError: it cannot be started or reached, or is no MCP server.
            ToolDefinitionError: its list cannot be read.
        """
        # In no context: by that of the caller, whose loop may run, anyio would take this thread for the loop's.
        threading.Thread(target=contextvars.Context().run, args=(self._work,), name="playhead-mcp", daemon=True).start()
        self._deadline = monotonic() + self._start_timeout_s
        try:  # the thread keeps the deadline itself, unless what the server sent keeps it busy
            opened = self._opened.get(timeout=self._start_timeout_s + WHY_S)
        except queue.Empty:
            raise self._unopened(TimeoutError()) from None
        if isinstance(opened, BaseException):
            self._ended.wait(CLOSED_S)
            raise opened
        return opened

    def require_in_time(self) -> None:
        """Make sure that the start still has time.

        Raises:
            ToolServerError: it has none.
        """
        if monotonic() > self._deadline:
            raise self._unopened(TimeoutError())

    def close(self) -> None:
        """End the connection, and the server if it is a process of ours; waits for its end."""
        if os.getpid() != self._pid:  # in the child of a fork there is no such thread; the connection is its parent's
            return
        self._wanted = False
        with suppress(ToolServerError):
            self._in_loop(self._shut)
        if not self._ended.wait(CLOSED_S):
            logging.getLogger("playhead").warning("the MCP server %s did not end within %g s", self.name, CLOSED_S)

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """Return what the server answers; when this is cancelled, the server is told so.

        Raises:
            ToolServerError: there is no connection, or it ended, or the server answered with an error of the protocol.
        """
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))

        async def ask() -> CallToolResult:
            assert self._client is not None  # noqa: S101 - it is open
            try:
                return await self._client.session.send_request(request, CallToolResult)
            except MCPError as error:
                if error.code == CONNECTION_CLOSED and not self._server.ended:
                    await anyio.sleep(WHY_S)  # broken off when the reason is known
                raise

        call = Call(ask)
        self._begin(call)
        try:
            await call.wait()
        except BaseException:  # also GeneratorExit: nothing is awaited here
            with suppress(ToolServerError):
                self._in_loop(call.cancel)
            raise
        if call.error is not None:
            raise self._explained(call.error)
        if call.answer is None:
            raise self._closed()
        return call.answer  # type: ignore[no-any-return]

    # --- in the connection's thread ------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            anyio.run(self._serve)
        except BaseException as error:  # noqa: BLE001 - raised in the thread that opens
            self._opened.put(self._unopened(first_of(error)))
        finally:
            self._group = None
            self._ended.set()

    async def _serve(self) -> None:
        self._loop = asyncio_loop()
        with anyio.CancelScope(deadline=anyio.current_time() + self._start_timeout_s) as self._scope:
            if not self._wanted:
                self._scope.cancel()
            async with anyio.create_task_group() as calls:
                try:
                    async with self._new_client() as client:
                        listed = await _listed(client)
                        self._server.has_listed()
                        self._scope.deadline = math.inf
                        self._client, self._group = client, calls
                        self._opened.put(listed)
                        await anyio.sleep_forever()
                except Exception as error:
                    self._broken = first_of(error)
                    raise
        if self._group is None:
            raise TimeoutError

    def _new_client(self) -> Client:
        """Return the protocol's client; what a server asks of us (sampling, elicitation, roots) it refuses."""
        info = Implementation(name="playhead", version=VERSION)
        return Client(self._server.connected(), client_info=info, cache=None)

    def _shut(self) -> None:
        """End what is under way: calls first, then the server."""
        if self._group is not None:
            self._group.cancel_scope.cancel()
        if self._scope is not None:
            self._scope.cancel()

    # --- in the callers' threads ---------------------------------------------------------------------------------------

    def _begin(self, call: Call) -> None:
        group = self._group if os.getpid() == self._pid else None
        if group is None:
            raise self._closed()

        def start() -> None:
            if self._group is None:
                call._tell()  # noqa: SLF001 - it has no answer, so the caller hears of the end
            else:
                group.start_soon(call.run)

        self._in_loop(start)

    def _in_loop(self, function: Callable[[], object]) -> None:
        if self._loop is None:
            raise self._closed()
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:  # the loop has ended
            raise self._closed() from None

    def _closed(self) -> ToolServerError:
        if self._broken is not None or self._server.ended:
            return self._gone()
        return ToolServerError(
            f"there is no connection to the MCP server {self.name}: runs have to be inside the `with` of mcp_tools"
        )

    def _gone(self) -> ToolServerError:
        why = self._server.account() if self._broken is None else one_line(describe(self._broken), 2000)
        return ToolServerError(
            f"the MCP server {self.name} is gone: {why}. Whether the call took effect is not known. "
            "It is not started again: leave the `with` of mcp_tools and enter it anew"
        )

    def _explained(self, error: BaseException) -> ToolServerError:
        if self._server.ended or (isinstance(error, MCPError) and error.code == CONNECTION_CLOSED):
            return self._gone()
        if isinstance(error, MCPError):
            return ToolServerError(f"the MCP server {self.name} answered: {one_line(error.message, 2000)}")
        return ToolServerError(f"the MCP server {self.name}: {type(error).__name__}: {one_line(describe(error), 2000)}")

    def _unopened(self, error: BaseException) -> BaseException:
        """Return what the caller of `open` gets to see."""
        if isinstance(error, ToolDefinitionError):
            return error
        return ToolServerError(f"the MCP server {self.name} cannot be used: {self._why(error)}")

    def _why(self, error: BaseException) -> str:
        known = self._server.account() if self._server.ended else ""
        if isinstance(error, TimeoutError):
            within = f"it did not answer as such a server within {self._start_timeout_s:g} s"
            return f"{within}; {known}" if known else within
        if isinstance(error, FileNotFoundError):
            return f"there is no program or folder {error.filename!r}"
        if isinstance(error, MCPError):
            return known or one_line(error.message, 2000)
        said = one_line(describe(error), 2000)
        return f"{known}; {said}" if known else said


def first_of(error: BaseException) -> BaseException:
    """Return the first error inside groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _listed(client: Client) -> list[mcp_types.Tool]:
    tools: list[mcp_types.Tool] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        if len(tools) > MAX_TOOLS:
            raise ToolServerError(f"it lists more than {MAX_TOOLS} tools")
        cursor = page.next_cursor
        if cursor is None:
            return tools
        if not page.tools:
            raise ToolServerError("it lists pages of tools without end")
