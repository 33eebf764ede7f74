"""From a body to a recording: taken in by any thread, recorded by one.

A body that is acknowledged stands in a file first, written whole, until its traces are recorded. The files are what
`playhead import` reads, so that nothing is lost even when no collector is started again. A trace is recorded when its root has
ended and for a while nothing came of it.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import MissingDependencyError, NotImportableError, UsageError
from playhead.importing.limits import MAX_SPANS, Room
from playhead.importing.readers.rows import spans_of_message, spans_of_rows
from playhead.importing.spans import HALVES
from playhead.importing.store import import_spans
from playhead.importing.values import field_of, read_json
from playhead.trace.blobs import sync_folder
from playhead.trace.store import TraceStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playhead.importing.spans import ForeignSpan, Problems
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
"""Bytes of memory that spans take, about, which are held until their traces are recorded; one body may take as many."""
NAME: Final = "otlp-http"
"""The format that recordings of a collector say they came in."""
FOLDER: Final = ".collect"
"""The name of the folder of acknowledged bodies, in a folder of traces."""
PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
SMALLER: Final = "export smaller batches (OTEL_BSP_MAX_EXPORT_BATCH_SIZE)"
_SUFFIXES: Final = {PROTOBUF: ".pb", JSON: ".json"}
_PARTIAL: Final = ".part"


class RefusedError(Exception):
    """A request that cannot be taken, with its HTTP status; after 503 the same request may be taken later."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Body:
    """A body that can be read."""

    content_type: str
    content: bytes
    """Unpacked."""
    spans: tuple[ForeignSpan, ...]
    problems: Problems
    """What was left out of it, by why."""
    memory: int
    """Bytes of memory that its spans take, about."""


@dataclass(frozen=True, slots=True)
class Collected:
    """A trace that was recorded, or could not be."""

    trace_id: str
    run: ImportedRun | None
    """None when it could not be recorded."""
    complete: bool = False
    """Whether its outermost span has come, ended."""
    kept_in: tuple[Path, ...] = ()
    """Where its spans are, when they could not be recorded, or could not join what is recorded already."""
    why: str = ""
    """Why it could not be recorded."""


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


def read_body(content_type: str, content: bytes) -> Body:
    """Return the spans of a body.

    Raises:
        RefusedError: it is no export of traces, or takes too much memory.
    """
    problems: Problems = Counter()
    room = Room(memory=MAX_HELD)
    try:
        if content_type == PROTOBUF:
            spans = tuple(spans_of_message(content, problems, room))
        else:
            room.take_json(content)
            spans = tuple(spans_of_rows(_document(content, problems), problems))
    except MissingDependencyError as error:
        raise RefusedError(415, str(error)) from None
    except NotImportableError as error:
        if room.memory > MAX_HELD:
            raise RefusedError(413, f"the body would take more than {MAX_HELD:,} bytes of memory: {SMALLER}") from None
        raise RefusedError(400, str(error)) from None
    if len(spans) > MAX_SPANS:
        raise RefusedError(413, f"the body has more than {MAX_SPANS:,} spans: {SMALLER}")
    return Body(content_type, content, spans, problems, room.memory)


def _document(content: bytes, problems: Problems) -> Any:  # noqa: ANN401 - any JSON value
    try:
        document, was_mended = read_json(content)
    except ValueError as error:
        raise RefusedError(400, f"the body is not JSON, or nested too deep ({str(error)[:100]})") from None
    if document != {} and not (isinstance(document, dict) and isinstance(field_of(document, "resourceSpans"), list)):
        raise RefusedError(400, "the body is not OTLP: an object with resourceSpans, a list, is wanted")
    problems.update([HALVES] if was_mended else [])
    return document


