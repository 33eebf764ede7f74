"""What a run does, told on stderr in short lines while it does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from rich.text import Text

from playhead.diagnose.terminal import Line, escape
from playhead.diagnose.timeline import Timeline
from playhead.trace.events import LlmRequested, RunStarted, ToolCallCompleted, ToolCallStarted

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console

    from playhead.trace.line import Record

LABELS: Final = {
    "llm-responded": ("model", "blue"),
    "llm-failed": ("model", "red"),
    "llm-retried": ("retry", "yellow"),
    "tool-call-started": ("call", "green"),
    "tool-call-completed": ("error", "red"),
    "nudge-issued": ("nudge", "yellow"),
}
"""A call is told when it starts; that it returned, the model's next answer shows. A call that failed is told too."""


class Progress:
    """A subscriber that prints a line per model answer and tool call; on a terminal it also says what is awaited."""

    def __init__(self, console: Console) -> None:
        self.run_id: str | None = None
        """The run, once it has started."""
        self._console = console
        self._timeline = Timeline()
        self._awaited = console.status("")

    def __enter__(self) -> Self:
        """Begin to show what is awaited."""
        if self._console.is_terminal:
            self._awaited.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""
        self._awaited.stop()

    def __call__(self, record: Record) -> None:
        """Tell about one event, if it is worth a line."""
        row = self._timeline.row(record)
        match record.event:
            case RunStarted(run_id=run_id):
                self.run_id = run_id
            case LlmRequested(model=name) | ToolCallStarted(tool=name):
                self._awaited.update(Text(f"waiting for {escape(name)}", style="dim"))
        if record.kind not in LABELS or (isinstance(record.event, ToolCallCompleted) and record.event.ok):
            return
        label, style = LABELS[record.kind]
        who = (f"{row.who} " if row.who else "", "cyan")
        when = (f"{row.elapsed_us / 1e6:>7.1f}s  ", "dim")
        self._console.print(Line(when, (f"{label:<7}", style), who, row.what), crop=False)
