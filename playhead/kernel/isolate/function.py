"""`@tool(isolate=True)`: runs each call of the function in a separate process.

Arguments and result cross as JSON, in the form in which they are recorded. The process inherits environment variables, working
directory, `sys.path`, standard output, standard error, and the current span of the application's tracing. Its standard input is
empty. Other context variables and the program's memory do not reach it.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import pkgutil
import runpy
import sys
from math import inf
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import ToolDefinitionError
from playhead.kernel import isolate
from playhead.kernel.describe import describe, stack_of
from playhead.kernel.isolate.process import WorkerProcess, run_worker
from playhead.kernel.outcome import Outcome
from playhead.kernel.tools import Arguments, FunctionTool, name_of
from playhead.trace.values import scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playhead.kernel.session import ToolContext
    from playhead.trace.types import ToolSpec
    from playhead.trace.values import JsonValue


MAIN: Final = "__mp_main__"
"""The module name of the script in that process."""


class IsolatedTool(FunctionTool):
    """A function as a tool whose calls each run in a separate process."""

    def __init__(self, function: Callable[..., Any], spec: ToolSpec, arguments: Arguments) -> None:
        if arguments.context_parameter is not None:
            raise ToolDefinitionError(
                f"{name_of(function)}: isolate=True runs it in a process of its own, which the ToolContext of the parameter "
                f"{arguments.context_parameter} cannot reach; leave out the parameter, or isolate=True"
            )
        super().__init__(function, spec, arguments)
        self._home = home_of(function)

    async def execute(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome | None:
        """Run the function in a separate process and return its outcome after the process has ended; None if it timed out."""
        isolate.require_guard()
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
            "span": {} if context.session.run.spans is None else context.session.run.spans.carried(),
            "path": [os.fspath(entry) for entry in sys.path if isinstance(entry, (str, os.PathLike))],
        }
        worker, limit_s = WorkerProcess(), self.spec.timeout_s
        if not await run_worker(worker, request, context, inf if limit_s is None else limit_s, _no_calls):
            return None
        if worker.done is None:
            return Outcome.failure("ProcessDied", worker.why)
        if worker.done["ok"]:
            return Outcome(ok=True, result=worker.done["result"])
        return Outcome.failure(worker.done["type"], worker.done["message"], worker.done.get("stack"))


async def _no_calls(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - the signature for answering a worker's calls
    return {"ok": False}


def serve(request: dict[str, Any], _: object) -> dict[str, Any]:
    """Run the function in the call's process, and return its result or exception."""
    sys.argv = request["argv"]
    try:
        found = find(*request["home"])
    except BaseException as error:  # noqa: BLE001 - the module may raise anything
        why = f"the module of the tool cannot be loaded in its process: {type(error).__name__}: {error}"
        return {"ok": False, "type": "IsolationFailed", "message": why}
    function = found.function if isinstance(found, FunctionTool) else found
    if request["span"]:
        from playhead.spans.current import enter  # noqa: PLC0415 - for applications that trace

        enter(request["span"])
    try:
        value = function(**Arguments.of(function).read(request["arguments"]))
        if inspect.isawaitable(value):
            value = asyncio.run(_awaited(value))
    except BaseException as error:  # noqa: BLE001 - the process ends anyway
        return {"ok": False, "type": type(error).__name__, "message": scrub(describe(error)), "stack": stack_of(error)}
    return {"ok": True, "result": to_json(value)}


async def _awaited(value: Awaitable[Any]) -> Any:  # noqa: ANN401 - any result
    return await value


def home_of(function: Callable[..., Any]) -> tuple[str, str | None]:
    """Return the function's location as `module:qualified.name`, and the main module's file if the function is in it.

    Raises:
        ToolDefinitionError: another process could not find it.
    """
    why, main = "", sys.modules.get(function.__module__)
    spec, script = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    in_script = function.__module__ in {"__main__", MAIN} and (spec is None or spec.name == "__main__")
    if os.name != "posix" or getattr(sys, "frozen", False):
        why = "this program cannot start (POSIX and a Python interpreter are needed)"
    elif (
        not inspect.isfunction(function)
        or "<" in function.__qualname__  # <lambda>, <locals>
        or (in_script and (script is None or not Path(function.__code__.co_filename).is_file()))  # typed in
    ):
        why = "cannot find it: define it with `def`, in a file, at the top of a module"
    if why:
        name = getattr(function, "__qualname__", repr(function))
        raise ToolDefinitionError(f"{name}: isolate=True runs it in a process of its own, which {why}")
    module = function.__module__ if in_script or spec is None else spec.name
    return f"{module}:{function.__qualname__}", str(Path(str(script)).absolute()) if in_script else None


def find(name: str, script: str | None) -> Any:  # noqa: ANN401 - a function, or a tool
    """Return the object of this name, in the other process.

    The module is imported there again. The main script runs a second time, as when `multiprocessing` spawns a process: under
    another name, so that `if __name__ == "__main__":` does not hold.
    """
    isolate.is_finding = True
    if script is not None:
        main = ModuleType(MAIN)
        main.__dict__.update(runpy.run_path(script, run_name=MAIN))
        sys.modules["__main__"] = sys.modules[MAIN] = main
    found = pkgutil.resolve_name(name)
    isolate.is_finding = False  # an error here ends this process
    return found
