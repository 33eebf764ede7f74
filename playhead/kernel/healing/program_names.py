"""Names of programs for the tools that do what they do: `bash` for `run_command`, `grep` for a search in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.kernel.healing.schema import required
from playhead.kernel.healing.words import singular, words

if TYPE_CHECKING:
    from playhead.trace.types import ToolSpec

_SHELLS: Final = frozenset(("bash", "shell", "sh", "terminal"))
_OF_SHELL: Final = _SHELLS | {"run", "execute", "exec", "command", "tool", "in"}
"""Words of which a name consists that asks for a shell."""
_RUNS: Final = frozenset(("run", "execute", "exec"))
"""Verbs of a tool that is one."""
_PROGRAMS: Final = {
    "cat": (frozenset(("read",)), frozenset(("text", "file", "content"))),
    "ls": (frozenset(("list",)), frozenset(("directory", "dir", "folder", "file", "content"))),
    "dir": (frozenset(("list",)), frozenset(("directory", "dir", "folder", "file", "content"))),
    "grep": (frozenset(("search", "grep", "find")), frozenset(("file", "content", "code", "text"))),
    "rg": (frozenset(("search", "grep", "find")), frozenset(("file", "content", "code", "text"))),
    "curl": (frozenset(("fetch",)), frozenset(("url", "page", "web", "webpage"))),
}
"""Programs that only look: the verbs of a tool that does the same, and what else its name may say."""
_INSIDE: Final = frozenset(("content", "text", "regex", "inside", "line"))
"""Words of a search that looks into files."""


def is_program_of(written: tuple[str, ...], spec: ToolSpec) -> bool:
    """Return whether a name is that of a program which does what the tool does, and nothing in the tool's name says where or for what.

    Of tools that change something only a shell, where what has to be given is a `command` and nothing else.
    """
    name = [*map(singular, words(spec.name))]
    if not name:
        return False
    is_shell = not _SHELLS.isdisjoint(written) and _OF_SHELL.issuperset(written)
    if is_shell and _OF_SHELL.issuperset(name) and (name[0] in _RUNS or not _SHELLS.isdisjoint(name)):
        return required(spec.parameters) in (["command"], ["cmd"]) and spec.risk in ("low", "medium")
    does = _PROGRAMS.get(written[0]) if len(written) == 1 and spec.read_only else None
    if does is None or name[0] not in does[0] or not does[1].issuperset(name[1:]):
        return False
    return written[0] not in ("grep", "rg") or not _INSIDE.isdisjoint(map(singular, words(spec.description[:200])))
