"""That a dead run is resumed once: not while it still runs, and not a second time without the caller's word."""

from __future__ import annotations

import errno
import json
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import PlayheadError, UsageError
from playhead.replay.prefix import caught_up
from playhead.trace.line import Record
from playhead.trace.reader import scan
from playhead.trace.recording import read_recording
from playhead.trace.store import TraceStore, summarise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playhead.trace.recording import Recording

log = logging.getLogger("playhead")


@contextmanager
def claimed(recording: Recording, *, again: bool) -> Iterator[Callable[[], None]]:
    """Hold a dead run, so that nobody else resumes it at the same time; yields what lets go of it.

    Raises:
        UsageError: it is not dead, or has been resumed already.
    """
    release = _hold(recording)
    try:
        if not again:
            require_first(recording)
        yield release
    finally:
        release()


def _hold(recording: Recording) -> Callable[[], None]:
    run = recording.path.with_name(f"{recording.run_id}.jsonl")  # whatever a copy is called, it is this run
    try:
        from playhead.trace.control import Control  # noqa: PLC0415 - for POSIX

        return Control.create(run).close
    except ImportError:  # Windows, where files are locked otherwise
        return lambda: None
    except OSError as error:
        if error.errno in (errno.EBUSY, errno.EEXIST):
            raise UsageError(
                f"{recording.run_id} is not dead: a process of this machine runs it, or resumes it, at this moment. "
                f"See: playhead kill {recording.run_id}"
            ) from None
        log.warning("whether anybody else resumes %s cannot be told: %s", recording.run_id, error.strerror or error)
        return lambda: None


def require_first(recording: Recording) -> None:
    """Refuse to resume a run a second time.

    Raises:
        UsageError: it has been, as far as the traces beside it tell.
    """
    for path in TraceStore(recording.path.parent).paths():
        header = {} if path == recording.path else _header_of(path)
        if header.get("resumed_from") == recording.run_id:
            state = _state_of(path)
            if state is not None:
                raise UsageError(
                    f"{recording.run_id} has been resumed already: {path.name} {state}. What that one did would be done a "
                    f"second time. {AGAIN}"
                )
        elif header.get("run_id") == recording.run_id:
            _require_no_more(path, recording)


AGAIN: Final = "If you want that, pass again=True (--again)"


def _require_no_more(path: Path, recording: Recording) -> None:
    """Refuse a copy that was made before the run was over: what it does not hold has happened all the same."""
    more = sum(isinstance(item, Record) for item in scan(path)) - len(recording.records)
    if more > 0:
        raise UsageError(
            f"{recording.path.name} is not all of {recording.run_id}: {path.name} is the same run, with {more:,} more lines. "
            f"What they tell of would be done a second time; resume that one. {AGAIN}"
        )


def _state_of(path: Path) -> str | None:
    """Return how far a resumption has come; None when nothing of it was live."""
    try:
        found = read_recording(path)
    except PlayheadError as error:
        return f"cannot be read ({error})"
    if found.ending is not None and found.ending.terminated_by != "replay_stopped":
        return f"continues it, and has ended ({found.ending.terminated_by})"
    if caught_up(found):
        return "continues it and has gone on from there; resume that one, if it died"
    return "continues it at this moment" if summarise(path).ending == "running" else None


def _header_of(path: Path) -> dict[str, Any]:
    """Return what the first line of a trace says; nothing when it says nothing that can be read."""
    from playhead.trace.reader import Lines, open_trace  # noqa: PLC0415 - as everywhere

    try:
        with open_trace(path) as file:
            data = json.loads(next(iter(Lines(file))))["data"]
            return data if isinstance(data, dict) else {}
    except Exception:  # noqa: BLE001 - a file may hold anything, and each way of compression has its own errors
        return {}
