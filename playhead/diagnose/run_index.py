"""An index beside the traces, so that finding runs need not read every file. It is never the truth.

A row counts only if its checksum holds and the file is still the one that was read: same inode, size and times. What it
says decides which files to read, never what is shown of them. It holds no text: figures, reason codes, ids, and hashes of
the names and arguments that a run can be found by. Whatever is wrong with it, it is made again, or does without.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from playhead.diagnose.run_summary import RunSummary
from playhead.trace.blobs import run_id_of
from playhead.trace.store import REPLAYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Glance = tuple[RunSummary, bytes | None]
"""A run, and the hashes of what it can be found by; None if it has to be read."""
_Row = tuple[str, str, str, bytes, bytes]
"""The file's name, its stamp, the figures as JSON, the hashes, and the checksum."""
NAME: Final = ".index.sqlite"
VERSION: Final = 3
"""Raise it when rows change their meaning; an index of another version is made again."""
_FIGURES: Final = (
    *("started_us", "status", "terminated_by", "duration_ms", "total_tokens", "usage_unknown"),
    *("cost_usd", "cost_unknown", "replay_of", "resumed_from"),
)
_MOST_KEYS: Final = 4000
"""A run with more of them is always read."""
_SETTLED_NS: Final = 2_000_000_000
"""A file that changed less than this before it was read could change again without another time, and is not kept."""
_MOST_STEPS: Final = 50_000_000
"""Steps of SQLite after which reading is given up: a hostile index may hold a view without end."""
_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class RunIndex:
    """The index of one folder of traces."""

    def __init__(self, folder: Path) -> None:
        self._folder = os.fspath(folder)
        self._path = folder / NAME
        self._rows = {row[0]: row for row in self._load()}
        self._stamps: dict[str, str] = {}
        """The stamps that files had before they were read."""
        self._new: list[_Row] = []

    def glance(self, path: Path) -> Glance | None:
        """Return what is known of a run, or None if it is not known or no longer true."""
        name = self._name_of(path)
        stamp = self._stamps[name] = _stamp_of(path)
        row = self._rows.get(name)
        if row is None or row[1] != stamp or row[4] != _checksum(row[:4]):
            return None
        figures = dict(zip(_FIGURES, json.loads(row[2]), strict=True))
        return RunSummary(run_id_of(path), path, agent=None, model=None, task=None, **figures), row[3]

    def add(self, run: RunSummary, facts: Iterable[str]) -> Glance:
        """Remember a run that was read after `glance`."""
        name = self._name_of(run.path)
        keys = b"".join(sorted(map(key_of, facts)))
        figures = json.dumps([getattr(run, each) for each in _FIGURES])
        row = (name, self._stamps[name], figures, keys)
        if row[1] and name.isprintable() and len(keys) <= _MOST_KEYS * 8:  # SQLite takes no bytes that are not UTF-8
            self._new.append((*row, _checksum(row)))
        return run, keys

    def save(self) -> None:
        """Write what is new; without effect where nothing can be written, or another process is writing."""
        if self._new:
            with suppress(sqlite3.Error, OSError), self._opened() as database, database:
                database.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?)", self._new)

    def _load(self) -> list[_Row]:
        try:
            with self._opened() as database:
                return list(database.execute("SELECT name, stamp, figures, keys, checksum FROM runs"))
        except (sqlite3.Error, OSError, ValueError) as error:
            if getattr(error, "sqlite_errorcode", None) not in _BUSY:
                forget_index(self._path.parent)
            return []

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Open the index, and make it if there is none of this version."""
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        with closing(sqlite3.connect(self._path, timeout=0.2)) as database:
            database.execute("PRAGMA journal_mode = MEMORY")  # no second file: what a crash breaks is made again
            database.set_progress_handler(lambda: 1, _MOST_STEPS)
            with database:
                if database.execute("PRAGMA user_version").fetchone() != (VERSION,):
                    database.execute("DROP TABLE IF EXISTS runs")
                    database.execute("CREATE TABLE runs (name PRIMARY KEY, stamp, figures, keys, checksum)")
                    database.execute(f"PRAGMA user_version = {VERSION}")
            yield database

    def _name_of(self, path: Path) -> str:
        return os.fspath(path)[len(self._folder) + 1 :]


def forget_index(folder: Path) -> None:
    """Remove the index of a folder, and that of its replays; they are made again when they are needed."""
    for each in (folder, folder / REPLAYS):
        with suppress(OSError):
            (each / NAME).unlink()


def key_of(fact: str) -> bytes:
    """Return the hash under which the index has a fact: two facts of one hash cost a look into the file, and no more."""
    return blake2b(fact.encode(errors="surrogatepass"), digest_size=8).digest()


def _checksum(row: tuple[str, str, str, bytes]) -> bytes:
    return blake2b(repr(row).encode(), digest_size=8).digest()


def _stamp_of(path: Path) -> str:
    """Return what changes when the file does; empty while it may change again unseen."""
    try:
        found = path.stat(follow_symlinks=False)
    except OSError:
        return ""
    is_settled = time.time_ns() - found.st_ctime_ns > _SETTLED_NS
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}" if is_settled else ""
