"""How often each tool was called: what the task requires of it, and what it may use up.

A required tool counts by the results that it returned, a budget by the calls that were let through to it. The budget is
the kernel's soft one: one call more is refused and the run goes on; `tool_limit` of the killswitches ends it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from playhead.trace.events import ErrorInfo

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from playhead.kernel.state import PlannedCall
    from playhead.trace.events import ToolCallCompleted
    from playhead.trace.types import AgentHeader

SPARE_CALLS: Final = 2
"""Calls that a required tool has beyond those that are required, where calls may run beside each other."""
OVER_BUDGET: Final = "OverBudget"
"""Type of the error of a call that was refused because its tool has no calls left."""


class Tally:
    """Counts the calls of one agent."""

    def __init__(self, header: AgentHeader) -> None:
        self.required = {name: header.required_calls.get(name, 1) for name in header.required_tools}
        """Results that each tool has to return before the run may end by itself."""
        self.budgets = dict(header.tool_budgets)
        """Calls that each tool has."""
        self.succeeded: Counter[str] = Counter()
        """Results that each tool has returned."""
        self.started: Counter[str] = Counter()
        """Calls of tools with a budget that were let through."""
        self._ended: Counter[str] = Counter()
        self._refusals: dict[str, ErrorInfo | None] = {}

    def require(self, calls: Mapping[str, int], *, with_budgets: bool) -> None:
        """Require more, as the model itself found that the task does."""
        for name, least in calls.items():
            self.required[name] = max(least, self.required.get(name, 0))
            if with_budgets:
                self.budgets.setdefault(name, self.required[name] + SPARE_CALLS)

    def missing(self, used: Collection[str]) -> list[str]:
        """Return the required tools that have returned too few results; `used` are those that have returned any."""
        return [
            name
            for name, least in self.required.items()
            if name not in used or (least > 1 and self.succeeded[name] < least)
        ]

    def label(self, name: str) -> str:
        """Return a required tool with the results that it still has to return, where that is more than one."""
        more = self.required.get(name, 1) - self.succeeded[name]
        return f"{name} ({more} more times)" if more > 1 else name

    def left(self, name: str) -> int | None:
        """Return the calls that a tool has left; None without a budget."""
        budget = self.budgets.get(name)
        return None if budget is None else max(budget - self.started[name], 0)

    def exhausted(self) -> bool:
        """Return whether there are budgets, and nothing is left of any."""
        return bool(self.budgets) and not any(map(self.left, self.budgets))

    def refusal(self, planned: PlannedCall) -> ErrorInfo | None:
        """Return why a call may not run; asked again it says the same.

        A tool that has not returned what the task requires of it is never refused, as far as can be told before the calls
        that run now have ended: what they bring is taken as good.
        """
        name, call_id = planned.call.name, planned.call.id
        if name not in self.budgets or planned.source == "tool":
            return None
        if call_id not in self._refusals:
            self._refusals[call_id] = self._refused(name)
            if self._refusals[call_id] is None:
                self.started[name] += 1
        return self._refusals[call_id]

    def count(self, completed: ToolCallCompleted) -> ToolCallCompleted:
        """Count a call that is over, and return it."""
        name = completed.tool
        self.succeeded[name] += completed.ok
        if name in self.budgets and self._refusals.get(completed.call_id, completed) is None:
            if completed.ended == "refused":  # its arguments did not fit, or somebody said no: nothing was used up
                self.started[name] -= 1
            else:
                self._ended[name] += 1
        return completed

    def _refused(self, name: str) -> ErrorInfo | None:
        running = self.started[name] - self._ended[name]
        if self.left(name) or self.succeeded[name] + running < self.required.get(name, 0):
            return None
        budget = self.budgets[name]
        calls = "one call is" if budget == 1 else f"{budget} calls are"
        return ErrorInfo(type=OVER_BUDGET, message=f"{name} was not called: its {calls} used up")
