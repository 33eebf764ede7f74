"""The words for spans that did not arrive as they are: refused, part of no span, lost, or not delivered yet."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from playhead.trace.store import summarise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from playhead.spans.run_export import RunExport

_RUNS: Final = 3
"""Runs that a command names; more are chosen by their time."""
_EARLIEST: Final = 100
"""Of the runs that came first, as many are read to find the one that began first."""
_PROBLEMS: Final = 3
"""Problems of a file that are shown."""
_REASONS: Final = 10
"""Reasons of refusals that are shown."""
_SPANS: Final = 5
"""Spans of a refusal that are named."""


def notices(run: RunExport, destination: str) -> Iterator[str]:
    """Yield what was wrong with the file of a run that is done, or was refused, left out or lost."""
    yield from map(str, run.problems[:_PROBLEMS])
    if len(run.problems) > _PROBLEMS:
        yield f"and {len(run.problems) - _PROBLEMS:,} more problems; `playhead check` says where"
    if run.left_out:
        yield f"events that are part of no span, as what they belong to never began: {run.left_out:,}"
    if run.lost:
        yield "it has no trace, and too many of its events waited: its later spans are lost"
    if run.failure is not None:
        yield f"its spans cannot be sent: {run.failure}"
    reasons: dict[str, list[str]] = {}
    for name, reason in run.refused:
        reasons.setdefault(reason, []).append(name)
    for reason, spans in list(reasons.items())[:_REASONS]:
        names = ", ".join([*spans[:_SPANS], *(["…"] if len(spans) > _SPANS else [])])
        yield f"{destination} refused {_count(len(spans))}: {reason} ({names})"
    if len(reasons) > _REASONS:
        yield f"{destination} refused more, for {len(reasons) - _REASONS:,} more reasons"


def _count(spans: int) -> str:
    return f"{spans:,} span{'' if spans == 1 else 's'}"


@dataclass(frozen=True)
class Undelivered:
    """Spans of runs that did not arrive."""

    runs: tuple[RunExport, ...]
    """Their runs, in the order in which they began."""
    spans: int
    """How many were counted."""
    all_counted: bool
    """Whether that is all of them."""

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return self.spans > 0 or not self.all_counted


@dataclass(frozen=True)
class Again:
    """The command that sends recorded runs that did not arrive."""

    options: str = "--resume"
    """Of `playhead export`; the environment names the collector, unless they do."""
    how: str = "to send them"
    """What the command does."""

    def command(self, paths: Sequence[Path]) -> str:
        """Return what sends these traces, of which the first began first; of several folders, a command for each."""
        folders: dict[Path, list[Path]] = {}
        for path in paths:
            folders.setdefault(path.parent, []).append(path)
        return f"{self.how}: {'; '.join(self._for_folder(*each) for each in folders.items())}"

    def since(self, path: Path) -> str:
        """Return what sends this trace and all that begin later."""
        return self.command([path] * (_RUNS + 1))

    def _for_folder(self, folder: Path, paths: list[Path]) -> str:
        if len(paths) <= _RUNS:
            return f"playhead export {' '.join(shlex.quote(str(path)) for path in paths)} {self.options}"
        first_us = min((summarise(path).started_us or 0 for path in paths[:_EARLIEST] if path.exists()), default=0)
        since = datetime.fromtimestamp(first_us // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"playhead export --since {since} {self.options} --trace-dir {shlex.quote(str(folder))}"


def count_undelivered(runs: Iterable[RunExport], late_at: float) -> Undelivered:
    """Count what is missing of runs that are not delivered any further, until `late_at` in monotonic seconds."""
    found, spans, all_counted = [], 0, True
    for run in runs:
        number = run.count_rest(late_at)
        all_counted = all_counted and number is not None
        spans += number or 0
        if number != 0:
            found.append(run)
    return Undelivered(tuple(found), spans, all_counted)


def message(undelivered: Undelivered, destination: str, reason: str | None, again: Again) -> str:
    """Return the sentence about spans that did not arrive, with the command that sends them."""
    runs = undelivered.runs
    spans = (
        f"{'' if undelivered.all_counted else 'at least '}{_count(undelivered.spans)}" if undelivered.spans else "spans"
    )
    whose = f"run {runs[0].run_id}" if len(runs) == 1 else f"{len(runs):,} runs"
    why = f" ({reason})" if reason else ""
    sentence = f"{spans} of {whose} could not be delivered to {destination}{why}"
    kept = [run.path for run in runs if run.path is not None]
    if lost := len(runs) - len(kept):
        sentence += f"; {f'those of {lost:,}' if kept else 'they'} are lost, as these runs have no trace"
    return f"{sentence}. The trace keeps them; {again.command(kept)}" if kept else sentence
