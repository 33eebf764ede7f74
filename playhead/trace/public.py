"""Loads a package's public names on first use, so that importing the package costs next to nothing."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def public_names(package: str, stub: str) -> tuple[list[str], Callable[[str], object]]:
    """Return the names of a package, and its `__getattr__`.

    Args:
        package: its name.
        stub: the path of its stub file, which lists each name once with the module that defines it.
    """
    with open(stub, encoding="utf-8") as file:  # noqa: PTH123 - pathlib would be half of what the import costs
        homes = {name: home for home, name in re.findall(r"^from (\S+) import (\w+) as", file.read(), re.MULTILINE)}

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name, None) or import_module(f"{homes[name]}.{name}")
        setattr(sys.modules[package], name, value)
        return value

    return sorted(homes), load
