"""Where another process finds a function: by its module and its name.

The module is imported there again. The program's main script runs a second time, as when `multiprocessing` spawns a process:
under another name, so that `if __name__ == "__main__":` does not hold.
"""

from __future__ import annotations

import inspect
import os
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import ToolDefinitionError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

MAIN: Final = "__mp_main__"
"""What the script is called in that process."""
_loading = False


def home_of(function: Callable[..., Any]) -> tuple[str, str | None]:
    """Return where the function is: `module:qualified.name`, and the file that is the main module, when it is in that.

    Raises:
        ToolDefinitionError: another process would not find it.
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
    """Return what the name leads to, in another process."""
    global _loading  # noqa: PLW0603 - it is about the process
    _loading = True
    try:
        if script is not None:
            import runpy  # noqa: PLC0415 - needed nowhere else

            main = ModuleType(MAIN)
            main.__dict__.update(runpy.run_path(script, run_name=MAIN))
            sys.modules["__main__"] = sys.modules[MAIN] = main
        return pkgutil.resolve_name(name)
    finally:
        _loading = False


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
