"""Recent runs as lines, one each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from playhead.diagnose.terminal import Line, pad
from playhead.diagnose.tokens import cell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult

    from playhead.trace.store import RunSummary

_NARROW: Final = 60
"""Cells of a console that has room for the start of a run's id, its status and its task only."""
_WIDE: Final = 110
"""Cells of a console that has room for the model's name too."""
_SHORTEST: Final = 4
"""Characters of a run's id that are shown at least."""
_MOST_TOKENS: Final = 9_999_999
_STYLES: Final = {"done": "green", "failed": "red", "open": "yellow", "unreadable": "bold red"}


@dataclass(frozen=True, slots=True)
class RunList:
    """A table of runs."""

    runs: Sequence[RunSummary]
    known: Sequence[str] = ()
    """The ids of all runs that there are, when these are not all: a short id means none of the others."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield a heading and a line for each run."""
        if options.max_width < _NARROW:
            yield from self._narrow_lines()
            return
        ids = max((min(len(run.run_id), 40) for run in self.runs), default=26)
        wide = options.max_width >= _WIDE
        model = f"{'MODEL':<30}  " if wide else ""
        yield Line((f"{'RUN':<{ids}}  {'STARTED':<11}  {'STATUS':<10}  {'TOKENS':>7}  {model}TASK", "dim"))
        for run in self.runs:
            yield Line(
                (pad(run.run_id, ids), "bold"),
                f"  {_started(run.started_us)}  ",
                (pad(run.status, 10), _STYLES.get(run.status, "")),
                f"  {_tokens(run):>7}  ",
                (pad(run.model or "-", 30) + "  " if wide else "", "dim"),
                run.task or "-",
            )

    def _narrow_lines(self) -> Iterator[Line]:
        short = unique_beginnings([*self.known, *(run.run_id for run in self.runs)])
        names = [pad(short[run.run_id], min(len(short[run.run_id]), 20)) for run in self.runs]
        ids = max(map(len, names), default=0)
        yield Line((f"{'RUN':<{ids}}  {'STATUS':<6}  TASK", "dim"))
        for run, name in zip(self.runs, names, strict=True):
            status = (f"{run.status:<6}", _STYLES.get(run.status, ""))
            yield Line((name.ljust(ids), "bold"), "  ", status, f"  {run.task or '-'}")


def unique_beginnings(run_ids: Iterable[str]) -> dict[str, str]:
    """Return for each id the shortest beginning that means no other one, whatever the case of its letters."""
    ordered = sorted(set(run_ids), key=str.upper)
    lengths = [_common(one, other) for one, other in pairwise(ordered)]
    return {
        run_id: run_id[: max(before + 1, after + 1, _SHORTEST)]
        for run_id, before, after in zip(ordered, [0, *lengths], [*lengths, 0], strict=False)
    }


def _common(one: str, other: str) -> int:
    """Return how many characters two ids begin with in common."""
    places = enumerate(zip(one.upper(), other.upper(), strict=False))
    return next((place for place, (a, b) in places if a != b), min(len(one), len(other)))


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


def _tokens(run: RunSummary) -> str:
    """Return the tokens in seven cells; `-` for a run without an end, `?` where nobody counted them."""
    count, unknown = run.total_tokens, run.usage_unknown
    if count is None:
        return cell(None, unknown) if unknown else "-"
    shown = f"{count:,}" if count <= _MOST_TOKENS else "many"
    if unknown and len(shown) > len("1,234"):  # there is no room for the sign behind it
        shown = f"{count // 1000}k" if count <= _MOST_TOKENS else "many"
    return cell(shown, unknown)
