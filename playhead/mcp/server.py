"""`mcp_tools`: a server and its tools for the duration of a `with` block."""

from __future__ import annotations

import atexit
import os
import shlex
from typing import TYPE_CHECKING, Any

import anyio
from pydantic import ValidationError

from playhead.errors import MissingDependencyError, UsageError, first_problem
from playhead.kernel.lifecycle.bodies import run_in_thread
from playhead.kernel.tool_decorator import DEFAULT_TIMEOUT_S
from playhead.mcp.choices import Choices, shown_url

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from playhead.mcp.connection import Connection
    from playhead.mcp.tools import McpTool


class McpServer:
    """A server and its tools, for `with` and `async with`; the value of the block is the list of tools.

    The connection has its own thread, so several agents may use the tools at once, with `run` and `run_sync`. Leaving the
    block ends a server that it started, with the server's whole process group.
    """

    def __init__(self, choices: Choices) -> None:
        """Describe it; nothing starts before the block is entered."""
        self._choices = choices
        self._connection: Connection | None = None

    def __enter__(self) -> list[McpTool]:
        """Start or reach the server and return its tools.

        Raises:
            ToolServerError: it cannot be started or reached, or does not answer as an MCP server.
            ToolDefinitionError: a named tool does not exist, or a tool cannot be offered.
        """
        from playhead.mcp.connection import Connection  # noqa: PLC0415 - with the protocol's package
        from playhead.mcp.tools import define_all  # noqa: PLC0415 - the same

        if self._connection is not None:
            raise UsageError("this mcp_tools(…) is open already; call mcp_tools again for another connection")
        self._connection = connection = Connection(self._choices)
        atexit.register(self.__exit__)
        try:
            return define_all(connection, connection.open(), self._choices)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        """End the connection and wait until the server has ended."""
        connection, self._connection = self._connection, None
        atexit.unregister(self.__exit__)
        if connection is not None:
            connection.close()

    async def __aenter__(self) -> list[McpTool]:
        """Do the same without blocking the loop. If this is cancelled while a server starts, the server is ended once it has started."""
        return await run_in_thread(self.__enter__, lambda _: self.__exit__())  # type: ignore[no-any-return]

    async def __aexit__(self, *_: object) -> None:
        """End the connection and wait until the server has ended, also when cancelled."""
        with anyio.CancelScope(shield=True):
            await run_in_thread(self.__exit__)


def mcp_tools(  # noqa: PLR0913 - all are keywords
    *,
    command: Sequence[str] | str | None = None,
    url: str | None = None,
    names: Sequence[str] | None = None,
    prefix: str = "",
    read_only: Collection[str] | bool = (),
    trust_annotations: bool = False,
    requires_approval: Collection[str] | bool = (),
    untrusted: Collection[str] | bool = (),
    timeout_s: float | None = DEFAULT_TIMEOUT_S,
    start_timeout_s: float = 30.0,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    headers: Mapping[str, str] | None = None,
) -> McpServer:
    """Return an MCP server whose tools an agent can use inside `with` or `async with`.

    Names in `names`, `read_only`, `requires_approval` and `untrusted` are the server's own, without the prefix.

    Args:
        command: the program to start and its arguments, spoken to over stdio; POSIX only. A text is split as a shell would.
        url: the address of a server that runs already, spoken to by streamable HTTP.
        names: the tools to offer; all by default.
        prefix: put before every tool's name, so that tools of several servers differ.
        read_only: tools that you know to have no side effects; True for all. Only these run in parallel, and only these
            may run live in a replay. All other tools count as having side effects, even if the server denies it.
        trust_annotations: believe the server's `readOnlyHint`, too.
        requires_approval: tools that run only after the agent's approver approved exactly these arguments; True for all.
        untrusted: tools whose results may contain text from untrusted sources; True for all. The model sees the results as
            data, between marks.
        timeout_s: seconds one call may take, None for no limit. Then the server is told to stop.
        start_timeout_s: seconds the server may take to start and list its tools.
        env: variables for the program, in addition to PATH, HOME and the few others that it always gets. Values of
            variables with a secret's name (`…_API_KEY`, `…_TOKEN`, `…SECRET…`) are redacted everywhere in a trace.
        cwd: the program's working directory.
        headers: headers of every HTTP request, such as `Authorization`; redacted in the same way.

    Raises:
        MissingDependencyError: the `mcp` package is not installed.
        UsageError: an argument is not valid.
    """
    choices = _read(dict(locals()))
    if (command is None) == (url is None):
        raise UsageError("mcp_tools needs a command= to start a server, or the url= of one: give one of the two")
    if (headers if url is None else env if cwd is None else cwd) is not None:
        raise UsageError("headers= are for a server at a url=; env= and cwd= are for a command=, which starts one")
    if command is not None and os.name != "posix":
        raise UsageError("a command= needs POSIX: on Windows start the server yourself and give its url=")
    if url is not None:
        shown_url(url)
    try:
        import mcp.client.stdio  # noqa: F401, PLC0415 - checks that it is installed
    except ImportError as error:
        raise MissingDependencyError(
            f"MCP servers need the package mcp 2.3 or newer ({error}); the fix: pip install 'playhead[mcp]'"
        ) from error
    return McpServer(choices)


def _read(given: dict[str, Any]) -> Choices:
    """Return the checked arguments of `mcp_tools`."""
    command = given["command"]
    try:
        given["command"] = tuple(shlex.split(command)) if isinstance(command, str) else command
    except ValueError as error:
        raise UsageError(f"command {command!r} is not a command line: {error}") from None
    try:
        return Choices(**given)
    except ValidationError as error:
        raise UsageError(f"mcp_tools: {first_problem(error)}") from None
