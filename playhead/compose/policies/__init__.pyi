# The public names, each with its home: what a type checker sees, and what `__init__.py` loads when it is first used.

from playhead.compose.policies.answers import Verdict as Verdict
from playhead.compose.policies.answers import done_when as done_when
from playhead.compose.policies.answers import min_iterations as min_iterations
from playhead.compose.policies.answers import output_retries as output_retries
from playhead.compose.policies.answers import validate as validate
from playhead.compose.policies.answers import verify as verify
from playhead.compose.policies.calls import require_tools as require_tools
from playhead.compose.policies.calls import tool_budgets as tool_budgets
from playhead.compose.policies.loops import LoopDetection as LoopDetection
from playhead.compose.policies.loops import detect_loops as detect_loops
from playhead.compose.policies.searching import novelty as novelty
from playhead.compose.policies.switching import Switching as Switching
from playhead.compose.policies.switching import switch_strategy as switch_strategy
from playhead.compose.registration import Policy as Policy

__all__: list[str]  # noqa: PYI035 - `__init__.py` reads it from this file
