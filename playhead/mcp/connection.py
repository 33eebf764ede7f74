"""A connection to one server, in a loop and a daemon thread of its own: agents of any loop and thread may use it."""

from __future__ import annotations

import logging
import math
import os
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, MCPError
from mcp_types import CONNECTION_CLOSED, CallToolRequest, CallToolRequestParams, CallToolResult, Implementation
from pydantic import ValidationError

from playhead.errors import ToolServerError
from playhead.kernel.describe import describe
from playhead.kernel.lifecycle.threads import running_loop
from playhead.mcp.definition import MAX_TOOLS
from playhead.mcp.plain import one_line
from playhead.trace import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    import mcp_types
    from anyio.abc import TaskStatus

    from playhead.mcp.http import HttpServer
    from playhead.mcp.stdio import StdioServer

LONGEST: Final = 2000
"""Characters of what the server or the protocol's package says in an error."""

for _name in ("mcp", "client"):  # the package's own loggers: what servers send must not reach a terminal unescaped
    logging.getLogger(_name).addHandler(logging.NullHandler())


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
        self._thread: AbstractContextManager[BlockingPortal] = start_blocking_portal()
        self._portal: BlockingPortal | None = None
        self._client: Client | None = None
        self._broken: BaseException | None = None
        """What ended the connection before it was closed."""
        self._pid = os.getpid()

    def open(self) -> list[mcp_types.Tool]:
        """Start the server, or reach it, and return the tools that it lists; waits for it.

        Raises:
            ToolServerError: it cannot be started or reached, or is no MCP server.
        """
        self._portal = self._thread.__enter__()
        try:
            _, listed = self._portal.start_task(self._serve)
        except (Exception, CancelledError) as error:  # noqa: BLE001 - whatever the protocol's package raises
            raise ToolServerError(f"the MCP server {self.name} cannot be used: {self._why(first_of(error))}") from None
        return listed  # type: ignore[no-any-return]

    def close(self) -> None:
        """End the calls and the connection, and the server if it is a process of ours; waits for its end."""
        if self._portal is None or os.getpid() != self._pid:  # in the child of a fork the connection is its parent's
            return
        with suppress(RuntimeError):
            self._portal.call(self._portal.stop, True)  # noqa: FBT003 - with all that goes on in it
        self._thread.__exit__(None, None, None)

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """Return what the server answers; when this is cancelled, the server is told so.

        Raises:
            ToolServerError: there is no connection, or it ended, or the server answered with an error of the protocol.
        """
        if self._portal is None or os.getpid() != self._pid:
            raise self._error()
        done, in_loop = anyio.Event(), running_loop().call_soon_threadsafe

        def tell(_: object) -> None:
            with suppress(RuntimeError):  # the caller's loop has ended
                in_loop(done.set)

        try:
            asked = self._portal.start_task_soon(self._ask, tool, arguments)
        except RuntimeError:
            raise self._error() from None
        asked.add_done_callback(tell)
        try:
            await done.wait()
        finally:
            asked.cancel()
        try:
            return asked.result()  # type: ignore[no-any-return]
        except CancelledError:
            raise self._error() from None
        except Exception as error:  # noqa: BLE001 - whatever the protocol's package raises
            raise self._error(error) from None

    # --- in the connection's thread ------------------------------------------------------------------------------------

    async def _serve(self, *, task_status: TaskStatus[list[mcp_types.Tool]]) -> None:
        info = Implementation(name="playhead", version=VERSION)
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + self._start_timeout_s) as scope:
                # What a server asks of us (sampling, elicitation, roots) the client refuses.
                async with Client(self._server.connected(), client_info=info, cache=None) as self._client:
                    listed = await _listed(self._client)
                    scope.deadline = math.inf
                    task_status.started(listed)
                    await anyio.sleep_forever()
        except Exception as error:
            self._broken = first_of(error)
            raise
        raise TimeoutError(f"it did not answer as such a server within {self._start_timeout_s:g} s")

    async def _ask(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        assert self._client is not None  # noqa: S101 - it is open
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
        return await self._client.session.send_request(request, CallToolResult)

    def _error(self, error: BaseException | None = None) -> ToolServerError:
        """Return why there is no answer; nothing went wrong with a connection that was closed, or never opened."""
        error = self._broken or error
        if error is None:
            return ToolServerError(
                f"there is no connection to the MCP server {self.name}: runs have to be inside the `with` of mcp_tools"
            )
        if isinstance(error, MCPError) and error.code != CONNECTION_CLOSED:
            return ToolServerError(f"the MCP server {self.name} answered: {one_line(error.message, LONGEST)}")
        if isinstance(error, ValidationError):
            return ToolServerError(f"the MCP server {self.name} answered with what is no result: {self._why(error)}")
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
