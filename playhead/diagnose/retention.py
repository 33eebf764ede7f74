"""Keep runs and remove them: a copy elsewhere; a choice by age, number, size and ending, without what other runs need."""

from __future__ import annotations

import shutil
import time
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.diagnose.erasure import beside
from playhead.diagnose.heads import DEFAULT, read_heads, write_heads
from playhead.diagnose.run_index import forget_index
from playhead.diagnose.run_summary import summaries
from playhead.trace.blobs import run_id_of
from playhead.trace.store import TraceStore

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from playhead.diagnose.run_summary import RunSummary


def copy_recording(source: Path, target: Path) -> None:
    """Copy a trace and its blobs; what was there before is replaced.

    Raises:
        OSError: a file cannot be read or written.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    old, new = (path.with_name(f"{run_id_of(path)}.blobs") for path in (source, target))
    shutil.rmtree(new, ignore_errors=True)
    shutil.copyfile(source, target)
    if old.exists():
        shutil.copytree(old, new)


@dataclass(frozen=True, slots=True)
class Limits:
    """The conditions for removing a run; all given conditions must hold."""

    older_than_s: float | None = None
    """The run began longer ago, in seconds."""
    keep: int | None = None
    """At least this many newer runs with these endings exist."""
    max_bytes: int | None = None
    """All runs of the folder, including replays, take more bytes; the oldest are removed first."""
    endings: Collection[str] = ()
    """The run ended in one of these ways. Unreadable files are removed only if named here."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A run and its files."""

    run: RunSummary
    files: tuple[Path, ...]
    """The trace is last, so that an interrupted removal can be repeated."""
    size: int
    """The size of all files in bytes."""


@dataclass(frozen=True, slots=True)
class Pruning:
    """The runs to remove."""

    removed: Sequence[Stored]
    """Runs to remove, oldest first."""
    kept: Mapping[str, str]
    """Runs that match the limits and are kept all the same, with the reason."""


def plan(store: TraceStore, limits: Limits, named: Collection[Path] = ()) -> Pruning:
    """Return which runs to remove among the named ones, or among all in the folder. Raises `TraceNotFoundError`."""
    everything = [_stored(run) for run in summaries(TraceStore(store.folder, replays=True))]
    among = {*(named or store.paths())}
    chosen = [each for each in everything if each.run.path in among and _is_ended(each.run, limits.endings, named)]
    chosen = [each for each in chosen[limits.keep or 0 :] if _is_old(each.run, limits.older_than_s)][::-1]
    busy = {
        each.run.run_id: "it is running, or may be on another machine"
        for each in chosen
        if each.run.ending in {"running", "open"}
    }
    chosen = [each for each in chosen if each.run.run_id not in busy]
    found = _without_needed(chosen, everything)
    if limits.max_bytes is not None:
        excess = _size(everything) - limits.max_bytes

        def freed(count: int) -> int:
            return _size(_without_needed(chosen[:count], everything).removed)

        enough = bisect_left(range(len(chosen) + 1), excess, key=freed)
        found = _without_needed(chosen[:enough], everything)
    return Pruning(found.removed, {**busy, **found.kept})


def _is_ended(run: RunSummary, endings: Collection[str], named: Collection[Path]) -> bool:
    return run.ending in endings if endings else bool(named) or run.ending != "unreadable"


def _is_old(run: RunSummary, older_than_s: float | None) -> bool:
    if older_than_s is None:
        return True
    began_us = run.started_us if run.started_us is not None else run.path.stat().st_mtime_ns // 1000
    return time.time() - began_us / 1e6 > older_than_s


def _without_needed(chosen: Sequence[Stored], everything: Sequence[Stored]) -> Pruning:
    """Return the runs except those that a remaining run replays or continues, or shares large values with."""
    kept: dict[str, str] = {}
    removed = list(chosen)
    while needed := _needed(removed, everything):
        kept |= needed
        removed = [each for each in removed if each.run.run_id not in needed]
    return Pruning(removed, kept)


def _needed(removed: Sequence[Stored], everything: Sequence[Stored]) -> dict[str, str]:
    ids, paths = {each.run.run_id for each in removed}, {each.run.path for each in removed}
    remaining = [each.run for each in everything if each.run.path not in paths]
    return {
        origin: f"{run.path.name} {what}, and stays"
        for run in remaining
        for origin, what in ((run.replay_of, "replays it"), (run.resumed_from, "continues it"), (run.run_id, "has it"))
        if origin in ids
    }


def _stored(run: RunSummary) -> Stored:
    files = (*beside(run.path), run.path)
    return Stored(run, files, sum(file.stat().st_size for file in files))


def _size(runs: Sequence[Stored]) -> int:
    return sum(each.size for each in runs)


def remove(store: TraceStore, runs: Sequence[Stored]) -> None:
    """Remove runs with all their files, and their heads from the folder's heads file.

    Raises:
        OSError: a file cannot be removed; the runs before it have been removed.
        TraceError: the file of heads cannot be read; nothing has been removed.
    """
    heads, gone = read_heads(store.folder / DEFAULT), {each.run.run_id for each in runs}
    forget_index(store.folder)
    for each in runs:
        for file in each.files:
            file.unlink(missing_ok=True)
            with suppress(OSError):  # other files of the folder are there still; the last one takes it along
                if file.parent not in {store.folder, store.for_replays().folder}:
                    file.parent.rmdir()
    if gone & heads.keys():
        write_heads(store.folder / DEFAULT, {run: head for run, head in heads.items() if run not in gone})
