"""The trace folder: its location, its traces, and the resolution of run references."""

from __future__ import annotations

import os
import re
from collections import deque
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

from playhead.errors import AmbiguousRunError, RunIdError, TraceNotFoundError, nearest
from playhead.trace.blobs import run_id_of
from playhead.trace.format import checked_run_id, require_format, ulid_time_ms

SUFFIXES: Final = (".jsonl", ".jsonl.gz", ".jsonl.zst")
REPLAYS: Final = "replays"
"""The subfolder of a trace folder that contains replays."""
_LATEST: Final = re.compile(r"latest(?:~(\d{1,6}))?")
_STARTED: Final = re.compile(rb'\{"seq":0,"ts":(\d{1,18}),')
"""How the first line begins, with its time in microseconds."""
_LENGTHS: Final = (8 << 10, 512 << 10, 64 << 20)
"""Bytes to read when looking for the first and the last line of a file, tried in this order."""
_ERASED: Final = b'"kind":"erased"'
"""The only kind that may follow `run-completed`."""
_MOST_COMPARED: Final = 1000
"""Largest number of names to compare an unknown reference with."""


class TraceStore:
    """The traces of one folder. Links are not followed; use a path to name a trace outside the folder.

    Replays are in the subfolder `replays`. Their ids are always found, but they count as runs only with `replays=True`.
    """

    def __init__(self, folder: Path, *, replays: bool = False) -> None:
        self.folder = folder
        self._replays = replays

    @classmethod
    def of(cls, trace: Path) -> TraceStore:
        """Return the trace folder that contains a run or a replay."""
        folder = trace.parent
        return cls(folder.parent if folder.name == REPLAYS else folder)

    def for_replays(self) -> TraceStore:
        """Return the store of this folder's replays."""
        return self if self.folder.name == REPLAYS else TraceStore(self.folder / REPLAYS)

    def create(self) -> bool:
        """Create the folder, readable by its owner only; return whether it is new.

        Raises:
            OSError: it cannot be created.
        """
        if self.folder.is_dir():
            return False
        for folder in (*reversed(self.folder.parents), self.folder):  # `mkdir(parents=True)` would open the parents
            if not folder.exists():
                folder.mkdir(mode=0o700, exist_ok=True)
        return True

    def path_for(self, run_id: str) -> Path:
        """Return the path for a new run's trace.

        Raises:
            RunIdError: the id could lead out of the folder, is not a portable file name, or is a reference such as `latest`.
        """
        if _LATEST.fullmatch(run_id) or run_id.endswith(SUFFIXES):
            raise RunIdError(f"{run_id!r} cannot name a run: as a reference it means something else")
        return self.folder / f"{checked_run_id(run_id)}.jsonl"

    def resolve(self, reference: str | Path) -> Path:
        """Return the file for a reference: a run id or its unique prefix, `latest`, `latest~2`, or a path.

        Only a `Path`, or text with a trace's suffix, is treated as a path; an id never leads out of the folder.

        Raises:
            TraceNotFoundError: no run matches.
            AmbiguousRunError: several runs match.
            RunIdError: the reference is not a valid id.
        """
        text = os.fspath(reference)
        if isinstance(reference, Path) or text.endswith(SUFFIXES):
            return _explicit(Path(text))
        if latest := _LATEST.fullmatch(text):
            return self._latest(int(latest[1] or 0))
        return self._by_id(checked_run_id(text))

    def paths(self) -> list[Path]:
        """Return every trace of the folder, newest first.

        Raises:
            TraceNotFoundError: the folder cannot be read.
        """
        return [self.folder / name for name in self._names(replays=self._replays)]

    def hidden(self) -> list[Path]:
        """Return the replays that do not count as runs; none with `replays=True`."""
        return [] if self._replays else [self.folder / REPLAYS / name for _, name in _traces_in(self.folder / REPLAYS)]

    def _names(self, *, replays: bool) -> list[str]:
        """Return the names of the trace files, newest first; names of replays start with `replays/`."""
        found = _traces_in(self.folder)
        if replays:
            found += [(started, f"{REPLAYS}/{name}") for started, name in _traces_in(self.folder / REPLAYS)]
        return [name for _, name in sorted(found, reverse=True)]

    def _latest(self, back: int) -> Path:
        names = self._names(replays=self._replays)
        if back >= len(names):
            held = f"holds {len(names)} runs: no latest~{back}" if names else "holds no runs yet"
            more = f"; its {len(self.hidden())} replays count with --replays" if self.hidden() else ""
            raise TraceNotFoundError(f"the trace folder {self.folder} {held}{more}")
        return self.folder / names[back]

    def _by_id(self, run_id: str) -> Path:
        # Runs before replays, plain before compressed.
        names = sorted(self._names(replays=True), key=lambda name: ("/" in name, name), reverse=True)
        runs = {run_id_of(Path(name)): name for name in names}
        if run_id in runs:
            return self.folder / runs[run_id]
        # ULIDs are upper case, which is inconvenient to type.
        matches = sorted(name for name in runs if name.upper().startswith(run_id.upper()))
        if len(matches) == 1:
            return self.folder / runs[matches[0]]
        if matches:
            some = ", ".join(matches[:4]) + (", …" if matches[4:] else "")
            raise AmbiguousRunError(f"{len(matches)} runs start with {run_id!r}: {some}")
        raise TraceNotFoundError(f"no run {run_id!r} in {self.folder}.{nearest(run_id, list(runs)[:_MOST_COMPARED])}")


