"""Imported runs as files: one for each trace, written whole or not at all."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
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
from playhead.trace.line import Record
from playhead.trace.reader import scan
from playhead.trace.recorder import Recorder
from playhead.trace.store import TraceStore
from playhead.trace.types import ImportedFrom
from playhead.trace.writer import TraceWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from playhead.importing.agents import Sorted, Tree
    from playhead.importing.otlp import ForeignSpan
    from playhead.importing.sources import Source
    from playhead.trace.events import EventBase
    from playhead.trace.types import Replayability
    from playhead.trace.writer import Durability

Outcome = Literal["imported", "replaced", "already-imported", "differs", "no-run"]
"""`already-imported`: the recording was made of these spans. `differs`: the recording of this name was made of other spans, or is
not an import. `no-run`: no span of the trace is an agent, a model call or a tool call, so there is no recording."""
NO_RUN: Final = "no span is an agent, a model call or a tool call"
_log: Final = logging.getLogger("playhead")


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """What became of one trace."""

    run_id: str
    path: Path
    outcome: Outcome
    source: ImportedFrom
    """Where it comes from, with the replayability report."""
    kept: Path | None = None
    """Where the recording is that was replaced."""

    @property
    def replayability(self) -> Replayability:
        """What a replay can do with it."""
        return self.source.replayability


def import_file(
    path: str | Path, trace_dir: str | Path | None = None, *, replace: bool = False
) -> tuple[ImportedRun, ...]:
    """Make a recording of every trace in a file; what could not be read, or is not a run, is logged as a warning.

    Args:
        path: the file, whose content says its format; `-` for standard input.
        trace_dir: the trace folder; by default the settings' folder.
        replace: import a trace again that was imported from other spans; the earlier recording stays beside the new one.

    Raises:
        NotImportableError: the file cannot be read, is of no known format, or holds no run.
        MissingDependencyError: it is protobuf, whose package is not installed.
        OSError: a recording cannot be written.
    """
    source = read_source(Path(path))
    runs = tuple(import_sources([source], trace_dir, replace=replace))
    made = tuple(run for run in runs if run.outcome != "no-run")
    for why, count in source.problems.items():
        _log.warning("%s: left out: %d %s", path, count, why)
    if not made:
        raise NotImportableError(f"{path}: {NO_RUN if runs else 'it holds no spans'}: nothing was imported")
    if len(made) < len(runs):
        _log.warning("%s: left out: %d traces in which %s", path, len(runs) - len(made), NO_RUN)
    return made


def import_sources(
    sources: Sequence[Source], trace_dir: str | Path | None = None, *, replace: bool = False
) -> Iterator[ImportedRun]:
    """Make a recording of every trace in files, as the settings say; a trace may have spans in several files.

    Raises:
        OSError: a recording cannot be written.
    """
    settings = load_settings()
    folder = Path(trace_dir if trace_dir is not None else settings.trace_dir).expanduser()
    format_name = ", ".join(dict.fromkeys(source.format for source in sources))
    spans = (span for source in sources for span in source.spans)
    return import_spans(spans, folder, format_name=format_name, replace=replace, durability=settings.durability)


def import_spans(
    spans: Iterable[ForeignSpan],
    folder: Path,
    *,
    format_name: str,
    replace: bool = False,
    durability: Durability = "write",
) -> Iterator[ImportedRun]:
    """Write a recording for every trace of these spans, and yield what became of each.

    Args:
        spans: the spans, of any number of traces, in any order.
        folder: the trace folder.
        format_name: the format that they came in.
        replace: import a trace again that was imported from other spans; the earlier recording stays beside the new one.
        durability: what a written event survives.

    Raises:
        OSError: a file cannot be written.
    """
    traces: dict[str, list[ForeignSpan]] = defaultdict(list)
    for span in spans:
        traces[span.trace_id].append(span)
    store = TraceStore(folder)
    store.create()
    for trace_id, group in traces.items():
        yield _Import(store, trace_id, make_tree(group), format_name, replace, durability).run()


@dataclass(frozen=True)
class _Import:
    """The import of one trace."""

    store: TraceStore
    trace_id: str
    tree: Tree
    format_name: str
    replace: bool
    durability: Durability

    def run(self) -> ImportedRun:
        """Import the trace, unless it has been imported before."""
        kept = None
        if self._path.exists():
            before = _imported_before(self._path)
            if before is not None and before.digest == self._source.digest:
                return self._made("already-imported", before)
            if before is None or not self.replace:
                return self._made("differs", before or self._source)
            kept = self._path.with_name(f"{self._path.name}.{before.digest[:8]}.replaced")  # not the name of a run
        if not self._found.tops:
            return self._made("no-run", self._source)
        try:
            source = self._write_aside(kept)
        except FileExistsError:  # another process imports the same trace
            return self.run()
        return self._made("imported" if kept is None else "replaced", source, kept)

    def _made(self, outcome: Outcome, source: ImportedFrom, kept: Path | None = None) -> ImportedRun:
        return ImportedRun(self._path.stem, self._path, outcome, source, kept)

    def _write_aside(self, kept: Path | None) -> ImportedFrom:
        """Write the file in a folder of its own, and move it to its place when it is whole; `kept` is where the old one goes.

        Raises:
            FileExistsError: there is one of this name that is not to be replaced.
        """
        aside = Path(tempfile.mkdtemp(prefix=".importing-", dir=self.store.folder))
        try:
            path = aside / self._path.name
            source = self._write(path)
            blobs, place = path.with_suffix(".blobs"), self._path.with_suffix(".blobs")
            if blobs.is_dir():
                place.mkdir(mode=0o700, exist_ok=True)
                for blob in blobs.iterdir():
                    blob.replace(place / blob.name)
            if kept is None:
                self._path.hardlink_to(path)  # unlike a rename, this fails if there is one already
            else:
                with suppress(FileExistsError):
                    kept.hardlink_to(self._path)
                path.replace(self._path)
            sync_folder(self._path.parent)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        return source

    @cached_property
    def _found(self) -> Sorted:
        return sort_out(self.tree)

    @cached_property
    def _path(self) -> Path:
        """The file of the trace's run, always the same one."""
        return self.store.path_for(f"import-{self.trace_id}")

    @cached_property
    def _source(self) -> ImportedFrom:
        """Where the recording comes from, without the replayability report."""
        found, spans = self._found, self.tree.spans.values()
        lines = sorted(
            f"{span.span_id} {span.parent_id} {span.start_ns} {span.end_ns} {digest(span.attributes)}" for span in spans
        )
        return ImportedFrom(
            format=self.format_name,
            trace_id=self.trace_id,
            root_span_id=next((root.span_id for root in self.tree.roots if root.parent_id is None), None),
            spans=len(spans),
            digest=digest(lines),
            left_out=found.left_out + found.too_deep,
            reasons=() if found.tops else (NO_RUN,),
            service=first_text(*(span.resource.get("service.name") for span in spans)),
        )

    def _write(self, path: Path) -> ImportedFrom:
        found, findings = self._found, Findings()
        events: list[tuple[int, str, int | None, EventBase]] = []
        conversion = Conversion(found.root, ROOT, lambda *event: events.append(event), findings)
        conversion.run()
        conversion.complete(ended=found.has_outermost)
        look_at_spans(self.tree, found, findings)
        report = {"replayability": findings.level, "reasons": findings.reasons, "notes": findings.notes}
        source = self._source.model_copy(update=report)
        started = RunStarted(
            format=FORMAT,
            run_id=self._path.stem,
            agent=conversion.header,
            task=conversion.task,
            versions={"playhead": VERSION},
            imported=source,
            telemetry=context_of([*self.tree.roots, *list(self.tree.spans.values())[:100]]),
        )
        first = min((span.start_ns for span in self.tree.spans.values() if span.start_ns), default=0)
        clock = _SpanClock()
        writer = TraceWriter(path, clock.now_us, self.durability)
        recorder = Recorder(clock, writer, None)
        for time_ns, owner, iteration, event in ((first, ROOT, None, started), *events):
            clock.move_to(time_ns // 1000)
            recorder.emit(event, owner, iteration)
        recorder.seal()
        if recorder.error is not None:
            raise recorder.error
        return source


class _SpanClock:
    """The time of the span that is being written; it never goes backwards."""

    def __init__(self) -> None:
        self._now_us = 0

    def move_to(self, time_us: int) -> None:
        self._now_us = max(self._now_us, time_us)

    def now_us(self) -> int:
        return self._now_us


def _imported_before(path: Path) -> ImportedFrom | None:
    """Return where the recording of this name comes from; None if it is not an imported one."""
    with suppress(Exception):  # a damaged file is not an import
        first: Any = next(iter(scan(path)))
        if isinstance(first, Record) and isinstance(first.event, RunStarted):
            return first.event.imported
    return None
