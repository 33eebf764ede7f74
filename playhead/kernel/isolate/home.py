"""Where another process finds a function: by its module and its name.

The module is imported there again. The program's main script runs a second time, as when `multiprocessing` spawns a process:
under another name, so that `if __name__ == "__main__":` does not hold.
"""

from __future__ import annotations

import inspect
import os
import pkgutil
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import ToolDefinitionError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

MAIN: Final = "__mp_main__"
"""What the script is called in that process."""
_loading = False


@dataclass(frozen=True, slots=True)
class Home:
    """Where a function is."""

    name: str
    """`module:qualified.name`."""
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
        if "<" in function.__qualname__:  # <lambda>, <locals>
            raise _unreachable(function, "is made inside of another function, or nameless: define it with `def`")
        name = f"{function.__module__}:{function.__qualname__}"
        if function.__module__ not in {"__main__", MAIN}:
            return Home(name)
        main = sys.modules[function.__module__]
        spec, script = getattr(main, "__spec__", None), getattr(main, "__file__", None)
        if spec is not None and spec.name != "__main__":
            return Home(name, run_as=spec.name)
        if script is None or not Path(function.__code__.co_filename).is_file():
            raise _unreachable(function, "was typed in, so there is no file to load it from: put it into a file")
        return Home(name, script=str(Path(script).absolute()))

    def find(self) -> Any:  # noqa: ANN401 - a function, or a tool
        """Return what the name leads to, in another process."""
        if self.script or self.run_as:
            self._run_main()
        return pkgutil.resolve_name(self.name)

    def holds(self, *things: object) -> bool:
        """Return whether the name leads to one of these things in this process."""
        try:
            found = pkgutil.resolve_name(self.name)
        except (ImportError, AttributeError):
            return False
        return any(found is thing for thing in things)

    def _run_main(self) -> None:
        import runpy  # noqa: PLC0415 - needed nowhere else

        global _loading  # noqa: PLW0603 - it is about the process
        _loading = True
        try:
            as_module = self.run_as and runpy.run_module(self.run_as, run_name=MAIN, alter_sys=True)
            names = as_module or runpy.run_path(str(self.script), run_name=MAIN)
        finally:
            _loading = False
        main = ModuleType(MAIN)
        main.__dict__.update(names)
        sys.modules["__main__"] = sys.modules[MAIN] = main


def require_guard() -> None:
    """Refuse to run an agent while the script is only looked through.

    Raises:
        UsageError: else each isolated call would begin the whole program anew.
    """
    if _loading:
        raise UsageError(
            "the script runs an agent while it is loaded to find an isolated tool in it: "
            'put what it does under `if __name__ == "__main__":`'
        )


def _unreachable(function: Any, why: str) -> ToolDefinitionError:  # noqa: ANN401 - what should be a function
    name = getattr(function, "__qualname__", repr(function))
    return ToolDefinitionError(
        f"{name}: isolate=True runs it in a process of its own, which finds it by its module and name; "
        f"it {why}, at the top of a module"
    )
