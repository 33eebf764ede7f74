"""Calls that the recording does not answer: their error message, and what they get instead.

A tool runs only where the caller says `live` of it by name, or of all tools and it is declared `read_only`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from playhead.errors import UsageError, nearest
from playhead.kernel.describe import describe, is_failure
from playhead.kernel.outcome import Outcome
from playhead.trace.values import JsonValue, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.kernel.session import ToolContext
    from playhead.trace.recording import RecordedCall
    from playhead.trace.types import ToolSpec

POLICIES: Final = ("strict", "lenient", "live")
SHOWN: Final = 120
"""Characters of arguments that an error message shows."""
COMPARED: Final = 2000
"""Characters of arguments that are compared to find the nearest call."""
COMPARED_CALLS: Final = 100
"""Recorded calls that a message looks for the nearest one among: a replay of many misses must not take the square."""


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
        if not callable(policy) and policy not in POLICIES:
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


def describe_miss(context: ToolContext, arguments: JsonValue, recorded: Iterable[RecordedCall]) -> str:
    """Return why a call has no recorded result: the nearest recorded call, and what differs."""
    calls = list(islice(recorded, COMPARED_CALLS))
    asked = name_call(context, arguments)
    if not calls:
        return f"{asked}; the recording holds no call of {context.owner}"
    near = max(calls, key=lambda call: _likeness(context, arguments, call))
    return f"{asked}; the nearest recorded call is {near.started.tool} (event {near.seq}): {_difference(context, arguments, near)}"


def name_call(context: ToolContext, arguments: JsonValue) -> str:
    """Return who calls what, where."""
    place = f"turn {context.iteration}, place {context.position}"
    return f"{context.owner} calls {context.tool}({_short(arguments)}) in {place}"


def _likeness(context: ToolContext, arguments: JsonValue, call: RecordedCall) -> tuple[bool, float, bool]:
    likeness = SequenceMatcher(None, _text(call.started.args)[:COMPARED], _text(arguments)[:COMPARED]).quick_ratio()
    return call.started.tool == context.tool, likeness, call.iteration == context.iteration


def _difference(context: ToolContext, arguments: JsonValue, call: RecordedCall) -> str:
    started = call.started
    found = [
        f"{name} {was!r} instead of {now!r}"
        for name, was, now in (
            ("tool", started.tool, context.tool),
            ("turn", call.iteration, context.iteration),
            ("place", started.position, context.position),
        )
        if was != now
    ]
    if started.args != arguments:
        found.append(f"arguments {_short(started.args)}")
    return ", ".join(found) or "it has been served already"


def _short(value: JsonValue) -> str:
    text = _text(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _text(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
