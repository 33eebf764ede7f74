"""A list of recent runs, one line each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from playhead.diagnose.diff_values import common_length
from playhead.diagnose.parts import cell, number_cell, time_cell
from playhead.diagnose.terminal import Line, pad

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult

    from playhead.diagnose.run_summary import RunSummary

_WIDE: Final = 130
"""The minimum console width for full ids, times, tokens and the model."""
_ENDED: Final = 14
"""The maximum width of how a run ended, on few cells."""
_HEADING: Final = 5
"""The width of the longest heading of a column that fits its texts."""
_SHORTEST: Final = 4
"""The minimum number of characters shown of a run's id."""
_STYLES: Final = {
    "answered": "green",
    "failed": "red",
    "running": "cyan",
    "resumed": "dim",
    "unreadable": "bold red",
}
"""All other endings are yellow."""


@dataclass(frozen=True, slots=True)
class RunList:
    """A table of runs."""

    runs: Sequence[RunSummary]
    known: Sequence[str] = ()
    """The ids of all runs, including those not shown, so that short ids are unique among them."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield a heading and a line for each run; on few cells short ids, fewer columns, and none wider than its texts."""
        wide = options.max_width >= _WIDE
        short = {} if wide else unique_beginnings([*self.known, *(run.run_id for run in self.runs)])
        names = [short.get(run.run_id, run.run_id) for run in self.runs]
        ids = max((min(len(name), 40 if wide else 20) for name in names), default=3)
        ended = 24 if wide else _widest(_ENDED, (_ended(run, _ENDED) for run in self.runs))
        agent = 12 if wide else _widest(12, (run.agent or "-" for run in self.runs))
        cost = 8 if wide else _widest(8, map(_cost, self.runs))
        began, tokens = (f"{'STARTED':<11}", f"{'TOKENS':>7}  ") if wide else ("BEGAN", "")
        head = (
            f"{'RUN':<{ids}}  {began}  {'ENDED':<{ended}}  {'TIME':>7}  {tokens}{'COST':>{cost}}  {'AGENT':<{agent}}  "
        )
        yield Line((head + (f"{'MODEL':<24}  " if wide else "") + "TASK", "dim"))
        for run, name in zip(self.runs, names, strict=True):
            task = f"{'replay: ' if run.replay_of else ''}{run.task or '-'}"
            yield Line(
                (pad(name, ids), "bold"),
                f"  {_started(run.started_us, wide=wide)}  ",
                (pad(_ended(run, ended), ended), _STYLES.get(run.ending, "yellow") if run.sound else "bold red"),
                f"  {time_cell(run.duration_ms):>7}  ",
                f"{_tokens(run):>7}  " if wide else "",
                f"{_cost(run):>{cost}}  ",
                (f"{pad(run.agent or '-', agent)}  ", "dim"),
                (f"{pad(run.model or '-', 24)}  " if wide else "", "dim"),
                f"format {run.format}, not read" if run.format else task,
            )


def _widest(most: int, texts: Iterable[str]) -> int:
    """Return the width of a column of few cells: that of its longest text and of its heading."""
    return max(_HEADING, *(min(len(text), most) for text in texts), 0)


def _ended(run: RunSummary, room: int) -> str:
    """Return how a run ended, with the reason if there is room; no details if the file was changed."""
    if not run.sound:
        return "damaged"
    if run.ending not in {"stopped", "failed"}:
        return run.ending
    whole = f"{run.ending}: {run.terminated_by}"
    short = run.terminated_by if run.ending == "stopped" else run.ending
    return whole if len(whole) <= room else short or run.ending


def _cost(run: RunSummary) -> str:
    """Return the cost in eight cells: `$?` if it is unknown, `+?` after a lower bound."""
    if run.cost_usd is None:
        return "-" if run.ending == "unreadable" else "$?"
    digits = f"{run.cost_usd:.4f}"[: 5 if run.cost_unknown else 7]
    shown = digits if 0 < run.cost_usd < 999 else number_cell(round(run.cost_usd))  # noqa: PLR2004 - it takes all digits
    return cell(f"${shown}", run.cost_unknown)


def unique_beginnings(run_ids: Iterable[str]) -> dict[str, str]:
    """Return the shortest unique prefix of each id, ignoring case."""
    ordered = sorted(set(run_ids), key=str.upper)
    lengths = [common_length(one.upper(), other.upper()) for one, other in pairwise(ordered)]
    return {
        run_id: run_id[: max(before + 1, after + 1, _SHORTEST)]
        for run_id, before, after in zip(ordered, [0, *lengths], [*lengths, 0], strict=False)
    }


def _started(started_us: int | None, *, wide: bool) -> str:
    """Return the local time in eleven cells; in five the time of a run of today, or the day."""
    try:
        moment = None if started_us is None else datetime.fromtimestamp(started_us / 1e6, UTC).astimezone()
    except (OverflowError, ValueError, OSError):  # a time outside the calendar's range
        return f"{'?':<{11 if wide else 5}}"
    if moment is None or wide:
        return f"{'-' if moment is None else f'{moment:%m-%d %H:%M}':<{11 if wide else 5}}"
    return f"{moment:%H:%M}" if moment.date() == datetime.now(UTC).astimezone().date() else f"{moment:%m-%d}"


def _tokens(run: RunSummary) -> str:
    """Return the tokens in seven cells; `-` for a run that cannot be read, `?` where they were not counted."""
    count, unknown = run.total_tokens, run.usage_unknown
    return "-" if count is None and not unknown else cell(None if count is None else number_cell(count), unknown)
