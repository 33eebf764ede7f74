"""Killswitches: blocks that end a run. Any number may be stacked; the first to fire is recorded once, with its name.

>>> agent = Agent(model, compose=[budget_limit(max_tokens=50_000), timeout_after("5m")])  # doctest: +SKIP

The result says which one it was: `terminated_by` is its name, `terminated_source` is `killswitch:<name>`, and
`terminated_because` says what it found. What each of them guarantees, and what it cannot, is in docs/killswitches.
"""

from playhead.compose.killswitches.approval import require_approval_for
from playhead.compose.killswitches.breaker import circuit_breaker
from playhead.compose.killswitches.budget import FREE, budget_limit
from playhead.compose.killswitches.clock import timeout_after, watchdog
from playhead.compose.killswitches.files import kill_file
from playhead.compose.killswitches.ledger import Budget
from playhead.compose.killswitches.loop import max_iterations, stop_when
from playhead.compose.killswitches.tool_calls import tool_limit

__all__ = [
    "FREE",
    "Budget",
    "budget_limit",
    "circuit_breaker",
    "kill_file",
    "max_iterations",
    "require_approval_for",
    "stop_when",
    "timeout_after",
    "tool_limit",
    "watchdog",
]
