"""A policy that detects repetition in the newest steps, so that a check costs the same however long the run is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from playhead.compose.registration import Policy
from playhead.errors import UsageError
from playhead.kernel.checks import checked_option
from playhead.kernel.hooks import Nudge
from playhead.trace.events import DecisionEvaluated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from playhead.compose.contexts import HookContext, PhaseContext
    from playhead.compose.harness import Harness
    from playhead.kernel.state import Step

Options = TypeVar("Options", bound=BaseModel)


class LoopDetection(BaseModel):
    """When an agent counts as stuck."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", strict=True)

    window: int = Field(default=6, ge=2, le=100)
    """The number of newest thoughts and calls that are checked; results do not count."""
    identical_calls: int | None = Field(default=3, ge=2, le=100)
    """Calls of one tool with the same arguments in the window; None for no limit."""
    identical_thoughts: int | None = Field(default=2, ge=2, le=100)
    """Turns in a row with the same thought and no other call; None for no limit."""
    thinks_without_act: int | None = Field(default=3, ge=1, le=100)
    """Turns in a row without a call; None for no limit."""


@dataclass(frozen=True, slots=True)
class Loop:
    """How an agent is stuck."""

    pattern: Literal["calls", "thoughts", "no-act"]
    """The kind of repetition: calls, thoughts, or turns without a call."""
    what: str
    """The description of the repetition."""
    advice: str
    """The nudge for the model."""
    setting: str
    """The setting of `LoopDetection` that was exceeded."""


def detect_loops(detection: LoopDetection | dict[str, Any] | None = None) -> Policy:
    """Tell the model when it repeats itself; None for the default limits of `LoopDetection`."""
    limits = limits_of(detection)

    def register(harness: Harness) -> None:
        find = finder(harness, limits)

        def look(context: PhaseContext) -> Nudge | None:
            loop = find(context)
            fix = "compose=[switch_strategy()] lets another strategy take over; "
            return None if loop is None else stuck_nudge(loop, context, fix)

        harness.before("think", look)

    return Policy("detect_loops", {"detection": limits.model_dump(mode="json")}, register)


def limits_of(detection: LoopDetection | dict[str, Any] | None) -> LoopDetection:
    """Return when an agent counts as stuck.

    Raises:
        UsageError: it is not valid, or its rules can never find a loop.
    """
    limits = options_of("detect_loops", detection, LoopDetection)
    if limits.identical_calls is None and limits.identical_thoughts is None and limits.thinks_without_act is None:
        raise UsageError("detect_loops has no rule: each is None, so that it could never find a loop; set one of them")
    for name in ("identical_calls", "identical_thoughts"):
        if (getattr(limits, name) or 0) > limits.window:
            raise UsageError(
                f"detect_loops: {name}={getattr(limits, name)} can never be reached in a window of {limits.window}; "
                f"raise window, lower {name}, or set it to None"
            )
    return limits


def options_of(policy: str, given: object, kind: type[Options]) -> Options:
    """Return the options of a policy, given as such or as a dict of their fields; raises `UsageError` if they are not valid."""
    return kind.model_validate(checked_option(policy, True if given is None else given, kind))


def finder(harness: Harness, limits: LoopDetection) -> Callable[[PhaseContext], Loop | None]:
    """Return a function that detects, before a turn, whether the agent is stuck; after a detection, only later steps count."""
    began = harness.per_run(lambda: [0])

    def find(context: PhaseContext) -> Loop | None:
        state, since = context.state, began(context)
        # A repetition between two loops, such as two steps of a plan, does not count.
        since[0] = max(since[0], context.loop_began)
        loop = find_loop(state.steps, state.iteration, limits, since[0])
        if loop is not None:
            since[0] = state.iteration
        return loop

    return find


def stuck_nudge(loop: Loop, context: HookContext, fix: str = "") -> Nudge:
    """Record that an agent is stuck, and return the nudge."""
    why = f"{loop.what}. Fix: {fix}LoopDetection({loop.setting}=…) sets the limit"
    context.record(DecisionEvaluated(decision=f"loop-detected: {loop.pattern}", rationale=why))
    return Nudge(f"{loop.what[0].upper()}{loop.what[1:]}. {loop.advice}", "loop-detected", "warn")


def find_loop(steps: Sequence[Step], turn: int, limits: LoopDetection, began: int = 0) -> Loop | None:
    """Return how the agent is stuck before a turn, or None; steps before the turn `began` do not count."""
    recent = _newest(steps, began, limits.window)
    return (
        _identical_calls(recent, limits.identical_calls)
        or _identical_thoughts(recent, limits.identical_thoughts)
        or _without_act(recent, turn, began, limits.thinks_without_act)
    )


def _newest(steps: Sequence[Step], began: int, window: int) -> list[Step]:
    """Return the newest thoughts and calls, oldest first."""
    found: list[Step] = []
    for step in reversed(steps):
        if step.iteration < began or len(found) == window:
            break
        if step.type != "observation":
            found.append(step)
    return found[::-1]


def _identical_calls(recent: list[Step], limit: int | None) -> Loop | None:
    calls = [_call(step) for step in recent if step.type == "action"]
    if limit is None or not calls or calls.count(calls[-1]) < limit:
        return None
    tool = calls[-1][0]
    what = f"{tool} was called {calls.count(calls[-1])} times with the same arguments"
    advice = "It will not answer otherwise: use what it said, call something else, or answer."
    return Loop("calls", what, advice, "identical_calls")


def _identical_thoughts(recent: list[Step], limit: int | None) -> Loop | None:
    turns: dict[int, list[object]] = {}
    for step in recent:
        done = " ".join(step.content.lower().split()) if step.type == "thought" else _call(step)
        turns.setdefault(step.iteration, []).append(done)
    newest = sorted(turns)[-limit:] if limit else []
    in_a_row = len(newest) == limit and newest[-1] - newest[0] == len(newest) - 1
    if not in_a_row or any(turns[turn] != turns[newest[0]] for turn in newest):
        return None
    if not any(isinstance(done, str) and done for done in turns[newest[0]]):
        return None
    what = f"the same thought came in {limit} turns in a row, and nothing new was done"
    advice = "Think of something else: another tool, other arguments, or the answer."
    return Loop("thoughts", what, advice, "identical_thoughts")


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
