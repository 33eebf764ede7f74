"""What a run does, told in short lines while it does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.diagnose.terminal import Line
from playhead.diagnose.timeline import Timeline
from playhead.trace.events import RunStarted, ToolCallCompleted

if TYPE_CHECKING:
    from rich.console import Console

    from playhead.trace.line import Record

LABELS: Final = {
    "llm-responded": ("model", "blue"),
    "llm-failed": ("model", "red"),
    "llm-retried": ("retry", "yellow"),
    "tool-call-started": ("call", "green"),
    "tool-call-completed": ("failed", "red"),
    "nudge-issued": ("nudge", "yellow"),
}
"""A call is told when it starts; that it returned, the model's next answer shows. A call that failed is told too."""


class Progress:
    """A subscriber that prints a line per model answer and tool call."""

    def __init__(self, console: Console) -> None:
        self.run_id: str | None = None
        """The run, once it has started."""
        self._console = console
        self._timeline = Timeline()

    def __call__(self, record: Record) -> None:
        """Tell about one event, if it is worth a line."""
        row = self._timeline.row(record)
        if isinstance(record.event, RunStarted):
            self.run_id = record.event.run_id
        if record.kind not in LABELS or (isinstance(record.event, ToolCallCompleted) and record.event.ok):
            return
        label, style = LABELS[record.kind]
        who = f"{row.who} " if row.who else ""
        self._console.print(
            Line((f"{row.elapsed_us / 1e6:>7.1f}s  ", "dim"), (f"{label:<7}", style), (who, "cyan"), row.what),
            crop=False,
        )
