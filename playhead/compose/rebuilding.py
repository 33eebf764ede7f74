"""Rebuilds killswitches and policies from the header of a trace.

Only the killswitches that decide about calls or count turns are rebuilt. The others depend on the model, time, money or files, which
differ in a replay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.compose import killswitches
from playhead.compose.harness import Harness
from playhead.compose.policies import answers, calls, loops, searching, switching
from playhead.compose.runtime import ComposedHooks
from playhead.errors import NotReplayableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from playhead.compose.harness import Block
    from playhead.kernel.session import Hooks
    from playhead.trace.header import HookInfo

_BUILDERS: Final[dict[str, dict[str, Callable[..., Block]]]] = {
    "policy": {
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
    },
    "guard": {
        "tool_limit": killswitches.tool_limit,
        "circuit_breaker": lambda **given: killswitches.circuit_breaker(**{**given, "provider": False}),
        "require_approval_for": killswitches.require_approval_for,
    },
    "before": {"max_iterations": killswitches.max_iterations},
}
"""Functions that rebuild blocks from their settings, by role and name in the header."""


def can_rebuild(info: HookInfo) -> bool:
    """Return whether `rebuilt` can rebuild this killswitch or policy."""
    return info.name in _BUILDERS.get(info.role, ()) and info.settings is not None


def rebuilt(hooks: Iterable[HookInfo]) -> Harness:
    """Return the blocks of a recorded agent, as far as they are data; the caller's functions give their recorded answers.

    Raises:
        NotReplayableError: the header's settings are not understood; another program or version wrote it.
    """
    harness = Harness()
    for info in hooks:
        if can_rebuild(info) or info.role == "policy":
            harness.use(rebuild(info))
    return harness


def rebuild(info: HookInfo) -> Block:
    """Return the killswitch or policy that a header describes; raises as `rebuilt`."""
    try:
        return _BUILDERS[info.role][info.name](**(info.settings or {}))
    except (UsageError, KeyError, TypeError) as error:
        raise NotReplayableError(f"{info.name} of the recorded agent cannot be rebuilt: {error!r}") from None


def joined(first: Hooks | None, policies: ComposedHooks | None, live: Hooks | None = None) -> Hooks | None:
    """Return the recorded outcomes of the caller's hooks, then the policies; `live` are the agent's own hooks."""
    if first is None or policies is None:
        return first or policies
    return ComposedHooks(policies.registrations, first=first, live=live)
