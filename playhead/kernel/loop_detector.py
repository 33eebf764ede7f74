"""Whether an agent goes round in circles: looked for in its newest steps, so that a look costs the same at any length."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.kernel.state import Step


class LoopDetection(BaseModel):
    """When an agent counts as stuck."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", strict=True)

    window: int = Field(default=6, ge=2, le=100)
    """Thoughts and calls that are looked at, newest first; what came back is not counted."""
    identical_calls: int | None = Field(default=3, ge=2, le=100)
    """Calls of one tool with the same arguments in the window; None: any number is fine."""
    identical_thoughts: int | None = Field(default=2, ge=2, le=100)
    """Turns in a row with the same thought and no other call; None: any number is fine."""
    thinks_without_act: int | None = Field(default=3, ge=1, le=100)
    """Turns in a row without a call; None: any number is fine."""


@dataclass(frozen=True, slots=True)
class Loop:
    """How an agent is stuck."""

    pattern: Literal["calls", "thoughts", "no-act"]
    """What repeats: calls, thoughts, or turns without a call."""
    what: str
    """The same in words."""
    advice: str
    """What the model is told to do about it."""
    setting: str
    """The setting of `LoopDetection` that says so."""


def find_loop(
    steps: Sequence[Step], turn: int, detection: LoopDetection, *, since: int = 0, began: int = 0
) -> Loop | None:
    """Return how the agent is stuck, or None.

    Args:
        steps: what it did.
        turn: the turn that comes next.
        detection: when it counts as stuck.
        since: the first step that counts.
        began: the first turn that counts.
    """
    recent = _newest(steps, since, detection.window)
    return (
        _identical_calls(recent, detection.identical_calls)
        or _identical_thoughts(recent, detection.identical_thoughts)
        or _without_act(recent, turn, began, detection.thinks_without_act)
    )


def _newest(steps: Sequence[Step], since: int, window: int) -> list[Step]:
    """Return the newest thoughts and calls, oldest first."""
    found: list[Step] = []
    for place in range(len(steps) - 1, since - 1, -1):
        if steps[place].type != "observation":
            found.append(steps[place])
        if len(found) == window:
            break
    return found[::-1]


def _identical_calls(recent: list[Step], limit: int | None) -> Loop | None:
    calls = [_call(step) for step in recent if step.type == "action"]
    if limit is None or not calls or calls.count(calls[-1]) < limit:
        return None
    tool = calls[-1][0]
    what = f"{tool} was called {calls.count(calls[-1])} times with the same arguments"
    return Loop(
        "calls",
        what,
        "It will not answer otherwise: use what it said, call something else, or answer.",
        "identical_calls",
    )


def _identical_thoughts(recent: list[Step], limit: int | None) -> Loop | None:
    turns: dict[int, list[object]] = {}
    for step in recent:
        said = " ".join(step.content.lower().split()) if step.type == "thought" else _call(step)
        turns.setdefault(step.iteration, []).append(said)
    newest = sorted(turns)[-limit:] if limit else []
    in_a_row = len(newest) == limit and newest[-1] - newest[0] == len(newest) - 1
    if not in_a_row or any(turns[turn] != turns[newest[0]] for turn in newest):
        return None
    if not any(isinstance(said, str) and said for said in turns[newest[0]]):
        return None
    what = f"the same thought came in {limit} turns in a row, and nothing new was done"
    return Loop(
        "thoughts", what, "Think of something else: another tool, other arguments, or the answer.", "identical_thoughts"
    )


def _without_act(recent: list[Step], turn: int, began: int, limit: int | None) -> Loop | None:
    acted = max((step.iteration + 1 for step in recent if step.type == "action"), default=began)
    idle = turn - max(began, acted)
    if limit is None or idle < limit:
        return None
    what = f"{idle} turns went by without a call or an answer"
    return Loop("no-act", what, "Call a tool, or answer.", "thinks_without_act")


def _call(step: Step) -> tuple[str, str]:
    try:
        arguments = json.dumps(json.loads(step.content), sort_keys=True)
    except (ValueError, RecursionError):
        arguments = step.content
    return str(step.tool), arguments
