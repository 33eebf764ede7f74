"""The names that strategies and kernels of the user's are made of."""

from __future__ import annotations

import subprocess
import sys

import pytest

import playhead.kernel as room

NAMES: list[str] = vars(room)["__all__"]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_can_be_imported(name: str) -> None:
    """Each is there when it is first used, and says what it is."""
    assert getattr(room, name).__doc__


def test_an_unknown_name() -> None:
    """What is not there is an error that says so."""
    with pytest.raises(AttributeError, match=r"^module 'playhead.kernel' has no attribute 'Kernels'$"):
        getattr(room, "Kernels")  # noqa: B009 - a type checker knows that there is no such name


def test_the_room_costs_nothing() -> None:
    """Importing it loads nothing of what it names."""
    program = "import sys, playhead.kernel; print('pydantic' in sys.modules, 'playhead.kernel.loop' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False", "False"]
