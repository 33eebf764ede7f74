"""How far a task is, by what was called: nothing here guesses from names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState

TaskPhase = Literal["gather", "produce", "synthesize", "verify"]


def task_phase(session: Session, state: KernelState) -> TaskPhase:
    """Return how far the task is.

    `gather`: a required tool that reads has not been called enough; `produce`: only ones with side effects are missing;
    `synthesize`: nothing is missing; `verify`: there is an output.
    """
    if state.output is not None:
        return "verify"
    missing = session.tools.tally.missing(state.tools_used)
    if not missing:
        return "synthesize"
    reads = (name for name in missing if name in session.toolset and session.toolset[name].spec.read_only)
    return "gather" if any(reads) else "produce"