class Collector:
    """Takes bodies, and makes recordings of the traces in them. One at a time may write into a folder of traces."""

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
        self.unread: list[Path] = []
        """Files of an earlier collector that cannot be read; they are left where they are."""
        self._quiet_s, self._idle_s, self._now_s = quiet_s, idle_s, now_s
        self._redactor = redactor
        self._durability: Durability = durability
        self._lock = threading.Lock()
        self._traces: dict[str, _Gathered] = {}
        self._files: dict[Path, int] = {}
        """Bytes of memory that the spans of each file take, about."""
        self._kept: set[Path] = set()
        """Files that stay, whoever else has spans in them."""
        TraceStore(folder).create()
        self._spool = folder / FOLDER
        self._spool.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder)
        self._only: Any = (self._spool / "lock").open("w")  # held as long as the collector runs
        if not _locked(self._only):
            self._only.close()
            raise UsageError(f"another `playhead collect` writes into {folder}; stop it, or give another --trace-dir")
        self._take_again()

    def take(self, body: Body) -> None:
        """Take a body in; when this returns, its spans survive a crash.

        Raises:
            RefusedError: nothing more can be taken for now.
        """
        with self._lock:
            spans, memory = sum(len(trace.spans) for trace in self._traces.values()), sum(self._files.values())
            if spans and (spans + len(body.spans) > MAX_SPANS or memory + body.memory > MAX_HELD):
                raise RefusedError(
                    503, f"more than {MAX_SPANS:,} spans, or {MAX_HELD:,} bytes, would wait: send again later"
                )
            if body.spans:
                try:
                    file = _write(self._spool, body)
                except OSError as error:
                    raise RefusedError(503, f"the spans cannot be stored: {error.strerror or error}") from None
                self._add(body, file)
            self.problems.update(body.problems)

    def record(self, *, all_of_them: bool = False) -> Iterator[Collected]:
        """Record the traces that have ended, or all, and yield what became of them.

        Raises:
            OSError: a recording cannot be written; its spans stay where they are, and it is tried again next time.
        """
        failed: OSError | None = None
        with self._lock:
            due = [trace for trace in self._traces.values() if all_of_them or self._is_due(trace)]
        for trace in due:
            try:
                if len(trace.spans) > trace.recorded:
                    yield self._record(trace)
            except OSError as error:
                failed = failed or error
        with self._lock:
            self._forget(all_of_them=all_of_them)
        if failed is not None:
            raise failed

    def close(self) -> None:
        """Let another collector have the folder."""
        self._only.close()

    def _take_again(self) -> None:
        """Take in what an earlier collector had acknowledged, in its order; what it had not, for it is not whole, is removed."""
        types = {suffix: content_type for content_type, suffix in _SUFFIXES.items()}
        for path in sorted(self._spool.iterdir()):
            if path.suffix == _PARTIAL:
                path.unlink(missing_ok=True)
            elif path.suffix in types:
                try:
                    self._add(read_body(types[path.suffix], path.read_bytes()), path)
                    self.taken_again += 1
                except (RefusedError, OSError):
                    self.unread.append(path)

    def _add(self, body: Body, file: Path) -> None:
        self._files[file] = body.memory
        for span in body.spans:
            trace = self._traces.setdefault(span.trace_id, _Gathered(span.trace_id))
            trace.files.add(file)
            trace.heard_s = self._now_s()
            trace.spans.setdefault((span.span_id, span.end_ns, len(span.attributes)), span)

    def _is_due(self, trace: _Gathered) -> bool:
        return self._now_s() - trace.heard_s >= (self._quiet_s if trace.has_root else self._idle_s)

    def _record(self, trace: _Gathered) -> Collected:
        with self._lock:
            spans, files = list(trace.spans.values()), tuple(sorted(trace.files))
        run, why = None, ""
        try:
            [run] = import_spans(
                spans,
                self.folder,
                format_name=NAME,
                grow=trace.is_ours,
                redactor=self._redactor,
                durability=self._durability,
            )
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a trace does to its import, the others are recorded
            why = f"{type(error).__name__}: {str(error)[:200]}"
        is_kept = run is None or run.outcome == "differs"
        with self._lock:
            trace.recorded = len(spans)
            trace.is_ours |= run is not None and run.outcome in {"imported", "replaced", "already-imported"}
            self._kept |= trace.files if is_kept else set()
        return Collected(trace.trace_id, run, trace.has_root, files if is_kept else (), why)

    def _forget(self, *, all_of_them: bool) -> None:
        """Forget traces that were recorded a while ago, and remove the files that no other trace needs."""
        for trace in list(self._traces.values()):
            is_old = all_of_them or self._now_s() - trace.heard_s >= LATE_S
            if is_old and len(trace.spans) <= trace.recorded:
                del self._traces[trace.trace_id]
        needed = {file for trace in self._traces.values() for file in trace.files}
        for file in self._files.keys() - needed:
            del self._files[file]
            if file not in self._kept:
                file.unlink(missing_ok=True)


def _write(folder: Path, body: Body) -> Path:
    """Write a body so that it survives a crash of the machine, and return its file."""
    path = folder / f"{time.time_ns():020d}-{os.getpid()}{_SUFFIXES[body.content_type]}"
    partial = path.with_suffix(_PARTIAL)
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(body.content)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
        sync_folder(folder)  # its name too
    except OSError:
        with suppress(OSError):  # a full disk: nothing of it stays
            partial.unlink(missing_ok=True)
            path.unlink(missing_ok=True)
        raise
    return path


def _locked(file: Any) -> bool:  # noqa: ANN401 - an open file
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
