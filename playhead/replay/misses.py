"""What to say of a call that has no recorded result: the nearest recorded call, and what differs."""

from __future__ import annotations

import json
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playhead.kernel.tool_context import ToolContext
    from playhead.trace.recording import RecordedCall
    from playhead.trace.values import JsonValue

SHOWN = 120
"""Characters of arguments that an error message shows."""


def describe_miss(context: ToolContext, arguments: JsonValue, recorded: list[RecordedCall]) -> str:
    """Return why a call has no recorded result: the nearest recorded call, and what differs."""
    asked = f"{context.owner} calls {context.tool}({_short(arguments)}) in turn {context.iteration}, place {context.position}"
    if not recorded:
        return f"{asked}; the recording holds no call of {context.owner}"
    nearest = max(recorded, key=lambda call: _likeness(context, arguments, call))
    return f"{asked}; the nearest recorded call is {_name(nearest)}: {_difference(context, arguments, nearest)}"


def _likeness(context: ToolContext, arguments: JsonValue, call: RecordedCall) -> tuple[float, ...]:
    started = call.started
    return (
        float(started.tool == context.tool),
        SequenceMatcher(None, _text(started.args), _text(arguments)).quick_ratio(),
        float(call.iteration == context.iteration),
        float(started.position == context.position),
    )


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


def _name(call: RecordedCall) -> str:
    return f"{call.started.tool} (event {call.seq})"


def _short(value: JsonValue) -> str:
    text = _text(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _text(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
