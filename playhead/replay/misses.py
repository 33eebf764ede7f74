"""What to say of a call that has no recorded result: the nearest recorded call, and what differs."""

from __future__ import annotations

import json
from collections import defaultdict
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.kernel.session import ToolContext
    from playhead.replay.history import PastCall
    from playhead.trace.recording import RecordedCall
    from playhead.trace.values import JsonValue

SHOWN: Final = 120
"""Characters of arguments that an error message shows."""
COMPARED: Final = 2000
"""Characters of arguments that are compared to find the nearest call."""
COMPARED_CALLS: Final = 50
"""Recorded calls that a message looks for the nearest one among: a replay of many misses must not take the square."""


def first_calls(calls: Sequence[PastCall]) -> Mapping[tuple[str, str], list[PastCall]]:
    """Return the first calls by owner and tool, and under no tool the first of the owner."""
    found: dict[tuple[str, str], list[PastCall]] = defaultdict(list)
    for call in calls:
        for tool in (call.started.tool, ""):
            if len(found[call.owner, tool]) < COMPARED_CALLS:
                found[call.owner, tool].append(call)
    return found


def describe_miss(context: ToolContext, arguments: JsonValue, recorded: Sequence[RecordedCall | PastCall]) -> str:
    """Return why a call has no recorded result: the nearest recorded call, and what differs."""
    asked = name_call(context, arguments)
    if not recorded:
        return f"{asked}; the recording holds no call of {context.owner}"
    nearest = max(recorded, key=lambda call: _likeness(context, arguments, call))
    return f"{asked}; the nearest recorded call is {_name(nearest)}: {_difference(context, arguments, nearest)}"


def describe_unserved(
    context: ToolContext, arguments: JsonValue, recorded: Sequence[PastCall], same: Sequence[PastCall]
) -> str:
    """Return why a call of a replay gets nothing that was recorded; `same` are the recorded calls that are equal."""
    if not same:
        return describe_miss(context, arguments, recorded)
    events = ", ".join(str(call.seq) for call in same[:3]) + (", …" if len(same) > 3 else "")  # noqa: PLR2004 - enough
    times = "once" if len(same) == 1 else f"{len(same)} times"
    return (
        f"{name_call(context, arguments)}; it was recorded {times} (event {events}), "
        "and it has been served already or is another call's"
    )


def name_call(context: ToolContext, arguments: JsonValue) -> str:
    """Return who calls what, where."""
    place = f"turn {context.iteration}, place {context.position}"
    return f"{context.owner} calls {context.tool}({_short(arguments)}) in {place}"


def _likeness(context: ToolContext, arguments: JsonValue, call: RecordedCall | PastCall) -> tuple[float, ...]:
    started = call.started
    return (
        float(started.tool == context.tool),
        SequenceMatcher(None, _text(started.args)[:COMPARED], _text(arguments)[:COMPARED]).quick_ratio(),
        float(call.iteration == context.iteration),
        float(started.position == context.position),
    )


def _difference(context: ToolContext, arguments: JsonValue, call: RecordedCall | PastCall) -> str:
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


def _name(call: RecordedCall | PastCall) -> str:
    return f"{call.started.tool} (event {call.seq})"


def _short(value: JsonValue) -> str:
    text = _text(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _text(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
