"""The names that strategies and kernels of the user's are made of."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import playhead.kernel as room


def test_the_names_have_homes() -> None:
    """What is loaded when it is first used, the list of names, and what a type checker sees are the same."""
    tree = ast.parse(Path(str(room.__file__)).read_text())
    shown = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.name: node.module for node in shown.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed == room._HOMES
    assert room.__all__ == sorted(typed)


@pytest.mark.parametrize("name", room.__all__)
def test_every_name_can_be_imported(name: str) -> None:
    """Each is what its home holds, and says what it is."""
    value = getattr(room, name)
    assert value is getattr(import_module(room._HOMES[name]), name)
    assert value.__doc__


def test_an_unknown_name() -> None:
    """What is not there is an error that says so."""
    with pytest.raises(AttributeError, match=r"^module 'playhead.kernel' has no attribute 'Kernels'$"):
        getattr(room, "Kernels")  # noqa: B009 - a type checker knows that there is no such name


def test_the_room_costs_nothing() -> None:
    """Importing it loads nothing of what it names."""
    program = "import sys, playhead.kernel; print('pydantic' in sys.modules, 'playhead.kernel.loop' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False", "False"]
