"""Policies: blocks that state what an agent must do, and when its answer is accepted. Unused policies cost nothing.

>>> agent = Agent(model, tools=[search], compose=[require_tools("search"), verify("loop")])  # doctest: +SKIP

Each is data in the trace's header, so a replay applies it without the caller's code; for a function in it, the replay serves
the recorded verdicts.
"""

from playhead.compose.policies.answers import done_when, min_iterations, output_retries, validate, verify
from playhead.compose.policies.base import Policy
from playhead.compose.policies.calls import require_tools, tool_budgets
from playhead.compose.policies.progress import detect_loops, novelty, switch_strategy
from playhead.kernel.loop_detector import LoopDetection
from playhead.kernel.switching import Switching

__all__ = [
    "LoopDetection",
    "Policy",
    "Switching",
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
