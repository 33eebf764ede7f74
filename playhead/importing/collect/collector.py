"""From a body to a recording: taken in by any thread, recorded by one.

A trace is recorded when its root has ended and for a while nothing came of it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from playhead.importing.collect.bodies import RefusedError
from playhead.importing.collect.spool import FOLDER, Spool
from playhead.importing.limits import MAX_SPANS
from playhead.importing.store import import_spans
from playhead.trace.store import TraceStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playhead.importing.collect.bodies import Body
    from playhead.importing.readers import Problems
    from playhead.importing.spans import ForeignSpan
    from playhead.importing.store import ImportedRun
    from playhead.trace.redaction import Redactor
    from playhead.trace.writer import Durability

QUIET_S: Final = 3.0
"""Seconds without a span after which a trace whose root has ended is whole."""
IDLE_S: Final = 120.0
"""Seconds without a span after which a trace is recorded as it is, without its root."""
LATE_S: Final = 60.0
"""Seconds for which the spans of a recorded trace are kept, for what may still come of it."""
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


@dataclass(eq=False)
class _Gathered:
    """What came of one trace."""

    trace_id: str
    spans: dict[tuple[str, int | None, int], ForeignSpan] = field(default_factory=dict)
    """By id, end and number of attributes: an exporter that got no answer sends again."""
    files: set[Path] = field(default_factory=set)
    heard_s: float = 0.0
    recorded: int = 0
    """Spans that its recording was made of; 0 when it is not recorded."""
    is_ours: bool = False
    """Whether the recording was made of these spans: else it holds others, which are not here and must not be replaced."""

    @property
    def has_root(self) -> bool:
        return any(span.parent_id is None and span.end_ns is not None for span in self.spans.values())


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
        """What was left out of bodies, by why."""
        self.taken_again = 0
        """Bodies of an earlier collector."""
        self._quiet_s, self._idle_s, self._now_s = quiet_s, idle_s, now_s
        self._redactor = redactor
        self._durability: Durability = durability
        self._lock = threading.Lock()
        self._traces: dict[str, _Gathered] = {}
        self._memory: dict[Path, int] = {}
        """Bytes of memory that the spans of each file take, about."""
        self._kept: set[Path] = set()
        """Files that stay, whoever else has spans in them."""
        TraceStore(folder).create()
        self._spool = Spool(folder / FOLDER)
        for file, body in self._spool.left():
            self._add(body, file)
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
            spans, memory = sum(len(trace.spans) for trace in self._traces.values()), sum(self._memory.values())
            if spans and (spans + len(body.spans) > MAX_SPANS or memory + body.memory > MAX_HELD):
                raise RefusedError(
                    503, f"more than {MAX_SPANS:,} spans, or {MAX_HELD:,} bytes, would wait: send again later"
                )
            if body.spans:
                try:
                    file = self._spool.put(body)
                except OSError as error:
                    raise RefusedError(503, f"the spans cannot be stored: {error.strerror or error}") from None
                self._add(body, file)
            self.problems.update(body.problems)

    def record(self, *, all_of_them: bool = False) -> Iterator[Collected | NotRecorded]:
        """Record the traces that have ended, or all, and yield what became of them.

        Raises:
            OSError: a recording cannot be written; its spans stay where they are, and it is tried again next time.
        """
        failed: OSError | None = None
        with self._lock:
            due = [trace for trace in self._traces.values() if self._is_due(trace, all_of_them=all_of_them)]
        for trace in due:
            try:
                yield self._record(trace)
            except OSError as error:
                failed = failed or error
        with self._lock:
            self._forget(all_of_them=all_of_them)
        if failed is not None:
            raise failed

    def close(self) -> None:
        """Let another collector have the folder."""
        self._spool.close()

    def _add(self, body: Body, file: Path) -> None:
        self._memory[file] = body.memory
        for span in body.spans:
            trace = self._traces.setdefault(span.trace_id, _Gathered(span.trace_id))
            trace.files.add(file)
            trace.heard_s = self._now_s()
            trace.spans.setdefault((span.span_id, span.end_ns, len(span.attributes)), span)

    def _is_due(self, trace: _Gathered, *, all_of_them: bool) -> bool:
        quiet_s = self._quiet_s if trace.has_root else self._idle_s
        return len(trace.spans) > trace.recorded and (all_of_them or self._now_s() - trace.heard_s >= quiet_s)

    def _record(self, trace: _Gathered) -> Collected | NotRecorded:
        with self._lock:
            spans, files = list(trace.spans.values()), tuple(sorted(trace.files))
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
        kept = run.outcome == "differs"
        trace.is_ours |= run.outcome in {"imported", "replaced"}
        self._recorded(trace, len(spans), kept=kept)
        return Collected(run, trace.has_root, files if kept else ())

    def _recorded(self, trace: _Gathered, spans: int, *, kept: bool) -> None:
        with self._lock:
            trace.recorded = spans
            self._kept |= trace.files if kept else set()

    def _forget(self, *, all_of_them: bool) -> None:
        """Forget traces that were recorded a while ago, and remove the files that no other trace needs."""
        for trace in list(self._traces.values()):
            is_old = all_of_them or self._now_s() - trace.heard_s >= LATE_S
            if is_old and len(trace.spans) <= trace.recorded:
                del self._traces[trace.trace_id]
        needed = {file for trace in self._traces.values() for file in trace.files}
        for file in self._memory.keys() - needed:
            del self._memory[file]
            if file not in self._kept:
                file.unlink(missing_ok=True)
