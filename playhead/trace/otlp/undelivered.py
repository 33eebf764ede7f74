"""What is said of spans that were not delivered: how many, to where, why, and the command that sends them."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.errors import PlayheadError
from playhead.trace.otlp.cursor import in_words
from playhead.trace.otlp.naming import NAMED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from playhead.trace.otlp.run_export import RunExport

NAMED_RUNS: Final = 3
"""Runs whose names are part of the command; more are named by their time."""


@dataclass(frozen=True)
class Undelivered:
    """Spans of runs that did not arrive."""

    runs: tuple[RunExport, ...]
    """Whose they are."""
    spans: int
    """How many that are counted."""
    all_counted: bool
    """Whether that is all of them."""

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return self.spans > 0 or not self.all_counted


def count_undelivered(runs: Iterable[RunExport], late_at: float) -> Undelivered:
    """Count what is missing of runs that are not done; `late_at` is the time, in monotonic seconds, when that ends."""
    found, spans, all_counted = [], 0, True
    for run in runs:
        number = _count(run, late_at)
        all_counted = all_counted and number is not None
        spans += number or 0
        if number != 0:
            found.append(run)
    return Undelivered(tuple(found), spans, all_counted)


def notices(run: RunExport, destination: str) -> Iterator[str]:
    """Yield what is to be known of a run whose spans were sent: what was refused, left out or lost."""
    for refused in in_words(run.refused_now):
        yield f"{destination} refused {refused}"
    if run.reached.more_refused:
        yield f"{destination} refused {run.reached.more_refused:,} more spans"
    if run.smaller:
        names = f"{', '.join(run.smaller[:NAMED])}{', …' if len(run.smaller) > NAMED else ''}"
        spans = "1 span was" if len(run.smaller) == 1 else f"{len(run.smaller):,} spans were"
        yield f"{spans} too large for {destination}, and sent without content: {names}"
    if run.lost:
        yield "it has no trace, and too many of its events waited: its later spans are lost"
    if run.failure is not None:
        yield f"its spans cannot be sent on: {run.failure}"


def _count(run: RunExport, late_at: float) -> int | None:
    """Return how many spans of a run are missing; None when that cannot be found out now."""
    if "playhead.trace.spans.builder" not in sys.modules:  # loading it takes long
        return None
    try:
        return run.count_rest(late_at) if run.path is None else _in_file(run.rest(), late_at)
    except Exception:  # noqa: BLE001 - what cannot be read cannot be counted
        return None


def _in_file(rest: RunExport, late_at: float) -> int | None:
    number = 0
    try:
        while time.monotonic() < late_at:
            if rest.take() is None:
                return None if rest.trouble else number
            number += 1
    finally:
        rest.close()
    return None


def message(undelivered: Undelivered, destination: str, reason: str | None, more: str | None) -> str:
    """Return the sentence that says it.

    Args:
        undelivered: what did not arrive.
        destination: where it was to go.
        reason: why it did not.
        more: options that name the destination; None when the environment does.
    """
    runs = undelivered.runs
    number = f"{undelivered.spans:,}" if undelivered.all_counted else f"at least {undelivered.spans:,}"
    spans = "spans" if not undelivered.spans else f"{number} span{'' if number == '1' else 's'}"
    whose = f"run {runs[0].run_id}" if len(runs) == 1 else f"{len(runs):,} runs"
    why = f" ({reason})" if reason else ""
    said = f"{spans} of {whose} could not be delivered to {destination}{why}"
    kept = [run.path for run in runs if run.path is not None]
    if len(kept) < len(runs):
        lost = len(runs) - len(kept)
        said += f"; {f'those of {lost:,}' if kept else 'they'} are lost, for nothing was recorded in a file"
    return f"{said}. The trace keeps them; to send them: {_command(kept, more)}" if kept else said


def _command(paths: list[Path], more: str | None) -> str:
    to = f" {more}" if more else ""
    folder = paths[0].parent
    if any(path.parent != folder for path in paths):
        return f"playhead export {shlex.join(map(str, paths[:NAMED_RUNS]))} --resume{to}"
    where = "" if folder == _usual_folder() else f" --trace-dir {shlex.quote(str(folder))}"
    if len(paths) <= NAMED_RUNS:
        return f"playhead export {' '.join(path.stem for path in paths)} --resume{to}{where}"
    return f"playhead export --since {_oldest(paths)} --resume{to}{where}"


def _oldest(paths: list[Path]) -> str:
    from datetime import UTC, datetime  # noqa: PLC0415 - when something was not delivered

    from playhead.trace.store import summarise  # noqa: PLC0415 - the same

    started = [started for path in paths[:1000] if (started := summarise(path).started_us) is not None]
    return datetime.fromtimestamp(min(started, default=0) // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _usual_folder() -> Path | None:
    from playhead.settings import load_settings  # noqa: PLC0415 - the same

    try:
        return load_settings().trace_dir.expanduser()
    except (PlayheadError, OSError):
        return None
