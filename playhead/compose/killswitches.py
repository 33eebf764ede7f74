"""Killswitches: blocks that end a run. Any number may be stacked; the first to fire is recorded once, with its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from playhead.errors import UsageError
from playhead.kernel.hooks import Stop, Terminate

if TYPE_CHECKING:
    from playhead.compose.contexts import PhaseContext
    from playhead.compose.harness import Block, Harness

OnTrigger = Literal["stop", "terminate"]


def max_iterations(limit: int, *, on_trigger: OnTrigger = "stop") -> Block:
    """End the run before its turn number `limit` (counted from 0) begins: at most `limit` turns.

    Args:
        limit: turns of the loop, at least 0.
        on_trigger: `stop` keeps the best output and status `done`; `terminate` makes the run a failed one.

    Raises:
        UsageError: an argument is not valid.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise UsageError(f"max_iterations takes a whole number of turns, not below 0; it is {limit!r}")
    ending = _ending(on_trigger)

    def check(context: PhaseContext) -> Stop | Terminate | None:
        if context.iteration is None or context.iteration < limit:
            return None
        return ending(f"{limit} turn{' is' if limit == 1 else 's are'} used", "max_iterations", "max_iterations")

    def block(harness: Harness) -> None:
        # Not for agents below: each has turns of its own, and its own limit.
        harness.before("think", check, name="max_iterations", inherit=False)

    return block


def _ending(on_trigger: OnTrigger) -> type[Stop | Terminate]:
    endings: dict[str, type[Stop | Terminate]] = {"stop": Stop, "terminate": Terminate}
    if on_trigger not in tuple(endings):  # a tuple: it may be anything, also what has no hash
        raise UsageError(f"on_trigger is `stop` or `terminate`; it is {on_trigger!r}")
    return endings[on_trigger]
