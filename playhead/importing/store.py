"""Writes imported runs: one file for each trace, written completely or not at all."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from playhead.errors import NotImportableError
from playhead.importing.agents import make_tree, sort_out
from playhead.importing.conventions import context_of
from playhead.importing.conversion import ROOT, Conversion
from playhead.importing.findings import Findings, look_at_spans
from playhead.importing.sources import read_source
from playhead.importing.values import digest, first_text
from playhead.settings import load_settings
from playhead.trace import VERSION
from playhead.trace.blobs import sync_folder
from playhead.trace.events import RunStarted
from playhead.trace.format import FORMAT
from playhead.trace.header import ImportedFrom
from playhead.trace.reader import scan
from playhead.trace.recorder import Recorder
from playhead.trace.store import TraceStore
from playhead.trace.writer import TraceWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from playhead.importing.agents import Sorted, Tree
    from playhead.importing.otlp import ForeignSpan
    from playhead.trace.events import EventBase
    from playhead.trace.header import Replayability

Outcome = Literal["imported", "already-imported", "differs", "no-run"]
"""`already-imported`: the recording was made of these spans. `differs`: the recording of this name was made of other spans, or is
not an import. `no-run`: no span of the trace is an agent, a model call or a tool call, so there is no recording."""
NO_RUN: Final = "no span is an agent, a model call or a tool call"
_log: Final = logging.getLogger("playhead")


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """The result of importing one trace."""

    path: Path
    outcome: Outcome
    source: ImportedFrom
    """The source of the run, with the replayability report."""

    @property
    def run_id(self) -> str:
        """The id of the run, always the same for a trace."""
        return self.path.stem

    @property
    def replayability(self) -> Replayability:
        """How far it can be replayed."""
        return self.source.replayability


def import_file(path: str | Path, trace_dir: str | Path | None = None) -> tuple[ImportedRun, ...]:
    """Make a recording of every trace in a file; parts that cannot be read or are not a run are logged as warnings.

    Args:
        path: the file, whose format is detected from its content; `-` for standard input.
        trace_dir: the trace folder; by default the settings' folder.

    Raises:
        NotImportableError: the file cannot be read, has no known format, or contains no run.
        MissingDependencyError: it is protobuf, whose package is not installed.
        OSError: a recording cannot be written.
    """
    source = read_source(Path(path))
    folder = Path(trace_dir if trace_dir is not None else load_settings().trace_dir).expanduser()
    runs = tuple(import_spans(source.spans, folder, format_name=source.format))
    made = tuple(run for run in runs if run.outcome != "no-run")
    for why, count in source.problems.items():
        _log.warning("%s: left out: %d %s", path, count, why)
    if not made:
        raise NotImportableError(f"{path}: {NO_RUN if runs else 'it holds no spans'}: nothing was imported")
    if len(made) < len(runs):
        _log.warning("%s: left out: %d traces in which %s", path, len(runs) - len(made), NO_RUN)
    return made


def import_spans(spans: Iterable[ForeignSpan], folder: Path, *, format_name: str) -> Iterator[ImportedRun]:
    """Write a recording for every trace of these spans, using the settings, and yield each result.

    Args:
        spans: the spans, of any number of traces, in any order.
        folder: the trace folder.
        format_name: the format of the spans.

    Raises:
        OSError: a file cannot be written.
    """
    traces: dict[str, list[ForeignSpan]] = defaultdict(list)
    for span in spans:
        traces[span.trace_id].append(span)
    store = TraceStore(folder)
    store.create()
    for trace_id, group in traces.items():
        path, tree = store.path_for(f"import-{trace_id}"), make_tree(group)
        found = sort_out(tree)
        source = _source_of(tree, found, trace_id, format_name)
        run = _made_before(path, source)
        while run is None:
            try:
                run = ImportedRun(path, "imported", _write(path, source, tree, found))
            except FileExistsError:  # another process has imported the same trace in the meantime
                run = _made_before(path, source)
        yield run


def _made_before(path: Path, source: ImportedFrom) -> ImportedRun | None:
    """Return the result for a trace that was imported before or is not a run; None if a recording should be written."""
    if not path.exists():
        return ImportedRun(path, "no-run", source) if source.reasons else None
    before = None
    with suppress(Exception):  # a damaged file is not an import
        first: Any = next(iter(scan(path)))
        before = first.event.imported
    is_same = before is not None and before.digest == source.digest
    return ImportedRun(path, "already-imported" if is_same else "differs", before or source)


def _source_of(tree: Tree, found: Sorted, trace_id: str, format_name: str) -> ImportedFrom:
    """Return the source of a recording, without the replayability report."""
    spans = tree.spans.values()
    lines = sorted(
        f"{span.span_id} {span.parent_id} {span.start_ns} {span.end_ns} {digest(span.attributes)}" for span in spans
    )
    return ImportedFrom(
        format=format_name,
        trace_id=trace_id,
        root_span_id=next((root.span_id for root in tree.roots if root.parent_id is None), None),
        spans=len(spans),
        digest=digest(lines),
        left_out=found.left_out + found.too_deep,
        reasons=() if found.tops else (NO_RUN,),
        service=first_text(*(span.resource.get("service.name") for span in spans)),
    )


def _write(path: Path, source: ImportedFrom, tree: Tree, found: Sorted) -> ImportedFrom:
    """Write a recording in a temporary folder and move it into place when complete; return its source with the report.

    Raises:
        FileExistsError: a recording of this name already exists.
    """
    findings = Findings()
    events: list[tuple[int, str, int | None, EventBase]] = []
    conversion = Conversion(found.root, ROOT, lambda *event: events.append(event), findings)
    conversion.run()
    conversion.complete(ended=found.has_outermost)
    look_at_spans(tree, found, findings)
    report = {"replayability": findings.level, "reasons": findings.reasons, "notes": findings.notes}
    source = source.model_copy(update=report)
    started = RunStarted(
        format=FORMAT,
        run_id=path.stem,
        agent=conversion.header,
        task=conversion.task,
        versions={"playhead": VERSION},
        imported=source,
        telemetry=context_of([*tree.roots, *list(tree.spans.values())[:100]]),
    )
    first = min((span.start_ns for span in tree.spans.values() if span.start_ns), default=0)
    aside = Path(tempfile.mkdtemp(prefix=".importing-", dir=path.parent))
    try:
        _record(aside / path.name, [(first, ROOT, None, started), *events])
        blobs, place = (aside / path.name).with_suffix(".blobs"), path.with_suffix(".blobs")
        if blobs.is_dir():
            place.mkdir(mode=0o700, exist_ok=True)
            for blob in blobs.iterdir():
                blob.replace(place / blob.name)
        path.hardlink_to(aside / path.name)  # unlike a rename, this fails if there is one already
        sync_folder(path.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return source


def _record(path: Path, events: list[tuple[int, str, int | None, EventBase]]) -> None:
    """Write events, each at its time in nanoseconds."""
    clock = _SpanClock()
    recorder = Recorder(clock, TraceWriter(path, clock.now_us, load_settings().durability), None)
    for time_ns, owner, iteration, event in events:
        clock.move_to(time_ns // 1000)
        recorder.emit(event, owner, iteration)
    recorder.seal()
    if recorder.error is not None:
        raise recorder.error


class _SpanClock:
    """The time of the span that is being written; it never goes backwards."""

    def __init__(self) -> None:
        self._now_us = 0

    def move_to(self, time_us: int) -> None:
        self._now_us = max(self._now_us, time_us)

    def now_us(self) -> int:
        return self._now_us
