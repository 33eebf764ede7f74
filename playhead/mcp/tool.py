"""A tool whose body is a server's."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio

from playhead.errors import ToolServerError
from playhead.kernel.describe import describe
from playhead.kernel.outcome import Outcome
from playhead.mcp.definition import problem_of
from playhead.mcp.results import outcome_of
from playhead.trace.events import ErrorInfo
from playhead.trace.values import from_json

if TYPE_CHECKING:
    from playhead.kernel.session import ToolContext
    from playhead.mcp.connection import Connection
    from playhead.mcp.definition import Definition
    from playhead.trace.values import JsonValue


class McpTool:
    """A server's tool as a tool of an agent: recorded, limited and approved like any other."""

    def __init__(self, connection: Connection, definition: Definition) -> None:
        self._connection = connection
        self._definition = definition
        self.spec = definition.spec
        """Everything about the tool that is data."""
        self.listed_name = definition.listed
        """The server's own name for the tool."""
        self.server = connection.name
        """What the server is called in messages."""
        self.secrets = connection.secrets
        """What the server was given and nobody may record, by name."""

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | None:  # noqa: ARG002
        """Return what does not fit the server's schema."""
        problem = self._problem(from_json(arguments))
        if problem is None:
            return None
        known = ", ".join(self.spec.parameters["properties"]) or "none"
        message = f"the arguments do not fit {self.spec.name}: {problem}. Parameters: {known}"
        return ErrorInfo(type="InvalidArguments", message=message)

    def _problem(self, arguments: Any) -> str | None:  # noqa: ANN401 - JSON
        try:
            json.dumps(arguments, allow_nan=False, ensure_ascii=False).encode()
        except (ValueError, TypeError):
            return "they hold a number or a text that JSON has no form for"
        return problem_of(self._definition.arguments, arguments)

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:  # noqa: ARG002
        """Ask the server, within the time limit; whatever goes wrong is a failed call."""
        try:
            with anyio.move_on_after(self.spec.timeout_s):
                return outcome_of(await self._connection.call(self.listed_name, from_json(arguments)), self._definition)
        except ToolServerError as error:
            return Outcome.failure("ToolServerError", describe(error))
        message = (
            f"{self.spec.name} did not finish within {self.spec.timeout_s:g} s; the MCP server {self.server} was told to stop, "
            "and whether it did is not known"
        )
        return replace(Outcome.failure("Timeout", message), ended="timeout")
