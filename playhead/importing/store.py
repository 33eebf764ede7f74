"""Imported runs as files: one for each trace, written whole or not at all."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from playhead.importing.agents import sort_out
from playhead.importing.conventions import read_context
from playhead.importing.conversion import ROOT, Conversion
from playhead.importing.findings import Findings, look_at_spans
from playhead.importing.fingerprints import Fingerprints
from playhead.importing.tree import make_tree
from playhead.importing.values import text_of
from playhead.trace import VERSION
from playhead.trace.blobs import sync_folder
from playhead.trace.events import RunStarted, ToolsDefined
from playhead.trace.format import FORMAT
from playhead.trace.imported import ImportedFrom
from playhead.trace.line import Record
from playhead.trace.reader import scan
from playhead.trace.recorder import Recorder
from playhead.trace.store import TraceStore
from playhead.trace.telemetry import TelemetryContext
from playhead.trace.values import scrub, to_json
from playhead.trace.writer import TraceWriter

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from playhead.importing.agents import Sorted
    from playhead.importing.spans import ForeignSpan
    from playhead.importing.tree import Tree
    from playhead.trace.events import EventBase
    from playhead.trace.imported import Replayability
    from playhead.trace.redaction import Redactor
    from playhead.trace.writer import Durability

Outcome = Literal["imported", "replaced", "already-imported", "differs", "no-run"]
"""`already-imported`: the recording was made of these spans, or of these and more. `differs`: it was made of other ones, or is
none of an import. `no-run`: no span of the trace is an agent's, a model call or a tool call, so there is no recording."""
NO_RUN: Final = "no span is an agent, a model call or a tool call"
_SAFE: Final = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """What became of one trace."""

    run_id: str
    path: Path
    outcome: Outcome
    source: ImportedFrom
    """Where it comes from, with the report."""

    kept: Path | None = None
    """Where the recording is that was replaced, when it holds what these spans do not."""

    @property
    def replayability(self) -> Replayability:
        """What a replay can do with it."""
        return self.source.replayability


