"""Killswitches and policies, made again from what the header of a trace holds of them.

Of killswitches those that decide about calls: the others are about the model, time, money or files, of which a replay has
other ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.compose.harness import Harness
from playhead.compose.killswitches.approval import require_approval_for
from playhead.compose.killswitches.breaker import circuit_breaker
from playhead.compose.killswitches.tool_calls import tool_limit
from playhead.compose.policies import answers, calls, loops, searching, switching
from playhead.compose.runtime import ComposedHooks
from playhead.errors import NotReplayableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from playhead.compose.harness import Block
    from playhead.kernel.session import Hooks
    from playhead.trace.types import HookInfo

_POLICIES: Final[dict[str, Callable[..., Block]]] = {
    "require_tools": calls.require_tools,
    "tool_budgets": calls.tool_budgets,
    "output_type": answers.of_form,
    "output_retries": answers.output_retries,
    "validate": answers.validate_by,
    "done_when": answers.done_by,
    "verify": answers.verify,
    "min_iterations": answers.min_iterations,
    "detect_loops": loops.detect_loops,
    "switch_strategy": switching.switch_strategy,
    "novelty": searching.novelty,
}
_GUARDS: Final[dict[str, Callable[[dict[str, Any]], Block]]] = {
    "tool_limit": lambda given: tool_limit(
        given.get("limits"), total=given.get("total"), on_trigger=given["on_trigger"]
    ),
    "circuit_breaker": lambda given: circuit_breaker(
        given["failures"], tools=given["only"], provider=False, on_trigger=given["on_trigger"]
    ),
    "require_approval_for": lambda given: require_approval_for(given["only"], on_trigger=given["on_trigger"]),
}
WITH_CODE: Final = frozenset({"output_type", "validate", "done_when"})
"""Policies that hold code of the caller's: made again they only know what it said when it was recorded."""


def is_made_again(info: HookInfo) -> bool:
    """Return whether this is a killswitch or policy that `made_again` makes."""
    return info.name in {"guard": _GUARDS, "policy": _POLICIES}.get(info.role, ()) and info.settings is not None


def made_again(hooks: Iterable[HookInfo]) -> Harness:
    """Return what an agent was composed with, as far as it is data; of the caller's functions in it answers are served.

    Raises:
        NotReplayableError: somebody else wrote the header, or another version: its settings are not understood.
    """
    harness = Harness()
    for info in hooks:
        if is_made_again(info) or info.role == "policy":
            harness.use(block_again(info))
    return harness


def block_again(info: HookInfo) -> Block:
    """Return the killswitch or policy that a header describes; raises as `made_again`."""
    try:
        given = dict(info.settings or {})
        return _POLICIES[info.name](**given) if info.role == "policy" else _GUARDS[info.name](given)
    except (UsageError, KeyError, TypeError) as error:
        raise NotReplayableError(f"{info.name} of the recorded agent cannot be made again: {error!r}") from None


def joined(first: Hooks | None, policies: ComposedHooks | None, live: Hooks | None = None) -> Hooks | None:
    """Return the recorded outcomes of the caller's hooks, then the policies; `live` are the agent's own hooks."""
    if first is None or policies is None:
        return first or policies
    return ComposedHooks(policies.registrations, first=first, live=live)
