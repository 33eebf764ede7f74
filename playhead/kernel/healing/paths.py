"""Last stage: paths that have to be there and are not, where one file or folder below the working folder can be meant.

Only for texts that the schema marks as `file-path` or `directory-path`; a `path` may be made, so it is left alone. The file
system is asked as a fact, so a replay is served the answer.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from posixpath import normpath
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.healing.alike import one_alike
from playhead.kernel.healing.schema import MAX_DEPTH, Schema, options, properties, resolved, type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

FORMATS: Final = ("file-path", "directory-path")
MAX_ENTRIES: Final = 5000
"""Files and folders that are looked at; with more below the working folder no path is changed."""
MAX_PATHS: Final = 20
"""Paths of one call that are looked for."""
_UNSEEN: Final = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache"}
)
_HOMES: Final = frozenset(
    [
        "workspace",
        "workspaces",
        "repo",
        "repository",
        "project",
        "projects",
        "app",
        "home",
        "user",
        "users",
        "work",
        "workdir",
        "code",
        "mnt",
        "content",
        "sandbox",
        "a",
        "b",
    ]
)
"""Folders that models take the working folder to be in, where they do not know."""

_SYSTEM: Final = frozenset(
    ["etc", "usr", "bin", "sbin", "var", "proc", "sys", "dev", "lib", "lib64", "boot", "run", "windows", "system32"]
)
"""Folders of the operating system: what is asked for there, from the root, is not in the working folder."""
_SERVICES: Final = frozenset(
    (("var", "lib"), ("var", "www"), ("var", "task"), ("var", "data"), ("var", "opt"), ("var", "folders"), ("var", "app"), ("usr", "src"))
)  # fmt: skip
"""Folders of the system in which programs that people run have their own files."""
_WORKING: Final = frozenset(("agent", "agents", "files", "data", "task", "tasks", "jobs", "session", "sessions", "storage", "uploads",
                             "documents", "www", "html", "site", "bot", "assistant", "src"))  # fmt: skip
"""Folders there in which an agent may work."""
_DRIVE: Final = re.compile(r"\A[A-Za-z]:/")
_LINE: Final = re.compile(r"(?::\d{1,6}){1,2}\Z")
MAX_LENGTH: Final = 1000


@dataclass(frozen=True, slots=True)
class Tree:
    """What stands below the working folder."""

    files: Collection[str]
    """Its files, relative, with `/`."""
    folders: Collection[str]
    """Its folders."""
    name: str = ""
    """The name of the working folder itself."""


def asks_for_paths(schema: Schema) -> bool:
    """Return whether some parameter names a file or folder that has to be there."""
    return _has_paths(schema, schema, 0)


def _has_paths(schema: object, root: Schema, depth: int) -> bool:
    if not isinstance(schema, dict) or depth > 6:  # noqa: PLR2004 - levels of a tool's schema
        return False
    schema = resolved(schema, root)
    inner = [*properties(schema).values(), schema.get("items"), *(schema.get("anyOf") or ())]
    return schema.get("format") in FORMATS or any(_has_paths(each, root, depth + 1) for each in inner)


def paths_in(schema: object, value: object, root: Schema, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield each text that names a file or a folder that has to be there, with its format."""
    if depth > MAX_DEPTH:
        return
    for option in options(resolved(schema, root), root):
        if isinstance(value, str) and option.get("format") in FORMATS:
            yield value, option["format"]
        elif isinstance(value, list):
            for item in value:
                yield from paths_in(option.get("items"), item, root, depth + 1)
        elif isinstance(value, dict):
            for name, item in value.items():
                if name in properties(option):
                    yield from paths_in(properties(option)[name], item, root, depth + 1)


