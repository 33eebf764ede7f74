"""Code in a process of its own: calls of `@tool(isolate=True)`, and programs that a model wrote.

`process.py` is this program's side, `guardian.py` the child's; `function.py` and `program.py` are what the child does.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from playhead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

_is_finding = False


@contextmanager
def finding() -> Iterator[None]:
    """Mark this process as one that loads the caller's script to find an isolated tool in it."""
    global _is_finding  # noqa: PLW0603 - it is about the process
    _is_finding = True
    yield
    _is_finding = False


def require_guard() -> None:
    """Refuse to run an agent while the script is loaded to find a tool.

    Raises:
        UsageError: without this, each isolated call would begin the whole program anew.
    """
    if _is_finding:
        raise UsageError(
            "the script runs an agent while it is loaded to find an isolated tool in it: "
            'put what it does under `if __name__ == "__main__":`'
        )
