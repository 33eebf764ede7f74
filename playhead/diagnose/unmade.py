"""What a program's model asked for and the program did not do through Playhead: nothing records it, and no replay freezes it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from playhead.trace.events import AgentCompleted, LlmRequested, LlmResponded, RunCompleted, ToolCallStarted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.trace.line import Record


def unmade_calls(records: Iterable[Record]) -> tuple[str, ...]:
    """Return a sentence for each tool that a model on a wrapped client asked for, and of which the run has no call."""
    called, asked, newest = set[str](), set[str](), defaultdict[str, set[str]](set)
    for record in records:
        event = record.event
        if isinstance(event, ToolCallStarted):
            called.add(event.tool)
        elif isinstance(event, LlmResponded) and event.wire is not None:  # which may still be called
            newest[record.owner] |= {each.name for each in event.tool_calls}
        elif isinstance(event, LlmRequested) or _returned(event):
            asked |= newest.pop(record.owner, set())
    return tuple(
        f"the model asked for {name}, and the program does not call {name} through Playhead: "
        "what it does for that is not recorded, and is done in a replay, too"
        for name in sorted(asked - called)
    )


def _returned(event: object) -> bool:
    """Return whether an agent came to its own end: what it had not called by then, it does not call."""
    return isinstance(event, (RunCompleted, AgentCompleted)) and event.terminated_by in ("end_turn", "error")
