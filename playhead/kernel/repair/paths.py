"""Repairs paths that do not exist, where exactly one file or folder below the working folder has the same ending.

Only parameters with the format `file-path` or `directory-path` are repaired; the call may create any other path. The file system
is read through a recorded fact, so a replay is served the same answer.
"""

from __future__ import annotations

import os
from pathlib import Path
from posixpath import normpath
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.repair.schema import Schema, options, properties

if TYPE_CHECKING:
    from collections.abc import Collection

FORMATS: Final = ("file-path", "directory-path")
MAX_ENTRIES: Final = 5000
"""Files and folders that are looked at; with more below the working folder no path is changed."""


def path_formats(schema: Schema) -> dict[str, str]:
    """Return the parameters that name a file or folder that has to exist, with their formats."""
    of_parameters = (
        (name, each.get("format")) for name, own in properties(schema).items() for each in options(own, schema)
    )
    return {name: kind for name, kind in of_parameters if kind in FORMATS}


def found_paths(schema: Schema, arguments: dict[str, Any]) -> dict[str, str]:
    """Return the missing paths of a call, each with the one that it means; reads the file system."""
    given = {
        arguments[name]: kind for name, kind in path_formats(schema).items() if isinstance(arguments.get(name), str)
    }
    missing = {path: kind for path, kind in given.items() if not os.path.exists(path)}  # noqa: PTH110 - never raises
    entries = entries_below(Path.cwd()) if missing else {}
    meant = {path: meant_path(path, entries.get(kind, ())) for path, kind in missing.items()}
    return {path: found for path, found in meant.items() if found is not None}


def meant_path(written: str, entries: Collection[str]) -> str | None:
    """Return the one entry with the ending of a missing path, else None."""
    plain = normpath(written.strip().replace("\\", "/"))
    parts = [part for part in plain.split("/") if part not in ("", ".", "..", "~")]
    if not parts or (plain.startswith(("/", "..", "~")) and len(parts) > 1):
        return None
    found = [each for each in entries if f"/{each}".endswith(f"/{'/'.join(parts)}")]
    return found[0] if len(found) == 1 else None


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
