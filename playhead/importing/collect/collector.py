"""From a body to a recording: taken in by any thread, recorded by one."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.importing.collect.assembly import IDLE_S, QUIET_S, Assembly
from playhead.importing.collect.bodies import RefusedError
from playhead.importing.collect.spool import FOLDER, Spool
from playhead.importing.limits import MAX_SPANS
from playhead.importing.store import import_spans
from playhead.trace.store import TraceStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playhead.importing.collect.assembly import Gathered
    from playhead.importing.collect.bodies import Body
    from playhead.importing.readers.base import Problems
    from playhead.importing.store import ImportedRun
    from playhead.trace.redaction import Redactor
    from playhead.trace.writer import Durability

MAX_HELD: Final = 256 * 1024**2
"""Bytes of memory that spans take, about, which are held until their traces are recorded."""
NAME: Final = "otlp-http"
"""The format that recordings of a collector say they came in."""


@dataclass(frozen=True, slots=True)
class Collected:
    """A trace that was recorded."""

    run: ImportedRun
    complete: bool
    """Whether its outermost span has come, ended."""
    kept_in: tuple[Path, ...] = ()
    """Where its spans are, when they could not join what is recorded already."""


@dataclass(frozen=True, slots=True)
class NotRecorded:
    """A trace that could not be recorded."""

    trace_id: str
    why: str
    kept_in: tuple[Path, ...]
    """Where its spans are."""


class Collector:
    """Takes bodies, and makes recordings of the traces in them."""

    def __init__(  # noqa: PLR0913 - what a collector is told
        self,
        folder: Path,
        *,
        quiet_s: float = QUIET_S,
        idle_s: float = IDLE_S,
        redactor: Redactor | None = None,
        durability: Durability = "write",
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open the folder of traces, and take in again what an earlier collector acknowledged and did not record.

        Raises:
            UsageError: another collector writes there.
            OSError: the folder cannot be made.
        """
        self.folder = folder
        self.problems: Problems = Counter()
        """Spans that were none, by why."""
        self._redactor = redactor
        self._durability: Durability = durability
        self._lock = threading.Lock()
        self._assembly = Assembly(now_s, quiet_s, idle_s)
        TraceStore(folder).create()
        self._spool = Spool(folder / FOLDER)
        self.taken_again = 0
        """Bodies of an earlier collector."""
        for file, body in self._spool.left():
            self._assembly.add(body.spans, file, body.memory)
            self.taken_again += 1

    @property
    def unread(self) -> tuple[Path, ...]:
        """Files of an earlier collector that cannot be read; they are left where they are."""
        return tuple(self._spool.unread)

    def take(self, body: Body) -> None:
        """Take a body in; when this returns, its spans survive a crash.

        Raises:
            RefusedError: nothing more can be taken for now.
        """
        with self._lock:
            self._check_room(body)
            if body.spans:
                try:
                    file = self._spool.put(body)
                except OSError as error:
                    raise RefusedError(503, f"the spans cannot be stored: {error.strerror or error}") from None
                self._assembly.add(body.spans, file, body.memory)
            self.problems.update(body.problems)

    def _check_room(self, body: Body) -> None:
        held, memory = self._assembly.spans, self._assembly.memory
        if held and held + len(body.spans) > MAX_SPANS:
            raise RefusedError(503, f"more than {MAX_SPANS:,} spans would wait to be recorded: send again later")
        if memory and memory + body.memory > MAX_HELD:
            raise RefusedError(
                503, f"more than {MAX_HELD:,} bytes of spans would wait to be recorded: send again later"
            )

    def record(self, *, all_of_them: bool = False) -> Iterator[Collected | NotRecorded]:
        """Record the traces that have ended, or all, and yield what became of them.

        Raises:
            OSError: a recording cannot be written; its spans stay where they are, and it is tried again next time.
        """
        with self._lock:
            due = self._assembly.due(all_of_them=all_of_them)
        failed: OSError | None = None
        for trace in due:
            try:
                yield self._record(trace)
            except OSError as error:
                failed = failed or error
        with self._lock:
            for file in self._assembly.forget(all_of_them=all_of_them):
                self._spool.remove(file)
        if failed is not None:
            raise failed

    def close(self) -> None:
        """Let another collector have the folder."""
        self._spool.close()

    def _record(self, trace: Gathered) -> Collected | NotRecorded:
        with self._lock:
            spans, files = list(trace.spans), tuple(sorted(trace.files))
        try:
            [run] = import_spans(
                spans,
                self.folder,
                format_name=NAME,
                replace=trace.is_ours,
                grow=True,  # an earlier collector had recorded a part of what it had acknowledged
                redactor=self._redactor,
                durability=self._durability,
            )
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a trace does to its import, the others are recorded
            self._recorded(trace, len(spans), kept=True)
            return NotRecorded(trace.trace_id, f"{type(error).__name__}: {str(error)[:200]}", files)
        lost = run.outcome in ("differs", "lacks")
        self._recorded(trace, len(spans), kept=lost)
        return Collected(run, trace.has_root, files if lost else ())

    def _recorded(self, trace: Gathered, spans: int, *, kept: bool) -> None:
        with self._lock:
            trace.recorded, trace.is_ours = spans, not kept
            if kept:
                self._assembly.keep(trace)
