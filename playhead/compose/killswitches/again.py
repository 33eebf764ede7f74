"""Killswitches that decide about calls, made again from what the header of a trace holds of them.

Not those about the model, time, money or files: a replay has other ones.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from playhead.compose.harness import Harness
from playhead.compose.killswitches.approval import require_approval_for
from playhead.compose.killswitches.breaker import circuit_breaker
from playhead.compose.killswitches.tool_calls import tool_limit
from playhead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from playhead.compose.harness import Block
    from playhead.kernel.guards import GuardMaker
    from playhead.trace.types import HookInfo

_AGAIN: Final[dict[str, Callable[[dict[str, Any]], Block]]] = {
    "tool_limit": lambda given: tool_limit(
        given.get("limits"), total=given.get("total"), on_trigger=given["on_trigger"]
    ),
    "circuit_breaker": lambda given: circuit_breaker(
        given["failures"], tools=given["only"], provider=False, on_trigger=given["on_trigger"]
    ),
    "require_approval_for": lambda given: require_approval_for(given["only"], on_trigger=given["on_trigger"]),
}


def is_made_again(info: HookInfo) -> bool:
    """Return whether this is a killswitch that `made_again` makes."""
    return info.role == "guard" and info.name in _AGAIN and info.settings is not None


def made_again(hooks: Iterable[HookInfo]) -> tuple[GuardMaker, ...]:
    """Return the killswitches among what an agent was composed with; approvers are not asked, but their answers served."""
    harness = Harness()
    for info in hooks:
        if is_made_again(info):
            with suppress(UsageError, KeyError, TypeError):  # a header that somebody else wrote
                harness.use(_AGAIN[info.name](dict(info.settings or {})))
    return harness.guards()