def with_paths(schema: object, value: Any, changes: dict[str, str], root: Schema, depth: int = 0) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value with these paths in place of those."""
    if depth > MAX_DEPTH:
        return value
    for option in options(resolved(schema, root), root):
        if isinstance(value, str) and option.get("format") in FORMATS:
            return changes.get(value, value)
        if isinstance(value, list) and type_of(option) == "array":
            return [with_paths(option.get("items"), item, changes, root, depth + 1) for item in value]
        if isinstance(value, dict) and properties(option):
            known = properties(option)
            return {
                name: with_paths(known[name], item, changes, root, depth + 1) if name in known else item
                for name, item in value.items()
            }
    return value


def found_paths(schema: Schema, arguments: dict[str, Any], *, reads: bool = False) -> dict[str, str]:
    """Return the paths of a call that are not there, each with the one that can be meant; asks the file system.

    Where the tool only `reads`, that may be one whose name is alike.
    """
    asked = dict(paths_in(schema, arguments, schema))
    missing = {path: kind for path, kind in list(asked.items())[:MAX_PATHS] if not _is_there(path)}
    tree = tree_below(Path.cwd()) if missing else None
    found = {path: meant_path(path, kind, tree, reads=reads) for path, kind in missing.items()} if tree else {}
    return {path: meant for path, meant in found.items() if meant is not None}


def _is_there(path: str) -> bool:
    try:
        return "\0" in path or Path(path).exists()
    except (OSError, ValueError):
        return True  # nothing is known of it


def tree_below(folder: Path) -> Tree | None:
    """Return what stands below a folder, links not followed; None when it cannot be seen, or is too much."""
    files, folders, waiting = set[str](), set[str](), [("", folder)]
    while waiting:
        prefix, place = waiting.pop()
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.is_symlink() or entry.name in _UNSEEN:
                        continue
                    own = prefix + entry.name
                    if entry.is_dir(follow_symlinks=False):
                        folders.add(own)
                        waiting.append((f"{own}/", Path(entry.path)))
                    else:
                        files.add(own)
                    if len(files) + len(folders) > MAX_ENTRIES:
                        return None
        except OSError:
            return None
    return Tree(files, folders, folder.name)


def meant_path(written: str, kind: str, tree: Tree, *, reads: bool = False) -> str | None:
    """Return the one path of the tree that a path can mean which is not there, else None; for one that only `reads`, also one alike."""
    entries = tree.files if kind == "file-path" else tree.folders
    path = written.strip().strip("\"'`").removeprefix("file://").replace("\\", "/")
    path = _LINE.sub("", _DRIVE.sub("/", path)).removeprefix("@").removeprefix("$PWD/")
    if not path or len(path) > MAX_LENGTH:
        return None
    plain = normpath(path)
    if plain in entries:
        return plain if plain != normpath(written) else None
    parts = [part for part in plain.split("/") if part]
    outside = plain[0] in "/~" or parts[:1] == [".."]
    is_home = parts[:1] == ["~"]
    while parts and parts[0] in ("..", "~"):
        parts = parts[1:]
    if not parts or "." in parts or (outside and not is_home and _is_of_system(parts)):
        return None
    inside = _inside(parts, entries, tree, outside=outside)
    if inside is not None or (outside and len(parts) > 1):
        return inside
    return _one_below("/".join(parts), entries) or (one_alike(parts, entries) if reads and not outside else None)


def _is_of_system(parts: list[str]) -> bool:
    """Return whether a path from the root is one of the system's; not, where services have their files, below a working folder."""
    if parts[0].lower() not in _SYSTEM:
        return False
    is_of_service = tuple(parts[:2]) in _SERVICES and not {*map(str.lower, parts[1:-1])}.isdisjoint(_HOMES | _WORKING)
    return not is_of_service


def _inside(parts: list[str], entries: Collection[str], tree: Tree, *, outside: bool) -> str | None:
    """Return the path without the folders that the working folder was thought to be in.

    A single name behind unknown folders of the system is another file.
    """
    for place in range(0 if outside else 1, len(parts)):
        rest, before = "/".join(parts[place:]), parts[:place]
        if rest in entries:
            is_home = not before or before[-1] == tree.name or before[0].lower() in _HOMES
            is_elsewhere = outside or before[0] not in tree.folders
            return rest if is_home or (is_elsewhere and len(parts) - place > 1) else None
    return None


def _one_below(path: str, entries: Collection[str]) -> str | None:
    """Return the one entry that ends with this path; a name that is only alike is another one."""
    same: tuple[Callable[[str], str], ...] = (str, str.lower)
    for read in same:
        found = [each for each in entries if read(each) == read(path) or read(each).endswith("/" + read(path))]
        if found:
            return found[0] if len(found) == 1 else None
    return None
