"""Names of programs for the tools that do what they do: `bash` for `run_command`, `grep` for `search_files`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.kernel.healing.schema import required
from playhead.kernel.healing.words import singular, words

if TYPE_CHECKING:
    from playhead.trace.types import ToolSpec

_SHELLS: Final = frozenset(("bash", "shell", "sh", "zsh", "terminal", "powershell", "console", "cmd"))
_OF_SHELL: Final = _SHELLS | {"run", "execute", "exec", "command", "local", "tool", "in"}
"""Words of which a name consists that asks for a shell."""
_RUNS: Final = frozenset(("command", "shell", "bash", "terminal", "exec"))
"""Words of a tool that is one."""
_PROGRAMS: Final = {
    "cat": ("read", "file"), "less": ("read", "file"), "more": ("read", "file"), "type": ("read", "file"), "ls": ("list",), "dir": ("list",),
    "grep": ("search",), "rg": ("search",), "ripgrep": ("search",), "find": ("search", "file"), "glob": ("search", "file"),
    "curl": ("fetch",), "wget": ("fetch",),
}  # fmt: skip
"""Programs that only look, and the words of a tool that does the same."""


def is_program_of(written: tuple[str, ...], spec: ToolSpec) -> bool:
    """Return whether a name is that of a program which does what the tool does.

    Of tools that change something only a shell, where what has to be given is a `command` and nothing else.
    """
    name = {*map(singular, words(spec.name))}
    is_shell = not _SHELLS.isdisjoint(written) and _OF_SHELL.issuperset(written)
    if is_shell and not _RUNS.isdisjoint(name) and required(spec.parameters) in (["command"], ["cmd"]):
        return True
    does = _PROGRAMS.get(written[0]) if len(written) == 1 else None
    return spec.read_only and does is not None and name.issuperset(does)
