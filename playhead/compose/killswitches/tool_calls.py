"""A killswitch that counts calls before they run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from playhead.compose.killswitches.trigger import Switch, checked_trigger, guard_block
from playhead.errors import UsageError
from playhead.kernel.checks import at_least
from playhead.kernel.hooks import Refuse
from playhead.trace.events import ToolCallCompleted

if TYPE_CHECKING:
    from playhead.compose.harness import Block
    from playhead.kernel.hooks import Stop, Terminate
    from playhead.kernel.session import Session
    from playhead.kernel.state import PlannedCall
    from playhead.trace.events import BudgetReserved, EventBase
    from playhead.trace.types import ToolSpec


def tool_limit(
    tool: str | Mapping[str, int] | None = None,
    calls: int | None = None,
    *,
    total: int | None = None,
    on_trigger: Literal["stop", "terminate", "refuse"] = "stop",
) -> Block:
    """End the run before a call that would exceed a tool's limit.

    Calls with valid arguments count, before their approval, in this agent and its sub-agents together, also when they
    run in parallel. A call counts even if a later switch does not let it run. The kernel's own tools (`final-answer`, …)
    do not count.

    Args:
        tool: a tool's name, or limits by name; `*` means every tool that is not named, each with its own limit.
        calls: the maximum number of calls of the tool.
        total: the maximum number of calls of all tools together.
        on_trigger: `stop` keeps the best output and status `done`; `terminate` makes the run a failed one; `refuse`
            lets it continue, and the model reads that the call did not run.

    Raises:
        UsageError: an argument is not valid; or, when a run starts, none of its agents has a tool of this name.
    """
    limits = _limits(tool, calls)
    if total is not None:
        at_least("total", total, 0)
    if not limits and total is None:
        raise UsageError("tool_limit takes a tool and its limit, tool_limit('search', 5), limits by name, or total=")
    trigger = checked_trigger(on_trigger, "refuse")
    return guard_block(
        "tool_limit",
        lambda session: _ToolLimit(session, trigger, limits, total),
        guarded=tuple(limits),
        tool=limits or None,
        total=total,
        on_trigger=trigger,
    )


def _limits(tool: object, calls: object) -> dict[str, int]:
    if tool is None and calls is None:
        return {}
    if isinstance(tool, Mapping) and calls is None:
        given = dict(tool)
    elif isinstance(tool, str) and calls is not None:
        given = {tool: calls}
    else:
        raise UsageError(f"tool_limit takes a tool's name and a number, or limits by name; it is {tool!r}, {calls!r}")
    for name, limit in given.items():
        if not isinstance(name, str):
            raise UsageError(f"tool_limit takes names of tools; it is {name!r}")
        at_least(f"the limit of {name}", limit, 0)
    return given


@dataclass(eq=False)
class _ToolLimit(Switch):
    name = "tool_limit"
    limits: Mapping[str, int]
    total: int | None
    calls: Counter[str] = field(default_factory=Counter)

    def admit_call(self, session: Session, planned: PlannedCall, spec: ToolSpec) -> Stop | Terminate | Refuse | None:  # noqa: ARG002
        why = self._reached(spec.name)
        if why is None:
            self.calls[spec.name] += 1  # in one step with the check, so that nothing else runs in between
            return None
        return Refuse(f"{spec.name} was not called: {why}") if self.on_trigger == "refuse" else self.answer(why)

    def recall(self, session: Session, event: EventBase, reserved: BudgetReserved | None) -> None:  # noqa: ARG002
        """Count a call that was allowed."""
        if not isinstance(event, ToolCallCompleted) or not event.end.admitted:
            return
        tool = session.toolset.get(event.tool)
        if tool is not None and tool.spec.kind != "meta":
            self.calls[event.tool] += 1

    def _reached(self, name: str) -> str | None:
        limit = self.limits.get(name, self.limits.get("*"))
        if limit is not None and self.calls[name] >= limit:
            return (
                f"{limit} call{' of' if limit == 1 else 's of'} {name} {'is' if limit == 1 else 'are'} all it may have"
            )
        if self.total is not None and self.calls.total() >= self.total:
            return f"{self.total} tool call{'' if self.total == 1 else 's'} are all there may be"
        return None
