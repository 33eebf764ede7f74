"""`@tool(isolate=True)`: each call of the function in a process of its own, and what that process does.

What crosses is JSON: the arguments as they are recorded, and the result as it is recorded. The process has this one's
environment variables, working directory, `sys.path`, standard output and error; its standard input is empty; context variables
and what the program keeps in memory do not reach it.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import pkgutil
import sys
from math import inf
from typing import TYPE_CHECKING, Any

from playhead.errors import ToolDefinitionError
from playhead.kernel.describe import describe
from playhead.kernel.isolate.home import find, home_of, require_guard
from playhead.kernel.isolate.process import WorkerProcess, run_worker
from playhead.kernel.outcome import Outcome
from playhead.kernel.tools import Arguments, FunctionTool, name_of
from playhead.trace.values import scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playhead.kernel.session import ToolContext
    from playhead.trace.types import ToolSpec
    from playhead.trace.values import JsonValue


class IsolatedTool(FunctionTool):
    """A function as a tool, each call of which has a process of its own."""

    def __init__(self, function: Callable[..., Any], spec: ToolSpec, arguments: Arguments) -> None:
        if arguments.context_parameter is not None:
            raise ToolDefinitionError(
                f"{name_of(function)}: isolate=True runs it in a process of its own, which the ToolContext of the parameter "
                f"{arguments.context_parameter} cannot reach; leave out the parameter, or isolate=True"
            )
        super().__init__(function, spec, arguments)
        self._home = home_of(function)

    async def execute(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome | None:
        """Run the function in a process of its own and return its outcome when that has ended; None when its time was up first."""
        require_guard()
        function = self.function
        try:
            found = pkgutil.resolve_name(f"{function.__module__}:{function.__qualname__}")
        except (ImportError, AttributeError):
            found = None
        if found is not self and found is not function:
            why = f"{self._home[0]} is another object now, and its process would find that one"
            return Outcome.failure("IsolationFailed", f"{self.spec.name}: {why}; give each tool a name of its own")
        request = {
            "work": __name__,
            "home": self._home,
            "arguments": arguments,
            "argv": getattr(sys, "argv", [""]),
            "path": [os.fspath(entry) for entry in sys.path if isinstance(entry, (str, os.PathLike))],
        }
        worker, limit_s = WorkerProcess(), self.spec.timeout_s
        if not await run_worker(worker, request, context, inf if limit_s is None else limit_s, _no_calls):
            return None
        if worker.done is None:
            return Outcome.failure("ProcessDied", worker.why)
        if worker.done["ok"]:
            return Outcome(ok=True, result=worker.done["result"])
        return Outcome.failure(worker.done["type"], worker.done["message"])


async def _no_calls(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - as a worker's calls are answered
    return {"ok": False}


def serve(request: dict[str, Any], _: object) -> dict[str, Any]:
    """Run the function, whatever it raises; in the process of the call."""
    sys.argv = request["argv"]
    try:
        found = find(*request["home"])
    except BaseException as error:  # noqa: BLE001 - a module of the user's may raise anything
        why = f"the module of the tool cannot be loaded in its process: {type(error).__name__}: {error}"
        return {"ok": False, "type": "IsolationFailed", "message": why}
    function = found.function if isinstance(found, FunctionTool) else found
    try:
        value = function(**Arguments.of(function).read(request["arguments"]))
        if inspect.isawaitable(value):
            value = asyncio.run(_awaited(value))
    except BaseException as error:  # noqa: BLE001 - the process ends anyway
        return {"ok": False, "type": type(error).__name__, "message": scrub(describe(error))}
    return {"ok": True, "result": to_json(value)}


async def _awaited(value: Awaitable[Any]) -> Any:  # noqa: ANN401 - any result
    return await value
