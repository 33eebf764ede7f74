"""Policies: blocks that say what an agent has to do, and when its answer holds. An agent without them pays nothing for them.

>>> agent = Agent(model, tools=[search], compose=[require_tools("search"), verify("loop")])  # doctest: +SKIP

Each is data in the trace's header, so a replay applies it again without the caller's code; of a caller's function in it the
recorded verdicts are served.
"""

from playhead.compose.policies.answers import done_when, min_iterations, output_retries, validate, verify
from playhead.compose.policies.base import Policy
from playhead.compose.policies.calls import require_tools, tool_budgets
from playhead.compose.policies.progress import detect_loops, novelty, switch_strategy

__all__ = [
    "Policy",
    "detect_loops",
    "done_when",
    "min_iterations",
    "novelty",
    "output_retries",
    "require_tools",
    "switch_strategy",
    "tool_budgets",
    "validate",
    "verify",
]
