"""What is said of spans that did not arrive as they are: refused, cut, left out, lost, or not delivered yet."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from playhead.errors import PlayheadError
from playhead.settings import load_settings
from playhead.spans.run_export import NAMED, Refused
from playhead.trace.store import summarise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from playhead.spans.run_export import RunExport

_NAMED_RUNS: Final = 3
"""Runs whose names are part of the command; more are named by their time."""
_EARLIEST: Final = 100
"""Of the runs that came first, so many are asked when they began."""
_PROBLEMS: Final = 3
"""Problems of a file that are told."""
_REASONS: Final = 10
"""Reasons of refusals that are told."""


# --- of a run that is done --------------------------------------------------------------------------------------------


def notices(run: RunExport, destination: str) -> Iterator[str]:
    """Yield what was wrong with the file, refused, cut, left out or lost."""
    yield from map(str, run.problems[:_PROBLEMS])
    if len(run.problems) > _PROBLEMS:
        yield f"and {len(run.problems) - _PROBLEMS:,} more problems; `playhead check` says where"
    if run.left_out:
        events = "1 event belongs" if run.left_out == 1 else f"{run.left_out:,} events belong"
        yield f"{events} to nothing that began, and {'is' if run.left_out == 1 else 'are'} in no span"
    if run.lost:
        yield "it has no trace, and too many of its events waited: its later spans are lost"
    if run.failure is not None:
        yield f"its spans cannot be sent: {run.failure}"
    refusals = in_words(run.refusals)
    for refused in refusals[:_REASONS]:
        yield f"{destination} refused {refused}"
    if len(refusals) > _REASONS:
        yield f"{destination} refused more, for {len(refusals) - _REASONS:,} more reasons"
    if run.smaller:
        spans = "1 span was" if len(run.smaller) == 1 else f"{len(run.smaller):,} spans were"
        yield f"{spans} too large for {destination}, and sent without content: {_names(run.smaller, len(run.smaller))}"


def in_words(refusals: Iterable[Refused]) -> list[str]:
    """Return what was refused and why, one line for each reason; where it is not known which spans are meant, it says so."""
    lines, whole = [], dict[str, list[Refused]]()
    for each in refusals:
        if each.among is None:
            whole.setdefault(each.reason, []).append(each)
        else:
            which = f"{each.count:,} of {each.among:,} spans, not saying which of them"
            lines.append(f"{which}: {each.reason} ({_names(each.spans, each.among)})")
    for reason, same in whole.items():
        count = sum(each.count for each in same)
        names = [name for each in same for name in each.spans]
        lines.append(f"{count:,} span{'' if count == 1 else 's'}: {reason} ({_names(names, count)})")
    return lines


def _names(names: Sequence[str], of: int) -> str:
    return ", ".join(names[:NAMED]) + (", …" if of > len(names[:NAMED]) else "")


# --- of runs that are not done ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Undelivered:
    """Spans of runs that did not arrive."""

    runs: tuple[RunExport, ...]
    """Whose they are, in the order in which the runs began."""
    spans: int
    """How many that are counted."""
    all_counted: bool
    """Whether that is all of them."""

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return self.spans > 0 or not self.all_counted


@dataclass(frozen=True)
class Again:
    """What sends recorded runs that did not arrive."""

    options: str = "--resume"
    """Of `playhead export`; the environment says where to, unless they do."""
    how: str = "to send them"
    """What the command does."""


def count_undelivered(runs: Iterable[RunExport], late_at: float) -> Undelivered:
    """Count what is missing of runs that are not done and will not go on; `late_at`, in monotonic seconds, is when that ends."""
    found, spans, all_counted = [], 0, True
    for run in runs:
        number = run.count_rest(late_at)
        all_counted = all_counted and number is not None
        spans += number or 0
        if number != 0:
            found.append(run)
    return Undelivered(tuple(found), spans, all_counted)


def message(undelivered: Undelivered, destination: str, reason: str | None, again: Again) -> str:
    """Return the sentence that says it.

    Args:
        undelivered: what did not arrive.
        destination: where it was to go.
        reason: why it did not.
        again: what sends it.
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
    return f"{said}. The trace keeps them; {again.how}: {command(kept, again)}" if kept else said


def command(paths: Sequence[Path], again: Again) -> str:
    """Return what sends these traces, of which the first began first; of several folders, a command for each."""
    folders: dict[Path, list[Path]] = {}
    for path in paths:
        folders.setdefault(path.parent, []).append(path)
    said = [_for_folder(folder, within, again) for folder, within in list(folders.items())[:_NAMED_RUNS]]
    more = len(folders) - len(said)
    return "; ".join(said) + (f"; and the same for {more:,} more folders" if more else "")


def _for_folder(folder: Path, paths: list[Path], again: Again) -> str:
    where = "" if folder == _usual_folder() else f" --trace-dir {shlex.quote(str(folder))}"
    which = " ".join(path.stem for path in paths) if len(paths) <= _NAMED_RUNS else f"--since {_earliest(paths)}"
    return f"playhead export {which} {again.options}{where}"


def _earliest(paths: list[Path]) -> str:
    """Return when the first of these runs began, rather too early than too late."""
    started = [summarise(path).started_us or 0 for path in paths[:_EARLIEST] if path.exists()]
    return datetime.fromtimestamp(min(started, default=0) // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _usual_folder() -> Path | None:
    try:
        return load_settings().trace_dir.expanduser()
    except (PlayheadError, OSError):
        return None
