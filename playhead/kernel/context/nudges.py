"""What the kernel says when searching on brings nothing: the calls are used up, or what came back was known."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState


def over_budget(tools: list[str], session: Session, state: KernelState) -> str:
    """Return the word to a model that called a tool which has no calls left."""
    calls = ", ".join(f"{name} ({session.tools.tally.budgets[name]})" for name in tools)
    return f"The calls of {calls} are used up, and no more will run. Work with the results you have: {_next(session, state)}."


def all_used_up(session: Session, state: KernelState) -> str:
    """Return the word after the last call that any budget allows: from here on there is only writing to do."""
    calls = ", ".join(f"{name} ({budget})" for name, budget in session.tools.tally.budgets.items())
    return f"You have made all the calls there are for {calls}. Put the results together: {_next(session, state)}."


def nothing_new(share: float, session: Session, state: KernelState) -> str:
    """Return the word after results that hold hardly a new word."""
    return (
        f"Only {share:.0%} of the words in the last results are new. Searching on brings nothing more: "
        f"{_next(session, state)}."
    )


def _next(session: Session, state: KernelState) -> str:
    missing = session.tools.tally.missing(state.tools_used)
    if missing:
        return f"call {', '.join(map(session.tools.tally.label, missing))} next"
    if "final-answer" in session.toolset and session.offers("final-answer"):
        return "give the answer with final-answer, or in plain text"
    return "give the answer in plain text"
