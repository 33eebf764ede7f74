"""Repairs paths that do not exist, where exactly one file or folder below the working folder has the same ending.

Only texts with the format `file-path` or `directory-path` are repaired; the call may create any other path. The file system
is read through a recorded fact, so a replay is served the same answer.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from posixpath import dirname, normpath
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.repair.names import folded
from playhead.kernel.repair.schema import Check, Schema, TooCostlyError, options, properties

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    Change = Callable[[str, str], str | None]
    """Takes a path and its format, and returns another path, or None to keep it."""

FORMATS: Final = ("file-path", "directory-path")
MAX_ENTRIES: Final = 5000
"""Files and folders that are looked at; with more below the working folder no path is changed."""
_DECORATION: Final = re.compile(r"\A(?:file://|[A-Za-z]:(?=[/\\])|@)|(?::\d{1,6}){1,2}\Z")


def asks_for_paths(schema: Schema) -> bool:
    """Return whether some parameter names a file or folder that has to exist."""
    return any(f"'format': '{each}'" in repr(schema) for each in FORMATS)


def with_paths(schema: Schema, arguments: dict[str, Any], change: Change) -> dict[str, Any]:
    """Return arguments with the paths in them changed."""
    check = Check(schema)

    def changed(inner: object, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        for option in options(inner, schema):
            check.spend()
            if isinstance(value, str) and option.get("format") in FORMATS:
                return change(value, option["format"]) or value
            if isinstance(value, list) and "items" in option:
                value = [changed(option["items"], item) for item in value]
            elif isinstance(value, dict):
                known = properties(option)
                value = {name: changed(known.get(name, {}), item) for name, item in value.items()}
        return value

    try:
        return dict(changed(schema, arguments))
    except TooCostlyError:
        return arguments


def found_paths(schema: Schema, arguments: dict[str, Any]) -> dict[str, str]:
    """Return the missing paths of a call, each with the one that it means; reads the file system."""
    missing: dict[str, str] = {}

    def look(path: str, kind: str) -> None:
        if not os.path.exists(path):  # noqa: PTH110 - never raises
            missing[path] = kind

    with_paths(schema, arguments, look)
    entries = entries_below(Path.cwd()) if missing else {}
    meant = {path: meant_path(path, entries.get(kind, ())) for path, kind in missing.items()}
    return {path: found for path, found in meant.items() if found is not None}


def meant_path(written: str, entries: Collection[str]) -> str | None:
    """Return the one entry with the ending of a missing path, else None."""
    plain = normpath(_DECORATION.sub("", written.strip().strip("\"'`").replace("\\", "/")))
    parts = [part for part in plain.split("/") if part not in ("", ".", "..", "~")]
    is_outside = plain.startswith(("/", "..", "~"))
    if not parts:
        return None
    for form in (str, _folded) if not is_outside or len(parts) == 1 else ():
        if found := [each for each in entries if f"/{form(each)}".endswith(f"/{form('/'.join(parts))}")]:
            return found[0] if len(found) == 1 else None
    around = os.path.exists(dirname(plain)) if is_outside else any(each.split("/")[0] == parts[0] for each in entries)  # noqa: PTH110
    first = 0 if is_outside else 1  # without what was thought to be around the working folder
    for tail in ("/".join(parts[start:]) for start in range(first, 0 if around else len(parts) - first)):
        if tail in entries:
            return tail if sum(f"/{each}".endswith(f"/{tail}") for each in entries) == 1 else None
    return None


def entries_below(folder: Path) -> dict[str, list[str]]:
    """Return the files and folders below a folder by format, without following links; none where there are too many."""
    found: dict[str, list[str]] = {kind: [] for kind in FORMATS}
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if each[0] != "." and not Path(place, each).is_symlink())
        for kind, names in zip(FORMATS, (sorted(files), folders), strict=True):
            found[kind] += [Path(place, name).relative_to(folder).as_posix() for name in names]
        if sum(map(len, found.values())) > MAX_ENTRIES:
            return {}
    return found


def _folded(path: str) -> str:
    return "/".join(map(folded, path.split("/")))
