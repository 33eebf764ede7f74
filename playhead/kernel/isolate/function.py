"""`@tool(isolate=True)`: each call of the function in a process of its own, and what that process does.

What crosses is JSON: the arguments as they are recorded, and the result as it is recorded. The function is found by its
module and name, so the module is imported again, a script as `__mp_main__`, as when `multiprocessing` spawns a process:
`if __name__ == "__main__":` does not hold. The process has this one's environment variables, working directory, `sys.path`,
standard output and error; its standard input is empty; context variables and what the program keeps in memory do not reach it.
"""

from __future__ import annotations

import inspect
import os
import sys
from dataclasses import asdict, dataclass
from importlib import import_module
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from playhead.errors import ToolDefinitionError
from playhead.kernel.arguments import Arguments, name_of
from playhead.kernel.describe import describe
from playhead.kernel.isolate.main_script import MAIN, require_guard, run_again
from playhead.kernel.isolate.process import WorkerProcess, run_worker
from playhead.kernel.lifecycle.threads import asyncio_loop
from playhead.kernel.outcome import Outcome
from playhead.kernel.tools import FunctionTool, LimitReachedError
from playhead.trace.values import scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playhead.kernel.session import ToolContext
    from playhead.trace.types import ToolSpec
    from playhead.trace.values import JsonValue


@dataclass(frozen=True, slots=True)
class Home:
    """Where another process finds a function."""

    module: str
    qualname: str
    script: str | None = None
    """The file that is the main module, when the function is in it."""
    run_as: str | None = None
    """The name of the main module, when it was started with `python -m`."""

    @staticmethod
    def of(function: Callable[..., Any]) -> Home:
        """Return where the function is.

        Raises:
            ToolDefinitionError: another process would not find it.
        """
        if os.name != "posix":
            raise ToolDefinitionError("isolate=True needs POSIX: process groups and signals; Windows has neither")
        if getattr(sys, "frozen", False):
            raise ToolDefinitionError("isolate=True needs a Python interpreter; a frozen program has none to start")
        if not inspect.isfunction(function):
            raise _unreachable(function, "is no plain function, so its name leads nowhere: wrap it in a function")
        home = Home(function.__module__, function.__qualname__)
        if "<" in home.qualname:  # <lambda>, <locals>
            raise _unreachable(function, "is made inside of another function, or nameless: define it with `def`")
        if home.module not in ("__main__", MAIN):
            return home
        main = sys.modules[home.module]
        spec, script = getattr(main, "__spec__", None), getattr(main, "__file__", None)
        if spec is not None and spec.name != "__main__":
            return Home(home.module, home.qualname, run_as=spec.name)
        if script is None or not Path(function.__code__.co_filename).is_file():
            raise _unreachable(function, "was typed in, so there is no file to load it from: put it into a file")
        return Home(home.module, home.qualname, script=str(Path(script).absolute()))

    def find(self) -> Any:  # noqa: ANN401 - a function, or a tool
        """Return what the name leads to, in another process."""
        found: Any = run_again(self.script, self.run_as) if self.script or self.run_as else import_module(self.module)
        for name in self.qualname.split("."):
            found = getattr(found, name)
        return found

    def holds(self, *things: object) -> bool:
        """Return whether the name leads to one of these things in this process."""
        found: Any = sys.modules.get(self.module)
        for name in self.qualname.split("."):
            found = getattr(found, name, None)
        return any(found is thing for thing in things)


def _unreachable(function: Any, why: str) -> ToolDefinitionError:  # noqa: ANN401 - what should be a function
    name = getattr(function, "__qualname__", repr(function))
    return ToolDefinitionError(
        f"{name}: isolate=True runs it in a process of its own, which finds it by its module and name; "
        f"it {why}, at the top of a module"
    )


class IsolatedTool(FunctionTool):
    """A function as a tool, each call of which has a process of its own."""

    def __init__(self, function: Callable[..., Any], spec: ToolSpec, arguments: Arguments) -> None:
        if arguments.context_parameter is not None:
            raise ToolDefinitionError(
                f"{name_of(function)}: isolate=True runs it in a process of its own, which the ToolContext of the parameter "
                f"{arguments.context_parameter} cannot reach; leave out the parameter, or isolate=True"
            )
        super().__init__(function, spec, arguments)
        self._home = Home.of(function)

    async def execute(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Run the function in a process of its own and return its outcome when that has ended."""
        require_guard()
        home = self._home
        if not home.holds(self, self.function):
            why = f"{home.module}:{home.qualname} is another object now, and its process would find that one"
            return Outcome.failure("IsolationFailed", f"{self.spec.name}: {why}; give each tool a name of its own")
        request = {
            "work": __name__,
            "home": asdict(home),
            "arguments": arguments,
            "argv": getattr(sys, "argv", [""]),
            "path": [os.fspath(entry) for entry in sys.path if isinstance(entry, (str, os.PathLike))],
            "backend": "trio" if asyncio_loop() is None else "asyncio",
        }
        worker, limit_s = WorkerProcess(request), self.spec.timeout_s
        if not await run_worker(worker, context, inf if limit_s is None else limit_s, _no_calls):
            raise LimitReachedError
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
        found = Home(**request["home"]).find()
    except BaseException as error:  # noqa: BLE001 - a module of the user's may raise anything
        why = f"the module of the tool cannot be loaded in its process: {type(error).__name__}: {error}"
        return {"ok": False, "type": "IsolationFailed", "message": why}
    function = found.function if isinstance(found, FunctionTool) else found
    try:
        value = function(**Arguments.of(function).bind(request["arguments"], None))
        if inspect.isawaitable(value):
            value = anyio.run(_awaited, value, backend=request["backend"])
    except BaseException as error:  # noqa: BLE001 - the process ends anyway
        return {"ok": False, "type": type(error).__name__, "message": scrub(describe(error))}
    return {"ok": True, "result": to_json(value)}


async def _awaited(value: Awaitable[Any]) -> Any:  # noqa: ANN401 - any result
    return await value
