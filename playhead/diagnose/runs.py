"""Recent runs as lines, one each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from playhead.diagnose.terminal import Line, pad

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, ConsoleOptions, RenderResult

    from playhead.trace.store import RunSummary

_WIDE: Final = 110
"""Cells of a console that has room for the model's name too."""
_MOST_TOKENS: Final = 9_999_999
_STYLES: Final = {"done": "green", "failed": "red", "open": "yellow", "unreadable": "bold red"}


@dataclass(frozen=True, slots=True)
class RunList:
    """A table of runs."""

    runs: Sequence[RunSummary]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield a heading and a line for each run."""
        ids = max((min(len(run.run_id), 40) for run in self.runs), default=26)
        wide = options.max_width >= _WIDE
        model = f"{'MODEL':<30}  " if wide else ""
        yield Line((f"{'RUN':<{ids}}  {'STARTED':<11}  {'STATUS':<10}  {'TOKENS':>7}  {model}TASK", "dim"))
        for run in self.runs:
            yield Line(
                (pad(run.run_id, ids), "bold"),
                f"  {_started(run.started_us)}  ",
                (pad(run.status, 10), _STYLES.get(run.status, "")),
                f"  {_tokens(run.total_tokens):>7}  ",
                (pad(run.model or "-", 30) + "  " if wide else "", "dim"),
                run.task or "-",
            )


def _started(started_us: int | None) -> str:
    """Return the local time in eleven cells."""
    try:
        return (
            "-          "
            if started_us is None
            else f"{datetime.fromtimestamp(started_us / 1e6, UTC).astimezone():%m-%d %H:%M}"
        )
    except (OverflowError, ValueError, OSError):  # a time that no calendar holds
        return "?          "


def _tokens(count: int | None) -> str:
    return "-" if count is None else f"{count:,}" if count <= _MOST_TOKENS else "many"
