"""A killswitch for tools and providers that fail repeatedly."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from playhead.compose.killswitches.trigger import OnTrigger, Switch, checked_trigger, guard_block, names_of
from playhead.kernel.checks import at_least
from playhead.trace.events import LlmFailed, LlmResponded, ToolCallCompleted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.compose.harness import Block
    from playhead.kernel.hooks import Stop, Terminate
    from playhead.kernel.session import Session
    from playhead.trace.events import EventBase


def circuit_breaker(
    failures: int,
    *,
    tools: str | Sequence[str] = "*",
    provider: bool = True,
    on_trigger: OnTrigger = "stop",
) -> Block:
    """End the run when a tool, or the provider of a model, has failed this often in a row.

    A success of the same tool, or an answer of the same model, resets the count. Each attempt at a request counts,
    so retries are cut short. Calls that were refused (unknown tool, wrong arguments, no approval) are the model's
    failures and not the tool's. Sub-agents share the counts of this agent.

    Args:
        failures: how many in a row.
        tools: the name of a tool, or a list of names; `*` means every tool, each with its own count.
        provider: whether failed model requests count, too.
        on_trigger: `stop` keeps the best output and status `done`; `terminate` makes the run a failed one.

    Raises:
        UsageError: an argument is not valid; or, when a run starts, none of its agents has a tool of this name.
    """
    at_least("failures", failures, 1)
    names = names_of("circuit_breaker(tools=)", tools)
    trigger = checked_trigger(on_trigger)
    return guard_block(
        "circuit_breaker",
        lambda session: _CircuitBreaker(session, trigger, failures, names, provider),
        guarded=names,
        failures=failures,
        tools=names,
        provider=provider,
        on_trigger=trigger,
    )


@dataclass(eq=False)
class _CircuitBreaker(Switch):
    """Counts consecutive failures of each tool and each model."""

    name = "circuit_breaker"
    failures: int
    names: tuple[str, ...]
    provider: bool
    streaks: Counter[str] = field(default_factory=Counter)

    def heard(self, session: Session, event: EventBase) -> Stop | Terminate | None:
        if isinstance(event, ToolCallCompleted) and ("*" in self.names or event.tool in self.names):
            return self._count(f"the tool {event.tool}", event.ok, failed=event.tool_failed, why=_why(event))
        if self.provider and isinstance(event, (LlmResponded, LlmFailed)):
            failed = isinstance(event, LlmFailed) and not event.cancelled
            who = f"the model {session.header.model}"
            return self._count(who, isinstance(event, LlmResponded), failed=failed, why=_why(event))
        return None

    def _count(self, who: str, ok: bool, *, failed: bool, why: str) -> Stop | Terminate | None:  # noqa: FBT001
        if ok:
            self.streaks[who] = 0
        elif failed:
            self.streaks[who] += 1
            if self.streaks[who] >= self.failures:
                times = "once" if self.failures == 1 else f"{self.failures} times in a row"
                return self.answer(f"{who} failed {times}, at last with {why}")
        return None


def _why(event: ToolCallCompleted | LlmResponded | LlmFailed) -> str:
    return "" if isinstance(event, LlmResponded) or event.error is None else event.error.type
