"""Kernels by name: the loops that strategies think and act with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import UnknownStrategyError, nearest

if TYPE_CHECKING:
    from playhead.kernel.loop import Kernel

_registry: dict[str, Kernel] = {}


def register_kernel(name: str, kernel: Kernel) -> None:
    """Make a kernel known under a name, for `Agent(kernel=name)`; an earlier one of this name is replaced."""
    _registry[name] = kernel


def get_kernel(name: str) -> Kernel:
    """Return a kernel.

    Raises:
        UnknownStrategyError: nothing is registered under this name.
    """
    if name in _registry:
        return _registry[name]
    if name != "react":
        raise UnknownStrategyError(f"there is no kernel {name!r}.{nearest(name, list_kernels())}")
    from playhead.kernel.strategies.reactive import REACT  # noqa: PLC0415 - it runs on kernels that are found here

    return REACT


def checked_kernel(name: str) -> str:
    """Return the name of a kernel that is known; raises like `get_kernel`."""
    get_kernel(name)
    return name


def list_kernels() -> list[str]:
    """Return the names of all kernels, sorted."""
    return sorted({"react", *_registry})
