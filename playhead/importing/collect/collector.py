"""From bodies to recordings: any thread may take a body, one thread records.

A body is stored in a file before it is acknowledged, and stays there until its traces are recorded; the next collector reads the
files that are left. A trace is recorded when its root has ended and no more spans of it have arrived for a while.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import NotImportableError, UsageError
from playhead.importing.limits import Quota
from playhead.importing.otlp import is_otlp, spans_of_json, spans_of_message
from playhead.importing.store import import_spans
from playhead.importing.values import read_json
from playhead.trace.blobs import create_file, sync_folder
from playhead.trace.store import TraceStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playhead.importing.otlp import ForeignSpan, Problems
    from playhead.importing.store import ImportedRun

QUIET_S: Final = 10.0
"""Seconds without a span after which a trace whose root has ended is recorded."""
IDLE_S: Final = 120.0
"""Seconds without a span after which a trace is recorded without its root."""
MAX_HELD: Final = 256 * 1024**2
"""Limit on the estimated bytes of memory of all spans waiting to be recorded, and of one body."""
NAME: Final = "otlp-http"
"""The format of a collector's recordings."""
FOLDER: Final = ".collect"
"""The name of the folder of stored bodies, in the trace folder."""
PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
SMALLER: Final = "export smaller batches (OTEL_BSP_MAX_EXPORT_BATCH_SIZE)"
_TYPES: Final = {".pb": PROTOBUF, ".json": JSON}
_PARTIAL: Final = ".tmp"


