"""Runs code in a separate process: calls of `@tool(isolate=True)`, and programs written by a model.

`process.py` is this program's side, `guardian.py` the child's; `function.py` and `program.py` run in the child.
"""

from playhead.errors import UsageError

is_finding = False
"""Whether this process loads the caller's script to find an isolated tool in it."""


def require_guard() -> None:
    """Refuse to run an agent while the script is loaded to find a tool.

    Raises:
        UsageError: otherwise each isolated call would start the whole program again.
    """
    if is_finding:
        raise UsageError(
            "the script runs an agent while it is loaded to find an isolated tool in it: "
            'put the code that runs it under `if __name__ == "__main__":`'
        )
