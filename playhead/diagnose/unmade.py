"""What a program's model asked for and the program did not do through Playhead: nothing records it, and no replay freezes it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from playhead.trace.events import AgentCompleted, LlmRequested, LlmResponded, RunCompleted, ToolCallStarted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.trace.line import Record


class UnmadeCalls:
    """The tools that a model on a wrapped client asked for, and of which the run has no call."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._called: set[str] = set()
        self._asked: set[str] = set()
        self._newest: dict[str, set[str]] = defaultdict(set)
        """By owner, what its newest answers ask for, which may still be called."""
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Add the next event of the run."""
        event = record.event
        if isinstance(event, ToolCallStarted):
            self._called.add(event.tool)
        elif isinstance(event, LlmResponded) and event.wire is not None:
            self._newest[record.owner] |= {each.name for each in event.tool_calls}
        elif isinstance(event, LlmRequested) or _returned(event):
            self._asked |= self._newest.pop(record.owner, set())

    def notes(self) -> tuple[str, ...]:
        """Return a sentence for each of the tools."""
        return tuple(
            f"the model asked for {name}, and the program does not call {name} through Playhead: "
            "what it does for that is not recorded, and is done in a replay, too"
            for name in sorted(self._asked - self._called)
        )


def _returned(event: object) -> bool:
    """Return whether an agent came to its own end: what it had not called by then, it does not call."""
    return isinstance(event, (RunCompleted, AgentCompleted)) and event.terminated_by in ("end_turn", "error")