def import_spans(  # noqa: PLR0913 - what an import is made of
    spans: Iterable[ForeignSpan],
    folder: Path,
    *,
    format_name: str,
    replace: bool = False,
    grow: bool = False,
    read_only: Collection[str] = (),
    redactor: Redactor | None = None,
    durability: Durability = "write",
) -> Iterator[ImportedRun]:
    """Write a recording for every trace of these spans, and yield what became of each.

    Args:
        spans: the spans, of any number of traces, in any order.
        folder: the folder of traces.
        format_name: the format that they came in.
        replace: whether a trace that was imported before from other spans is imported anew; the recording before stays
            beside it when these spans are not all that it was made of.
        grow: whether these are spans of a trace that goes on: it is replaced when they are all that it was made of, and more,
            and nothing of it is kept aside.
        read_only: names of tools that have no side effects, as the caller knows; no span says it.
        redactor: what may not reach the recording; None: nothing is taken out.
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
        made = _Import(store, trace_id, group, format_name, frozenset(read_only), redactor, durability)
        yield made.run(replace=replace, grow=grow)


def run_id_of_trace(trace_id: str) -> str:
    """Return the id of the run that a trace becomes, always the same one."""
    name = (
        trace_id if _SAFE.fullmatch(trace_id) else hashlib.sha256(trace_id.encode("utf-8", "replace")).hexdigest()[:32]
    )
    return f"import-{name}"


@dataclass(frozen=True)
class _Import:
    """One trace on its way to a file."""

    _store: TraceStore
    _trace_id: str
    _spans: list[ForeignSpan]
    _format: str
    _read_only: frozenset[str]
    _redactor: Redactor | None
    _durability: Durability

    def run(self, *, replace: bool = False, grow: bool = False) -> ImportedRun:
        """Import the trace, unless it has been."""
        known, relation = None, None
        if self._path.exists():
            known = _imported_before(self._path)
            if known is None:
                return ImportedRun(self._run_id, self._path, "differs", self._source("not"))
            relation = self._fingerprints.compared(known)
            if relation == "same" and self._read_only and self._read_only != frozenset(known.read_only):
                replace = True  # the same spans, otherwise declared: nothing is lost
            if relation == "less" or (relation == "same" and not replace):
                return ImportedRun(self._run_id, self._path, "already-imported", known)
            if not replace and not (grow and relation == "more"):
                return ImportedRun(self._run_id, self._path, "differs", known)
        if not self._found.tops:
            return ImportedRun(self._run_id, self._path, "no-run", self._source("not", (NO_RUN,)))
        holds_all = relation in ("same", "more") or grow
        # no name of a run, so that no command reads it unasked
        aside = None if known is None or holds_all else f"{self._path.name}.{known.digest[:8]}.replaced"
        kept = None if aside is None else self._path.with_name(aside)
        try:
            source = self._write_aside(replace=known is not None, kept=kept)
        except FileExistsError:  # somebody else imports the same
            return self.run()
        return ImportedRun(self._run_id, self._path, "imported" if known is None else "replaced", source, kept)

    def _write_aside(self, *, replace: bool, kept: Path | None) -> ImportedFrom:
        """Write the file in a folder of its own, and put it in its place when it is whole.

        Raises:
            FileExistsError: there is one of this name, and it is not to be replaced.
        """
        aside = Path(tempfile.mkdtemp(prefix=".importing-", dir=self._store.folder))
        try:
            path = aside / self._path.name
            source = self._write(path)
            blobs, place = path.with_suffix(".blobs"), self._path.with_suffix(".blobs")
            if blobs.is_dir():
                place.mkdir(mode=0o700, exist_ok=True)
                for blob in blobs.iterdir():
                    blob.replace(place / blob.name)
            if kept is not None and not kept.exists():
                kept.hardlink_to(self._path)
            if replace:
                path.replace(self._path)
            else:
                self._path.hardlink_to(path)  # unlike a rename, fails when there is one already
            sync_folder(self._path.parent)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        return source

    @cached_property
    def _tree(self) -> Tree:
        return make_tree(self._spans)

    @cached_property
    def _found(self) -> Sorted:
        return sort_out(self._tree)

    @cached_property
    def _fingerprints(self) -> Fingerprints:
        return Fingerprints(self._tree.spans.values())

    @cached_property
    def _run_id(self) -> str:
        return run_id_of_trace(self._trace_id)

    @property
    def _path(self) -> Path:
        return self._store.path_for(self._run_id)

    def _source(
        self, replayability: Replayability, reasons: tuple[str, ...] = (), notes: tuple[str, ...] = ()
    ) -> ImportedFrom:
        found, roots = self._found, [root for root in self._tree.roots if root.parent_id is None]
        return ImportedFrom(
            format=self._format,
            conventions=tuple(sorted(found.conventions)),
            trace_id=self._trace_id,
            root_span_id=roots[0].span_id if roots else None,
            spans=len(self._tree.spans),
            digest=self._fingerprints.digest,
            fingerprints=self._fingerprints.text,
            left_out=found.left_out + found.too_deep,
            replayability=replayability,
            reasons=reasons,
            notes=notes,
            service=self._service(),
            read_only=tuple(sorted(self._read_only)),
        )

    def _write(self, path: Path) -> ImportedFrom:
        found = self._found
        findings, clock = Findings(), _SpanClock()
        events: list[tuple[int, str, int | None, EventBase]] = []
        conversion = Conversion(
            found.root, ROOT, lambda *event: events.append(event), findings, read_only=self._read_only
        )
        conversion.run()
        conversion.complete(ended=found.has_outermost)
        look_at_spans(self._tree, found, findings)
        defined = {spec.name for event in events if isinstance(event[3], ToolsDefined) for spec in event[3].tools}
        for name in sorted(self._read_only - defined):
            findings.note("tools that were called read-only, and that no agent of the run has", name)
        source = self._source(findings.level, findings.reasons, findings.notes)
        first = min((span.start_ns for span in self._tree.spans.values() if span.start_ns), default=0)
        events.insert(0, (first, ROOT, None, self._started(conversion, source)))
        self._write_events(path, clock, events)
        return source

    def _write_events(
        self, path: Path, clock: _SpanClock, events: list[tuple[int, str, int | None, EventBase]]
    ) -> None:
        writer = TraceWriter(path, clock.now_us, self._durability)
        recorder = Recorder(clock, writer, self._redactor)
        for time_ns, owner, iteration, event in events:
            clock.move_to(time_ns // 1000)
            recorder.emit(event, owner, iteration)
        recorder.seal()
        if recorder.error is not None:
            raise recorder.error

    def _started(self, conversion: Conversion, source: ImportedFrom) -> RunStarted:
        begun = conversion.begun
        roots = [read_context(root) for root in self._tree.roots]
        contexts = [*roots, *(read_context(span) for span in list(self._tree.spans.values())[:100])]
        telemetry = TelemetryContext(
            session_id=next((each.session for each in contexts if each.session), None),
            user_id=next((each.user for each in contexts if each.user), None),
            tags=tuple(scrub(tag) for tag in next((each.tags for each in contexts if each.tags), ())),
            metadata=to_json(next((each.metadata for each in roots if each.metadata), {})),
        )
        return RunStarted(
            format=FORMAT,
            run_id=self._run_id,
            agent=begun.header,
            task=begun.task,
            versions={"playhead": VERSION},
            redacted=self._redactor is not None and self._redactor.has_rules,
            imported=source,
            telemetry=None if telemetry == TelemetryContext() else telemetry,
        )

    def _service(self) -> str | None:
        names = (text_of(span.resource.get("service.name")) for span in self._tree.spans.values())
        return next(filter(None, names), None)


class _SpanClock:
    """The time of the span that is being written; never less than before."""

    def __init__(self) -> None:
        self._now_us = 0

    def move_to(self, time_us: int) -> None:
        self._now_us = max(self._now_us, time_us)

    def now_us(self) -> int:
        return self._now_us


def _imported_before(path: Path) -> ImportedFrom | None:
    """Return where the recording of this name comes from, None when there is none, or it is not an imported one."""
    with suppress(Exception):  # whatever lies there is no import of ours
        first: Any = next(iter(scan(path)))
        if isinstance(first, Record) and isinstance(first.event, RunStarted):
            return first.event.imported
    return None
