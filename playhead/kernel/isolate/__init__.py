"""Code in a process of its own: calls of `@tool(isolate=True)`, and programs that a model wrote.

`process.py` is this program's side, `guardian.py` the child's; `function.py` and `program.py` are what the child does.
"""

from playhead.errors import UsageError

is_finding = False
"""Whether this process loads the caller's script to find an isolated tool in it."""


def require_guard() -> None:
    """Refuse to run an agent while the script is loaded to find a tool.

    Raises:
        UsageError: without this, each isolated call would begin the whole program anew.
    """
    if is_finding:
        raise UsageError(
            "the script runs an agent while it is loaded to find an isolated tool in it: "
            'put what it does under `if __name__ == "__main__":`'
        )
