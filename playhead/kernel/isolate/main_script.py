"""The program's main script, run a second time by a process that looks for a tool in it.

As when `multiprocessing` spawns a process, it runs under another name, so that `if __name__ == "__main__":` does not hold.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Final

from playhead.errors import UsageError

MAIN: Final = "__mp_main__"
"""What the script is called in that process."""
_loading = False


def run_again(script: str | None, run_as: str | None) -> ModuleType:
    """Run the script, or the module that was started with `python -m`, and return it as a module."""
    import runpy  # noqa: PLC0415 - needed nowhere else

    global _loading  # noqa: PLW0603 - it is about the process
    _loading = True
    try:
        names = runpy.run_module(run_as, None, MAIN, True) if run_as else runpy.run_path(str(script), None, MAIN)  # noqa: FBT003
    finally:
        _loading = False
    main = ModuleType(MAIN)
    main.__dict__.update(names)
    sys.modules["__main__"] = sys.modules[MAIN] = main
    return main


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
