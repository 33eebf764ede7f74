"""Kernels by name: the loops that strategies think and act with."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from playhead.errors import UnknownStrategyError, UsageError, nearest
from playhead.kernel.hooks import PHASE_OF
from playhead.kernel.session import Kernel

if TYPE_CHECKING:
    from playhead.kernel.session import Session

REACT: Final = "react"
"""The name of the built-in kernel."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_registry: dict[str, Kernel] = {}


def check_new_name(kind: str, name: object, taken_by: str | None) -> None:
    """Refuse a name that cannot be one of a `kind` of things, or that says one of them already.

    Raises:
        UsageError: so it is.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot name a {kind}: letters, digits, '_' and '-', at most 64")
    if taken_by is not None:
        raise UsageError(
            f"{name!r} means the {kind} {taken_by!r}; choose another name, or replace that one everywhere: "
            f"register_{kind}(…, replace=True) with something called {taken_by!r}"
        )


def register_kernel(name: str, kernel: Kernel, *, replace: bool = False) -> None:
    """Make a kernel known under a name, for `Reactive(kernel=name)` and its like; an earlier one of yours is replaced.

    Args:
        name: what agents call it: letters, digits, `_` and `-`.
        kernel: an async function for each phase of the loop.
        replace: let it take the place of the built-in `react`, for every agent of this process.

    Raises:
        UsageError: the name is taken or cannot be one, or it is no kernel of these phases.
    """
    check_new_name("kernel", name, REACT if name == REACT and not replace else None)
    if not isinstance(kernel, Kernel) or kernel.phases.keys() != PHASE_OF.keys():
        known = ", ".join(PHASE_OF)
        raise UsageError(
            f"the kernel {name!r} must be a Kernel(name, phases) with the phases {known}; it is {kernel!r}"
        )
    _registry[name] = kernel


def get_kernel(name: str) -> Kernel:
    """Return a kernel.

    Raises:
        UnknownStrategyError: nothing is registered under this name.
    """
    if name in _registry:
        return _registry[name]
    if name != REACT:
        raise UnknownStrategyError(f"there is no kernel {name!r}.{nearest(name, {REACT, *_registry})}")
    from playhead.kernel import react  # noqa: PLC0415 - what only a run needs

    return react.REACT


def kernel_of(session: Session) -> Kernel:
    """Return the loop that the agent's strategy thinks and acts with; raises like `get_kernel`."""
    return get_kernel(session.header.kernel)


def checked_kernel(name: str) -> str:
    """Return the name of a kernel that is known; raises like `get_kernel`."""
    if name != REACT:
        get_kernel(name)
    return name
