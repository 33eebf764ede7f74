# The public names, each with its home: what a type checker sees, and what `__init__.py` loads when it is first used.

from playhead.compose.killswitches.approval import require_approval_for as require_approval_for
from playhead.compose.killswitches.breaker import circuit_breaker as circuit_breaker
from playhead.compose.killswitches.budget import budget_limit as budget_limit
from playhead.compose.killswitches.clock import timeout_after as timeout_after
from playhead.compose.killswitches.clock import watchdog as watchdog
from playhead.compose.killswitches.files import kill_file as kill_file
from playhead.compose.killswitches.ledger import FREE as FREE
from playhead.compose.killswitches.ledger import Budget as Budget
from playhead.compose.killswitches.loop import max_iterations as max_iterations
from playhead.compose.killswitches.loop import stop_when as stop_when
from playhead.compose.killswitches.tool_calls import tool_limit as tool_limit
