"""What becomes of a call that the recording has no answer to: stop, say so to the model, or let a function answer.

None of them runs anything that was recorded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from playhead.errors import UsageError, nearest
from playhead.kernel.describe import describe, is_failure
from playhead.kernel.tools import Outcome
from playhead.trace.values import JsonValue, to_json

POLICIES: Final = ("strict", "lenient")


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
OnMissing: TypeAlias = "str | Simulate"


def checked_policy(on_missing: Any) -> OnMissing:  # noqa: ANN401 - checked here
    """Return the policy.

    Raises:
        UsageError: it is none.
    """
    if callable(on_missing):
        return on_missing  # type: ignore[no-any-return]
    if on_missing not in POLICIES:
        raise UsageError(
            f"there is no on_missing={on_missing!r}.{nearest(str(on_missing), POLICIES)} Or give a function that answers"
        )
    return str(on_missing)


def no_recording(why: str) -> Outcome:
    """Return what the model is told under `lenient`."""
    return replace(Outcome.failure("NoRecording", f"no recording: {why}"), rung="synthetic-error")


async def simulated(simulate: Callable[[MissedCall], Any], missed: MissedCall) -> Outcome:
    """Return what the function answers; what it raises is a failed call, and a `ReplayError` stops the replay."""
    try:
        value = simulate(missed)
        if isinstance(value, Awaitable):
            value = await value
    except BaseException as error:
        if not is_failure(error):
            raise
        return replace(Outcome.failure(type(error).__name__, describe(error)), rung="simulated")
    return Outcome(ok=True, result=to_json(value), rung="simulated")
