"""Spans to other programs and from them: `export`, `import` from files, `collect` as they come."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from playhead.cli import exits, options
from playhead.cli.output import note, tell, tell_all
from playhead.cli.reading import chosen, open_store
from playhead.diagnose.terminal import Line
from playhead.errors import MissingDependencyError, NotImportableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from playhead.importing import ImportedRun, Source
    from playhead.importing.collect.collector import Collected, Collector
    from playhead.importing.collect.server import CollectServer
    from playhead.spans.delivery import Sink
    from playhead.spans.destination import Destination

FORMATS: Final = ("otlp-json", "openinference-jsonl")


@options.command("export")
@options.runs_argument
@click.option("--to", metavar="URL", help="The collector.  [default: OTEL_EXPORTER_OTLP_ENDPOINT]")
@options.repeatable(
    "--header",
    "headers",
    "NAME=VALUE",
    "Send this header; NAME=env:VARIABLE takes it from the environment.",
    type=options.pair,
)
@click.option("--format", "form", type=click.Choice(FORMATS), help="Write spans as text, instead of sending them.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="The file for --format.  [default: stdout]",
)
@options.filters()
@click.option("--resume", is_flag=True, help="Leave out what this collector has acknowledged.")
@click.option("--follow", is_flag=True, help="Continue until all runs have ended.")
@click.option("--assume-dead", is_flag=True, help="Runs of other machines whose lock is free have ended.")
@click.option(
    "--retry-for",
    "patience_s",
    metavar="TIME",
    type=options.duration,
    default="30s",
    help="How long to retry while the collector accepts nothing.",
)
@click.option("--no-content", is_flag=True, help="Leave out prompts, answers, arguments, results, tags and metadata.")
@click.option(
    "--max-messages",
    metavar="N",
    type=click.IntRange(min=0),
    help="Messages of a prompt that its span shows; 0: all.  [default: PLAYHEAD_SPAN_MESSAGES, or 20]",
)
@click.option("--gen-ai", is_flag=True, help="Add OpenTelemetry's own gen_ai attributes.")
def export(  # noqa: PLR0913 - the options
    *,
    runs: tuple[str, ...],
    to: str | None,
    headers: tuple[tuple[str, str], ...],
    form: str | None,
    output: Path | None,
    no_content: bool,
    max_messages: int | None,
    gen_ai: bool,
    trace_dir: Path | None,
    as_json: bool,
    **how: Any,  # noqa: ANN401 - options, see `Export`
) -> int:
    """Send the spans of recorded runs to an OpenTelemetry collector, or write them into a file.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    The spans follow from the trace: sent twice, they are the same spans under the same ids. What a collector has
    acknowledged is kept beside the traces, also by live export, so that --resume sends exactly what is missing, whatever
    happened to the process or the collector. Spans that a dead run has left open are sent as interrupted. Whether a run of
    another machine (or of a container that has another name now) is dead cannot be seen: its open spans wait for
    --assume-dead, and the exit code is 1 until then.

    The collector, headers, timeout and compression are as the standard OTEL_EXPORTER_OTLP_… variables say.

    Example:
      playhead export latest --to http://localhost:4318
      playhead export --since 2h --resume
      playhead export latest --format openinference-jsonl -o spans.jsonl

    Exit codes:
      0  everything was delivered, or had been before
      1  spans were refused, could not be delivered or wait, or a file is
         damaged
      2  the command line is wrong
      3  there is no such run, or its file cannot be read
    """
    if form is None and output is not None:
        raise UsageError(f"-o needs --format, one of {', '.join(FORMATS)}")
    if form is not None and (to is not None or how["resume"] or headers):
        raise UsageError("--format writes text; --to, --header and --resume are for sending it")
    destination = _destination(to, dict(headers)) if form is None else None
    paths = chosen(open_store(trace_dir), runs, 0)[:: 1 if runs else -1]  # the oldest first
    from playhead.spans.destination import require_opentelemetry

    require_opentelemetry()
    from playhead.cli.exporting import Export, counts
    from playhead.spans import SpanOptions

    shown = SpanOptions(content=not no_content, gen_ai=gen_ai)
    if max_messages is not None:
        shown = replace(shown, max_messages=max_messages or None)
    where = destination.name if destination is not None else "stdout" if output is None else str(output)
    with _sink(destination, form or "", output) as sink:
        summaries, code = Export(paths, destination, shown, **how).to(sink, where)
    if form is not None and output is None:  # stdout is where the spans are
        for run in summaries:
            note(f"{run['run']}: {counts(run, 'written')}")
    else:
        done = "sent" if form is None else "written"
        lines = [Line((run["run"], "bold"), f"  {counts(run, done)}", whole=True) for run in summaries]
        tell_all(summaries, [*lines, Line(("to  ", "dim"), where, whole=True)], as_json=as_json)
    return code


# --- what is exported, and where to -----------------------------------------------------------------------------------


def _destination(to: str | None, headers: dict[str, str]) -> Destination:
    from playhead.spans.destination import from_environment, named

    if to is not None:
        return named(to, headers, argument="--to")
    found = from_environment(headers)
    if found is None:
        raise UsageError(
            "there is nowhere to export to: name a collector with --to http://localhost:4318 or in "
            "OTEL_EXPORTER_OTLP_ENDPOINT, or write a file with --format otlp-json -o spans.json"
        )
    return found


@contextmanager
def _sink(destination: Destination | None, form: str, output: Path | None) -> Iterator[Sink]:
    """Open what takes the spans; a file is opened when there is something to write, and only its owner can read it."""
    from playhead.cli.exporting import ToFile
    from playhead.spans.delivery import Otlp

    if destination is not None:
        with closing(Otlp(destination)) as sink:
            yield sink
    elif output is None:
        yield ToFile(sys.stdout, form)
    else:
        try:
            file = open(output, "x", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600))  # noqa: SIM115
        except OSError as error:  # nothing is overwritten
            raise UsageError(f"-o {str(output)!r}: {error.strerror}") from None
        with file:
            yield ToFile(file, form)


MEANING: Final = {
    "full": ("it can be replayed", "bold green"),
    "tools-only": ("its tools can be replayed, nothing can be concluded", "bold yellow"),
    "not": ("it cannot be replayed", "bold red"),
}
"""What a replay can do with an imported run."""
OUTCOMES: Final = {
    "imported": "imported",
    "already-imported": "already imported",
    "differs": "not imported: a run of this id was recorded from other spans",
}
NO_RUN: Final = "traces in which no span is an agent, a model call or a tool call"
LOOK_S: Final = 0.25
"""Seconds between two looks for traces that have ended."""


def _tell(run: ImportedRun, *, as_json: bool, **more: Any) -> None:  # noqa: ANN401 - JSON
    """Report an imported run, and what a replay can do with it, as soon as it is recorded."""
    found = {"run_id": run.run_id, "path": str(run.path), "outcome": run.outcome}
    tell({**found, "imported": run.source.model_dump(mode="json"), **more}, *_rows(run), as_json=as_json)
    sys.stdout.flush()


def _rows(run: ImportedRun) -> Iterator[Line]:
    source, differs = run.source, run.outcome == "differs"
    spans = f" ({source.spans:,} spans{f' of {source.service}' if source.service else ''})"
    yield Line((f"{run.run_id}: ", "bold"), OUTCOMES[run.outcome], "" if differs else spans)
    if differs:
        yield Line(("   to do    ", "yellow"), f"move {run.path} away, and import again")
        return
    meaning, style = MEANING[run.replayability]
    yield Line("   replay   ", (run.replayability, style), f": {meaning}")
    for reason in source.reasons:
        yield Line(("   because  ", "yellow"), reason)
    for remark in source.notes:
        yield Line(("   note     ", "dim"), remark)


# --- import -----------------------------------------------------------------------------------------------------------


@options.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=options.complete_files)
def import_(*, files: tuple[str, ...], trace_dir: Path | None, as_json: bool) -> int:
    """Make a recording of every trace in files of spans that another program exported.

    Files are OTLP, as JSON or protobuf: of the collector's file exporter, or of Phoenix's REST API (/spans/otlpv1). Spans
    follow the conventions of OpenInference or OpenTelemetry GenAI. Files may be compressed with gzip; - is stdin. Traces in
    which no span is an agent, a model call or a tool call are counted and left out.

    Each run comes with what a replay can do with it: `full`, `tools-only` or `not`, and why. No tool of an imported run
    ever runs.

    Example:
      playhead import spans.json
      playhead import traces.jsonl.gz --json
      curl -s http://localhost:6006/v1/projects/default/spans/otlpv1 | playhead import -

    Exit codes:
      0  every trace is a recording now, or was one already
      1  a trace was imported before from other spans, or its id is another
         run's; or a part of a file was left out
      2  the command line is wrong
      3  a file cannot be read, or is not OTLP; or no trace is a run
    """
    from playhead.importing import import_spans

    sources, unread = _sources(files)
    folder = open_store(trace_dir).folder
    outcomes: Counter[str] = Counter()
    spans = (span for source in sources for span in source.spans)
    formats = ", ".join(dict.fromkeys(source.format for source in sources))
    for run in import_spans(spans, folder, format_name=formats):
        outcomes[run.outcome] += 1
        if run.outcome != "no-run":
            _tell(run, as_json=as_json)
    for source in sources:
        for why, count in Counter(source.problems).items():
            note(f"{source.path}: left out: {count:,} {why}")
        if not source.spans:
            note(f"playhead: {source.path}: it holds no spans: nothing was imported from it")
            unread = True
    if outcomes["no-run"]:
        note(f"left out: {outcomes['no-run']:,} {NO_RUN}")
    if unread or outcomes["no-run"] == outcomes.total():
        return exits.UNREADABLE
    is_partial = any(source.is_partial for source in sources) or all(source.is_followed for source in sources)
    return exits.FAILED if is_partial or outcomes["differs"] else exits.OK


def _sources(files: tuple[str, ...]) -> tuple[list[Source], bool]:
    """Return what the files hold, and whether one of them cannot be read."""
    from playhead.importing import read_source
    from playhead.importing.limits import Quota

    sources, quota = [], Quota()
    for name in files:
        try:
            sources.append(read_source(Path(name), quota))
        except NotImportableError as error:
            note(f"playhead: {error}")
    return sources, len(sources) < len(files)


# --- collect ----------------------------------------------------------------------------------------------------------


@options.command("collect")
@click.option("--host", default="127.0.0.1", help="The address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=4318, help="The port; 0: a free one.")
def collect(*, host: str, port: int, trace_dir: Path | None, as_json: bool) -> int:
    """Receive the spans that programs export (OTLP over HTTP), and record every trace.

    Programs that are instrumented with OpenInference or OpenTelemetry's GenAI conventions need no change of code: set
    OTEL_EXPORTER_OTLP_ENDPOINT to the address that is printed. Acknowledged spans are on disk, and a collector that dies
    records them at its next start. No tool of an imported run ever runs.

    There is no password: listen at another address than this machine's own only in a network that you trust. A body may
    have 16 MiB, plain or unpacked; web pages are refused.

    Example:
      playhead collect &
      OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 python my_agent.py

    Exit codes:
      0  it was stopped (Ctrl-C, SIGTERM), and everything that it
         acknowledged is recorded
      1  a recording could not be made; its spans are kept, and taken in
         again at the next start
      2  the command line is wrong
      130  Ctrl-C came again; what is not recorded yet is taken in at the next
         start
      143  SIGTERM came again; the same
    """
    try:
        from playhead.importing.collect.collector import Collector
        from playhead.importing.collect.server import CollectServer
    except ImportError as error:
        raise MissingDependencyError(f"collecting spans needs {error.name}: pip install 'playhead[collect]'") from None

    folder = open_store(trace_dir).folder
    with stopping() as stop, closing(Collector(folder)) as collector:
        server = CollectServer(collector.take, host, port)
        collecting = _Collecting(collector, server, as_json=as_json)
        try:
            server.start()
            while not stop.wait(LOOK_S):
                collecting.record()
        finally:
            server.stop()
        return collecting.end()


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """Let SIGINT and SIGTERM set an event; the second one ends the command at once, as it does with any other."""
    stop = threading.Event()

    def handle(number: int, _: FrameType | None) -> None:
        if stop.is_set():
            raise exits.Terminated if number == signal.SIGTERM else KeyboardInterrupt
        stop.set()

    with exits.handling(handle, signal.SIGINT, signal.SIGTERM):
        yield stop


class _Collecting:
    """Records what comes in, and reports it: each problem once, and at the end how often."""

    def __init__(self, collector: Collector, server: CollectServer, *, as_json: bool) -> None:
        self._collector, self._server, self._as_json = collector, server, as_json
        self._counts: Counter[str] = Counter()
        self._failed = False
        if server.is_open:
            note(
                "playhead: WARNING: it listens to other machines too, and without a password; --host 127.0.0.1 does not"
            )
        for file in collector.unread:
            note(f"playhead: warning: {file} of an earlier collector cannot be read, and is left there")
        note(
            f"collecting: OTEL_EXPORTER_OTLP_ENDPOINT={server.address} (recordings in {collector.folder}; Ctrl-C stops)"
        )

    def record(self, *, all_of_them: bool = False) -> bool:
        """Record what is due, and return whether all of it could be written."""
        for why, count in tuple(self._server.refused.items()):
            self._count(f"requests were refused: {why}", count)
        try:
            for collected in self._collector.record(all_of_them=all_of_them):
                self._tell(collected)
        except BrokenPipeError:  # the reader of its output is gone
            raise
        except OSError as error:
            why = f"{error.strerror or error}; its spans are kept in {self._collector.folder}, and it is tried again"
            self._count(f"a recording cannot be written: {why}")
            return False
        return True

    def end(self) -> int:
        """Record all that is left, say what was left out, and return the exit code."""
        written = self.record(all_of_them=True)
        for why, count in (*self._collector.problems.items(), *self._counts.items()):
            note(f"left out: {count:,} {why}")
        return exits.OK if written and not self._failed else exits.FAILED

    def _tell(self, collected: Collected) -> None:
        run, kept = collected.run, list(map(str, collected.kept_in))
        if run is None:
            self._failed = True
            why = f"which is a bug in Playhead ({collected.why}); its spans are in {', '.join(kept)}"
            note(f"playhead: trace {collected.trace_id} cannot be recorded, {why}")
        elif run.outcome == "no-run":
            self._count(NO_RUN)
        elif run.outcome == "already-imported":
            self._counts["recorded traces that came again, with nothing new"] += 1
        else:
            _tell(run, as_json=self._as_json, complete=collected.complete, kept_in=kept)
            if not collected.complete:
                note(f"{run.run_id} is incomplete: its outermost span has not come, or not ended")
            for file in kept:
                note(
                    f"{run.run_id}: spans that came after it was recorded are in {file}, and stay there; the recording "
                    "stays as it was. One of all spans is made from an export of the whole trace"
                )

    def _count(self, why: str, count: int | None = None) -> None:
        """Count what is left out, and say the first time why."""
        if why not in self._counts:
            note(f"playhead: left out: {why}")
        self._counts[why] = self._counts[why] + 1 if count is None else count
