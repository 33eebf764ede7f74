"""No two files of a room import each other, directly or over others: each can be read, and tested, after those below it."""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import playhead

PACKAGE = Path(playhead.__file__).parent
ROOMS = ("agent", "cli", "compose", "diagnose", "importing", "kernel", "mcp", "replay", "spans", "trace")


IMPORT = re.compile(r"^\s*(?:from (playhead[\w.]*) import (\([^)]*\)|.+)|import (playhead[\w.]*))", re.MULTILINE)


def modules() -> dict[str, Path]:
    """Return every module of the package with its file."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = ("playhead", *path.relative_to(PACKAGE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path, known: dict[str, Path]) -> set[str]:
    """Return the modules of the package that a file imports anywhere: in functions and for the type checker, too."""
    found = set()
    for home, names, whole in IMPORT.findall(path.read_text(encoding="utf-8")):
        inside = {f"{home}.{name}" for name in re.findall(r"\w+", names)} & known.keys()
        found |= inside or {home or whole}
    return found & known.keys()


@pytest.mark.parametrize("room", ROOMS)
def test_no_circle(room: str):
    """The files of a room have an order in which each imports only those before it."""
    known = modules()
    below = {
        name: imported(path, known) - {name}
        for name, path in known.items()
        if name.startswith(f"playhead.{room}.") or name == f"playhead.{room}"
    }
    try:
        order = list(TopologicalSorter(below).static_order())
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))
    assert below.keys() <= set(order)