def _traces_in(folder: Path) -> list[tuple[int, str]]:
    """Return the start time and the name of each trace in a folder."""
    try:
        with os.scandir(folder) as entries:
            return [(_started_ms(entry), entry.name) for entry in entries if _is_trace(entry)]
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:  # a NUL in the path is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise TraceNotFoundError(f"the trace folder {folder} cannot be read: {reason}") from None


def is_alive(trace: Path) -> bool | None:
    """Return whether the process of an unfinished run is alive; None when this machine cannot tell."""
    from playhead.trace.control import Control  # noqa: PLC0415 - for runs without an end

    control = Control.of(trace)
    if control is None or control.held:
        return control is not None
    return None if control.process.host != os.uname().nodename else False


def ends_of(path: Path) -> tuple[bytes, bytes, bytes]:
    """Return the first line of a trace and its last two lines, not counting erasures; raises if the file is not a trace."""
    found = _ends_of_file(path) if path.suffix == ".jsonl" else _ends_of_stream(path)
    require_format(path.name, found[0])
    return found


def began_us(path: Path) -> int:
    """Return a run's start in microseconds since the Unix epoch; if the file does not contain it, the file's modification time."""
    with suppress(Exception):  # each compression library raises its own errors
        if started := _STARTED.match(ends_of(path)[0]):
            return int(started[1])
    with suppress(OSError):  # it is gone by now
        return path.stat().st_mtime_ns // 1000
    return 0


def _is_link(line: bytes) -> bool:
    """Return whether a line is an event up to the end of the run, not an erasure or a partly written event."""
    return _ERASED not in line[:200] and not line.endswith(b"\x18")


def _ends_of_file(path: Path) -> tuple[bytes, bytes, bytes]:
    """Return the first and the last two complete lines without reading the lines between them."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        for length in _LENGTHS:
            head = os.pread(descriptor, length, 0)
            tail = head if size <= length else os.pread(descriptor, length, size - length)
            lines = [line for line in tail.split(b"\n")[size > length : -1] if _is_link(line)]
            if b"\n" in head and len(lines) > (size > length):
                return head.partition(b"\n")[0], b"".join(lines[-2:-1]), lines[-1]
    finally:
        os.close(descriptor)
    raise ValueError("its first or last line is longer than that of any trace")


def _ends_of_stream(path: Path) -> tuple[bytes, bytes, bytes]:
    """Return the first and the last two complete lines of a compressed trace, which has to be read in full."""
    from playhead.trace.reader import Lines, open_trace  # noqa: PLC0415 - `list` need not load pydantic's models

    with open_trace(path) as file:
        lines = iter(Lines(file))
        first = next(lines)
        before, last = deque(filter(_is_link, chain([b"", first], lines)), maxlen=2)
    return first, before, last


def _is_trace(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(SUFFIXES) and entry.is_file(follow_symlinks=False)


def _started_ms(entry: os.DirEntry[str]) -> int:
    """Return the start of a run, from its ULID; for other ids, from the first event or the file's modification time."""
    if (started_ms := ulid_time_ms(entry.name)) is not None:
        return started_ms
    try:
        with open(entry.path, "rb") as file:  # noqa: PTH123 - an entry of a folder
            started = _STARTED.match(file.read(40))
        return int(started[1]) // 1000 if started else entry.stat(follow_symlinks=False).st_mtime_ns // 1_000_000
    except OSError:
        return 0


def _explicit(path: Path) -> Path:
    what = "no such file"
    try:
        if path.expanduser().is_file():
            return path.expanduser()
        if path.expanduser().is_dir():
            what = "a folder, not a trace; --trace-dir names a folder of traces"
    except (OSError, ValueError, RuntimeError):  # too long, a NUL, no home
        pass
    raise TraceNotFoundError(f"{str(path)[:300]!r}: {what}")
