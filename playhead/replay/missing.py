"""What becomes of a call that the recording has no answer to: stop, say so to the model, let a function answer, or run it.

A tool runs only where the caller says `live` of it by name, or of all tools and it is declared `read_only`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from playhead.errors import UsageError, nearest
from playhead.kernel.describe import describe, is_failure
from playhead.kernel.outcome import Outcome
from playhead.trace.values import JsonValue, to_json

if TYPE_CHECKING:
    from playhead.trace.types import ToolSpec

POLICIES: Final = ("strict", "lenient", "live")


@dataclass(frozen=True, slots=True)
class MissedCall:
    """A call that the recording has no answer to that holds now."""

    tool: str
    """The tool."""
    arguments: dict[str, Any]
    """What it is called with; a copy."""
    owner: str
    """The agent that calls it, in the replay."""
    iteration: int | None
    """Turn of that agent's loop, from 0."""
    position: int
    """Place of the call in its turn, from 0."""
    why: str
    """Why nothing recorded answers it, with the nearest recorded call."""
    stale: JsonValue = None
    """What was recorded for the same call in another state of the world, when that is why."""


Simulate: TypeAlias = "Callable[[MissedCall], Any | Awaitable[Any]]"
Policy: TypeAlias = "str | Simulate"
OnMissing: TypeAlias = "Policy | Mapping[str, Policy]"


def checked_policy(on_missing: Any, *, has_code: bool) -> OnMissing:  # noqa: ANN401 - checked here
    """Return the policy, or the policies by tool.

    Raises:
        UsageError: there is no such policy, or tools are to run and their code was not given.
    """
    by_tool = dict(on_missing) if isinstance(on_missing, Mapping) else {"": on_missing}
    for policy in by_tool.values():
        if callable(policy):
            continue
        if policy not in POLICIES:
            raise UsageError(
                f"there is no on_missing={policy!r}.{nearest(str(policy), POLICIES)} Or give a function that answers"
            )
        if policy == "live" and not has_code:
            raise UsageError(
                "on_missing: `live` runs the tools' own code, which a recording does not hold; give agent="
            )
    return by_tool if isinstance(on_missing, Mapping) else on_missing


def policy_of(on_missing: OnMissing, spec: ToolSpec) -> Policy:
    """Return what becomes of calls of a tool; of tools that are not named `strict` holds."""
    named = isinstance(on_missing, Mapping)
    policy = on_missing.get(spec.name, "strict") if isinstance(on_missing, Mapping) else on_missing
    may_run = spec.kind == "function" and (named or spec.read_only)
    return "strict" if policy == "live" and not may_run else policy


def no_recording(why: str) -> Outcome:
    """Return what the model is told under `lenient`."""
    return replace(Outcome.failure("NoRecording", f"no recording: {why}"), rung="synthetic-error")


async def simulated(simulate: Policy, missed: MissedCall) -> Outcome:
    """Return what the function answers; what it raises is a failed call, and a `ReplayError` stops the replay."""
    assert callable(simulate)  # noqa: S101 - else nothing would be simulated
    try:
        value = simulate(missed)
        if isinstance(value, Awaitable):
            value = await value
    except BaseException as error:
        if not is_failure(error):
            raise
        return replace(Outcome.failure(type(error).__name__, describe(error)), rung="simulated")
    return Outcome(ok=True, result=to_json(value), rung="simulated")
