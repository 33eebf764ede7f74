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
            self._assembly.add(body.spans, file)
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
            if self._assembly.spans + len(body.spans) > MAX_SPANS:
                raise RefusedError(503, f"{self._assembly.spans:,} spans wait to be recorded: send again later")
            self.problems.update(body.problems)
            if not body.spans:
                return
            try:
                file = self._spool.put(body)
            except OSError as error:
                raise RefusedError(503, f"the spans cannot be stored: {error.strerror or error}") from None
            self._assembly.add(body.spans, file)

    def record(self, *, all_of_them: bool = False) -> Iterator[Collected]:
        """Record the traces that have ended, or all, and yield them.

        Raises:
            OSError: a recording cannot be written; its spans stay where they are.
        """
        with self._lock:
            due = self._assembly.due(all_of_them=all_of_them)
        for trace in due:
            yield self._record(trace)
        with self._lock:
            for file in self._assembly.forget(all_of_them=all_of_them):
                self._spool.remove(file)

    def close(self) -> None:
        """Let another collector have the folder."""
        self._spool.close()

    def _record(self, trace: Gathered) -> Collected:
        with self._lock:
            spans, files = list(trace.spans), tuple(sorted(trace.files))
        [run] = import_spans(
            spans,
            self.folder,
            format_name=NAME,
            replace=trace.is_ours,
            redactor=self._redactor,
            durability=self._durability,
        )
        lost = run.outcome == "differs" and len(spans) > 0
        with self._lock:
            trace.recorded, trace.is_ours = len(spans), not lost
            if lost:
                trace.files.clear()  # so that they are kept
        return Collected(run, trace.has_root, files if lost else ())
