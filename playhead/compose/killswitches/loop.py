"""Killswitches that are checked between the phases of the loop."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from playhead.compose.killswitches.trigger import OnTrigger, checked_trigger, ending
from playhead.errors import UsageError
from playhead.kernel.checks import at_least
from playhead.kernel.describe import described
from playhead.kernel.hooks import LOOP_PHASES, Stop, Terminate
from playhead.kernel.tools import name_of

LONGEST: Final = 1000
"""The longest reason, in characters."""

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playhead.compose.contexts import PhaseContext
    from playhead.compose.harness import Block, Harness

    Predicate = Callable[[PhaseContext], "bool | str | Awaitable[bool | str | None] | None"]


def max_iterations(limit: int, *, on_trigger: OnTrigger = "stop") -> Block:
    """End the run before its turn number `limit` (counted from 0) begins: at most `limit` turns.

    Args:
        limit: the maximum number of turns, at least 0.
        on_trigger: `stop` keeps the best output and status `done`; `terminate` makes the run a failed one.

    Raises:
        UsageError: an argument is not valid.
    """
    at_least("max_iterations", limit, 0)
    answer = ending(checked_trigger(on_trigger))

    def check(context: PhaseContext) -> Stop | Terminate | None:
        if context.iteration is None or context.iteration < limit:
            return None
        return answer(f"{limit} turn{' is' if limit == 1 else 's are'} used", "max_iterations", "max_iterations")

    def block(harness: Harness) -> None:
        # Not for sub-agents: each has its own turns and its own limit.
        harness.switch("think", check, "max_iterations", {"limit": limit, "on_trigger": on_trigger})

    return block


def stop_when(predicate: Predicate, *, name: str = "stop_when", on_trigger: OnTrigger = "stop") -> Block:
    """End the run when your function returns a true value; it is called before every think, act and observe.

    Before `act`, `context.state.pending` holds the calls that are about to run. A predicate that raises or times out
    ends the run as failed, because a switch that cannot check must not let anything pass.

    Args:
        predicate: takes the `PhaseContext`; a true value ends the run, and a text gives the reason. Sync or async.
        name: the switch's name in traces and results.
        on_trigger: `stop` keeps the best output and status `done`; `terminate` makes the run a failed one.

    Raises:
        UsageError: an argument is not valid.
    """
    if not callable(predicate):
        raise UsageError(f"stop_when takes a function of the context; it is {predicate!r}")
    if not isinstance(name, str) or not name:
        raise UsageError(f"the name of a killswitch is text; it is {name!r}")
    answer = ending(checked_trigger(on_trigger))

    async def check(context: PhaseContext) -> Stop | Terminate | None:
        try:
            found: Any = predicate(context)
            if inspect.isawaitable(found):
                found = await found
            if not found:
                return None
        except Exception as error:  # noqa: BLE001 - a predicate that raises must not let the run continue
            return Terminate(f"the predicate raised {described(error)}", name, name)
        return answer(
            found[:LONGEST] if isinstance(found, str) else f"the predicate {name_of(predicate)} is true", name, name
        )

    def block(harness: Harness) -> None:
        for phase in LOOP_PHASES:
            harness.switch(phase, check, name, {"on_trigger": on_trigger}, required=True)

    return block