class RefusedError(Exception):
    """The request is refused with an HTTP status; after 503 the sender may retry."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Body:
    """A body, parsed."""

    suffix: str
    """The suffix of the file that stores it."""
    content: bytes
    """Decompressed."""
    spans: tuple[ForeignSpan, ...]
    problems: Problems
    """Number of left-out parts, by reason."""
    memory: int
    """Estimated bytes of memory of its spans."""


@dataclass(frozen=True, slots=True)
class Collected:
    """A trace that was recorded, or that could not be recorded."""

    trace_id: str
    run: ImportedRun | None
    """None when it could not be recorded."""
    complete: bool = False
    """Whether its outermost span has arrived and ended."""
    kept_in: tuple[Path, ...] = ()
    """Files of its spans, when the spans could not be recorded or could not be added to an earlier recording."""
    why: str = ""
    """Why it could not be recorded."""


@dataclass(eq=False)
class _Gathered:
    """The spans of one trace."""

    spans: list[ForeignSpan] = field(default_factory=list)
    files: set[Path] = field(default_factory=set)
    heard_s: float = 0.0

    @property
    def has_root(self) -> bool:
        return any(span.parent_id is None and span.end_ns is not None for span in self.spans)


def read_body(content_type: str, content: bytes) -> Body:
    """Return the spans of a body.

    Raises:
        RefusedError: it is not an export of traces, or takes too much memory.
    """
    problems: Problems = Counter()
    quota = Quota(memory=MAX_HELD)
    try:
        if content_type == PROTOBUF:
            spans = tuple(spans_of_message(content, problems, quota))
        else:
            quota.add_json(content)
            document = read_json(content)
            if document != {} and not is_otlp(document):
                raise RefusedError(400, "the body is not OTLP: expected an object with resourceSpans, a list")
            spans = tuple(spans_of_json(document, problems))
    except ValueError:
        raise RefusedError(400, "the body is not JSON, or nested too deep") from None
    except NotImportableError as error:
        if quota.memory > MAX_HELD:
            raise RefusedError(413, f"the body would take more than {MAX_HELD:,} bytes of memory: {SMALLER}") from None
        raise RefusedError(400, str(error)) from None
    return Body(".pb" if content_type == PROTOBUF else ".json", content, spans, problems, quota.memory)


class Collector:
    """Accepts bodies and records their traces. Only one collector at a time may write to a trace folder."""

    def __init__(
        self,
        folder: Path,
        *,
        quiet_s: float = QUIET_S,
        idle_s: float = IDLE_S,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open the trace folder, and read the bodies that an earlier collector stored but did not record.

        Raises:
            UsageError: another collector is using the folder.
            OSError: the folder cannot be created.
        """
        self.folder = folder
        self.problems: Problems = Counter()
        """Number of left-out parts of bodies, by reason."""
        self.unread: list[Path] = []
        """Files of an earlier collector that cannot be read; they are left where they are."""
        self._quiet_s, self._idle_s, self._now_s = quiet_s, idle_s, now_s
        self._lock = threading.Lock()
        self._traces: dict[str, _Gathered] = {}
        self._files: dict[Path, int] = {}
        """Estimated bytes of memory of the spans in each file."""
        TraceStore(folder).create()
        self._spool = folder / FOLDER
        self._spool.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder)
        self._only: Any = (self._spool / "lock").open("w")  # locked as long as the collector runs
        try:
            fcntl.flock(self._only, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._only.close()
            raise UsageError(
                f"another `playhead collect` writes into {folder}; stop it, or give another --trace-dir"
            ) from None
        self._take_again()

    def take(self, body: Body) -> None:
        """Take a body; when this returns, its spans survive a crash.

        Raises:
            RefusedError: it cannot be stored, or too many spans are waiting to be recorded.
        """
        with self._lock:
            if self._files and sum(self._files.values()) + body.memory > MAX_HELD:
                raise RefusedError(503, f"spans of more than {MAX_HELD:,} bytes would wait: send again later")
            if body.spans:
                try:
                    file = _store(self._spool, body)
                except OSError as error:
                    raise RefusedError(503, f"the spans cannot be stored: {error.strerror or error}") from None
                self._add(body, file)
            self.problems.update(body.problems)

    def record(self, *, all_of_them: bool = False) -> Iterator[Collected]:
        """Record the traces that have ended, or all, and yield each.

        Raises:
            OSError: a recording cannot be written; its spans stay stored, and the other traces come first next time.
        """
        with self._lock:
            due = [trace_id for trace_id, trace in self._traces.items() if all_of_them or self._is_due(trace)]
        for trace_id in due:
            yield self._record(trace_id)

    def close(self) -> None:
        """Release the folder for another collector."""
        self._only.close()

    def _take_again(self) -> None:
        """Read the files of an earlier collector in order; incomplete files were never acknowledged, and are removed."""
        for path in sorted(self._spool.iterdir()):
            if path.suffix == _PARTIAL:
                path.unlink(missing_ok=True)
            elif path.suffix in _TYPES:
                try:
                    self._add(read_body(_TYPES[path.suffix], path.read_bytes()), path)
                except (RefusedError, OSError):
                    self.unread.append(path)

    def _add(self, body: Body, file: Path) -> None:
        self._files[file] = body.memory
        for span in body.spans:
            trace = self._traces.setdefault(span.trace_id, _Gathered())
            trace.spans.append(span)
            trace.files.add(file)
            trace.heard_s = self._now_s()

    def _is_due(self, trace: _Gathered) -> bool:
        return self._now_s() - trace.heard_s >= (self._quiet_s if trace.has_root else self._idle_s)

    def _record(self, trace_id: str) -> Collected:
        """Record a trace and forget it. A file is removed with its last trace, but stays if a trace in it could not be recorded."""
        with self._lock:
            trace = self._traces.pop(trace_id)
        files, run, why = tuple(sorted(trace.files)), None, ""
        try:
            [run] = import_spans(trace.spans, self.folder, format_name=NAME)
        except OSError:
            with self._lock:
                later = self._traces.get(trace_id, _Gathered())
                trace.spans, trace.files = trace.spans + later.spans, trace.files | later.files
                self._traces[trace_id] = trace
            raise
        except Exception as error:  # noqa: BLE001 - a trace that breaks the import must not stop the others
            why = f"{type(error).__name__}: {str(error)[:200]}"
        is_kept = run is None or run.outcome == "differs"
        with self._lock:
            needed = {file for trace in self._traces.values() for file in trace.files}
            for file in trace.files:
                if is_kept:
                    self._files.pop(file, None)  # the file stays, whatever other traces it contains
                elif file not in needed and self._files.pop(file, None) is not None:
                    file.unlink(missing_ok=True)
        return Collected(trace_id, run, trace.has_root, files if is_kept else (), why)


def _store(folder: Path, body: Body) -> Path:
    """Write a body and sync it to disk; return its file. On an error, such as a full disk, no partial file stays."""
    path = folder / f"{time.time_ns():020d}-{os.getpid()}{body.suffix}"
    try:
        with os.fdopen(create_file(path, body.content), "ab") as file:
            os.fsync(file.fileno())
        sync_folder(folder)  # the folder's entry, too
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return path
