"""What is said of spans that were not delivered: how many, to where, why, and the command that sends them."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.errors import PlayheadError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from playhead.spans.run_export import RunExport

NAMED_RUNS: Final = 3
"""Runs whose names are part of the command; more are named by their time."""
_FOLDERS: Final = 3
"""Folders for which a command is named."""
_EARLIEST: Final = 100
"""Of the runs that came first, so many are asked when they began."""


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
    """Count what is missing of runs that are not done; `late_at` is the time, in monotonic seconds, when that ends."""
    found, spans, all_counted = [], 0, True
    for run in runs:
        number = _count(run, late_at)
        all_counted = all_counted and number is not None
        spans += number or 0
        if number != 0:
            found.append(run)
    return Undelivered(tuple(found), spans, all_counted)


def _count(run: RunExport, late_at: float) -> int | None:
    """Return how many spans of a run are missing; None when that cannot be found out now."""
    if "playhead.spans.builder" not in sys.modules:  # loading it takes long
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
                return None if rest.reading.shortage.reason else number
            number += 1
    finally:
        rest.close()
    return None


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
    """Return what sends these traces, of which the first began first: for each folder one command, for `_FOLDERS` at most."""
    folders: dict[Path, list[Path]] = {}
    for path in paths:
        folders.setdefault(path.parent, []).append(path)
    if len(folders) > 1 and len(paths) <= NAMED_RUNS:
        return f"playhead export {shlex.join(map(str, paths))} {again.options}"
    said = [_for_folder(folder, within, again) for folder, within in list(folders.items())[:_FOLDERS]]
    more = len(folders) - len(said)
    return "; ".join(said) + (f"; and the same for {more:,} more folders" if more else "")


def _for_folder(folder: Path, paths: list[Path], again: Again) -> str:
    where = "" if folder == _usual_folder() else f" --trace-dir {shlex.quote(str(folder))}"
    if len(paths) > NAMED_RUNS:
        return f"playhead export --since {_earliest(paths)} {again.options}{where}"
    return f"playhead export {' '.join(path.stem for path in paths)} {again.options}{where}"


def _earliest(paths: list[Path]) -> str:
    """Return when the first of these runs began, rather too early than too late."""
    from datetime import UTC, datetime  # noqa: PLC0415 - when something was not delivered

    from playhead.trace.store import summarise  # noqa: PLC0415 - the same

    started = [summarise(path).started_us or 0 for path in paths[:_EARLIEST] if path.exists()]
    return datetime.fromtimestamp(min(started, default=0) // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _usual_folder() -> Path | None:
    from playhead.settings import load_settings  # noqa: PLC0415 - the same

    try:
        return load_settings().trace_dir.expanduser()
    except (PlayheadError, OSError):
        return None
