"""Policies: blocks that state what an agent must do, and when its answer is accepted. Unused policies cost nothing.

>>> agent = Agent(model, tools=[search], compose=[require_tools("search"), verify("loop")])  # doctest: +SKIP

Each is data in the trace's header, so a replay makes it again without the caller's code; for a function in it, the replay
serves the recorded verdicts.
"""

from playhead.compose.policies.answers import Verdict, done_when, min_iterations, output_retries, validate, verify
from playhead.compose.policies.calls import require_tools, tool_budgets
from playhead.compose.policies.loops import LoopDetection, detect_loops
from playhead.compose.policies.searching import novelty
from playhead.compose.policies.switching import Switching, switch_strategy
from playhead.compose.registration import Policy

__all__ = [
    "LoopDetection",
    "Policy",
    "Switching",
    "Verdict",
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
