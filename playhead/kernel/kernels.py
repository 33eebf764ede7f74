"""Kernels by name: the loops that strategies think and act with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.errors import UnknownStrategyError, UsageError, nearest
from playhead.kernel.hooks import PHASE_OF
from playhead.kernel.registering import check_async, check_new_name
from playhead.kernel.session import Kernel

if TYPE_CHECKING:
    from playhead.kernel.session import Session

REACT: Final = "react"
"""The name of the built-in kernel."""
_registry: dict[str, Kernel] = {}


def register_kernel(name: str, kernel: Kernel, *, replace: bool = False) -> None:
    """Make a kernel known under a name, for `Reactive(kernel=name)` and its like; an earlier one of yours is replaced.

    Args:
        name: what agents call it: letters, digits, `_` and `-`.
        kernel: an async function for each phase of the loop.
        replace: let it take the place of the built-in `react`, for every agent of this process.

    Raises:
        UsageError: the name is taken or cannot be one, or the kernel lacks a phase.
    """
    check_new_name("kernel", name, {"react": "react"}, replace=replace)
    _check_phases(name, kernel)
    _registry[name] = kernel


def _check_phases(name: str, kernel: Kernel) -> None:
    if not isinstance(kernel, Kernel):
        raise UsageError(f"the kernel {name!r} must be a Kernel(name, phases); it is {kernel!r}")
    missing = [phase for phase in PHASE_OF if phase not in kernel.phases]
    if missing:
        phases = f"phase{'s' * (len(missing) > 1)} {', '.join(missing)}"
        raise UsageError(f"the kernel {name!r} lacks the {phases}; `think`, `act` and `observe` are the usual ones")
    for phase, body in kernel.phases.items():
        if phase not in PHASE_OF:
            raise UsageError(f"the loop has no phase {phase!r}.{nearest(str(phase), PHASE_OF)}")
        check_async(f"the phase {phase} of the kernel {name!r}", body)


def get_kernel(name: str) -> Kernel:
    """Return a kernel.

    Raises:
        UnknownStrategyError: nothing is registered under this name.
    """
    if name in _registry:
        return _registry[name]
    if name != REACT:
        raise UnknownStrategyError(f"there is no kernel {name!r}.{nearest(name, list_kernels())}")
    from playhead.kernel import react  # noqa: PLC0415 - what only a run needs

    return react.REACT


def kernel_of(session: Session) -> Kernel:
    """Return the loop that the agent's strategy thinks and acts with; raises like `get_kernel`."""
    return get_kernel(session.header.kernel)


def checked_kernel(name: str) -> str:
    """Return the name of a kernel that is known; raises like `get_kernel`."""
    if not isinstance(name, str):
        raise UsageError(f"kernel is the name of a registered kernel (see register_kernel); it is {name!r}")
    if name != REACT:
        get_kernel(name)
    return name


def list_kernels() -> list[str]:
    """Return the names of all kernels, sorted."""
    return sorted({REACT, *_registry})
