"""`playhead import` and `playhead collect`: spans that other programs exported, from files or as they come, become recordings."""

from __future__ import annotations

import errno
import signal
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from playhead.cli import exits, options, suggestions
from playhead.cli.output import note, text_console, write_json
from playhead.cli.reading import open_store
from playhead.diagnose.terminal import Line
from playhead.errors import MissingDependencyError, NotImportableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from playhead.importing import ImportedRun, Source
    from playhead.importing.collect.collector import Collected, Collector
    from playhead.importing.collect.server import CollectServer

MEANING: Final = {
    "full": ("it can be replayed", "bold green"),
    "tools-only": ("its tools can be replayed, nothing can be concluded", "bold yellow"),
    "not": ("it cannot be replayed", "bold red"),
}
"""What a replay can do with an imported run."""
OUTCOMES: Final = {
    "imported": "imported",
    "replaced": "imported anew",
    "already-imported": "already imported",
    "differs": "not imported: a run of this id was recorded from other spans",
}
NO_RUN: Final = "traces in which no span is an agent, a model call or a tool call"
LOOK_S: Final = 0.25
"""Seconds between two looks for traces that have ended."""
_NOT_THERE: Final = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)
"""Errors of a folder in which nobody can write, or that is none."""


@contextmanager
def _writing_in(folder: Path) -> Iterator[None]:
    """Say of a folder in which no recording can be written that it is one, and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise
        why = f"no recordings can be written in {folder} ({error.strerror})"
        raise UsageError(f"{why}: --trace-dir names another folder") from None


def _tell(run: ImportedRun, *, as_json: bool, **more: Any) -> None:  # noqa: ANN401 - JSON
    """Say what became of a run, and what a replay can do with it, as soon as it is there."""
    if as_json:
        imported = run.source.model_dump(mode="json")
        write_json(
            [{"run_id": run.run_id, "path": str(run.path), "outcome": run.outcome, "imported": imported, **more}]
        )
    else:
        console = text_console()
        console.print(*_rows(run), crop=False)
        console.file.flush()


def _rows(run: ImportedRun) -> Iterator[Line]:
    source, differs = run.source, run.outcome == "differs"
    spans = f" ({source.spans:,} spans{f' of {source.service}' if source.service else ''})"
    yield Line((f"{run.run_id}: ", "bold"), OUTCOMES[run.outcome], "" if differs else spans)
    if run.kept is not None:
        yield Line("   kept     ", f"the recording before, which holds what these spans do not: {run.kept}")
    if differs:
        yield Line(("   to do    ", "yellow"), "--replace imports it anew, and keeps the recording before beside it")
        return
    meaning, style = MEANING[run.replayability]
    yield Line("   replay   ", (run.replayability, style), f": {meaning}")
    for reason in source.reasons:
        yield Line(("   because  ", "yellow"), reason)
    for remark in source.notes:
        yield Line(("   note     ", "dim"), remark)


# --- import -----------------------------------------------------------------------------------------------------------


@options.command(
    "import",
    example="playhead import spans.json\n  playhead import traces.jsonl.gz --as otlp-json --json\n"
    "  curl -s http://localhost:6006/v1/projects/default/spans | playhead import -",
    exits={
        0: "every trace is a recording now, or was one already",
        1: "a trace was imported before from other spans, or its id is another run's; or a part of a file was left out",
        3: "a file cannot be read, or holds no spans of a known format; or no trace is a run",
    },
)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=suggestions.files)
@click.option("--as", "format_name", metavar="FORMAT", help="The format of the files.  [default: by content]")
@click.option("--replace", is_flag=True, help="Import anew what differs; the recording before is kept beside it.")
@options.read_only_option
def import_(  # noqa: PLR0913 - options
    *,
    files: tuple[str, ...],
    format_name: str | None,
    replace: bool,
    read_only: tuple[str, ...],
    trace_dir: Path | None,
    as_json: bool,
) -> int:
    """Make a recording of every trace in files of spans that another program exported.

    OTLP (JSON and protobuf, as the collector's file exporter writes too), Phoenix (its REST API's spans, its data frame as
    JSON), Langfuse (traces, observations) and OpenInference JSON Lines are read, by the conventions of OpenInference,
    OpenTelemetry GenAI and OpenLLMetry. Files are told apart by what they hold, and may be compressed by gzip; - is stdin.
    Traces in which no span is an agent, a model call or a tool call are no runs: they are counted and left out.

    Of each run it is said what a replay can do with it: `full`, `tools-only` or `not`, and why. No tool of an imported run
    ever runs.
    """
    from playhead.importing import import_sources

    sources, unread = _sources(files, format_name)
    folder = open_store(trace_dir).folder
    outcomes: Counter[str] = Counter()
    with _writing_in(folder):
        for run in import_sources(sources, folder, replace=replace, read_only=read_only):
            outcomes[run.outcome] += 1
            if run.outcome != "no-run":
                _tell(run, as_json=as_json)
    for source in sources:
        for why, count in Counter(source.problems).items():
            note(f"{source.path}: left out: {count:,} {why}")
        if not source.spans:
            note(f"playhead: {source.path}: no spans of {source.format} in it: nothing was imported from it")
            unread = True
    if outcomes["no-run"]:
        note(f"left out: {outcomes['no-run']:,} {NO_RUN}")
    if unread or outcomes["no-run"] == outcomes.total():
        return exits.UNREADABLE
    is_partial = any(source.is_partial for source in sources) or all(source.is_followed for source in sources)
    return exits.FAILED if is_partial or outcomes["differs"] else exits.OK


def _sources(files: tuple[str, ...], format_name: str | None) -> tuple[list[Source], bool]:
    """Return what the files hold, and whether one of them cannot be read."""
    from playhead.importing import read_source
    from playhead.importing.limits import Room

    sources, room = [], Room()
    for name in files:
        try:
            sources.append(read_source(Path(name), format_name, room))
        except NotImportableError as error:
            note(f"playhead: {error}")
    return sources, len(sources) < len(files)


# --- collect ----------------------------------------------------------------------------------------------------------


@options.command(
    "collect",
    example="playhead collect &\n  OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 python my_agent.py",
    exits={
        0: "it was told to stop (Ctrl-C, SIGTERM), and everything that it acknowledged is recorded",
        1: "a recording could not be made; its spans are kept, and taken in again at the next start",
        130: "Ctrl-C came again; what is not recorded yet is taken in at the next start",
        143: "SIGTERM came again; the same",
    },
)
@click.option("--host", default="127.0.0.1", help="The address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=4318, help="The port; 0: a free one.")
@click.option(
    "--quiet",
    "quiet_s",
    type=click.FloatRange(min=0),
    default=3.0,
    help="Seconds of silence after which a trace is recorded.",
)
@click.option(
    "--idle",
    "idle_s",
    type=click.FloatRange(min=0),
    default=120.0,
    help="The same for one whose root has not come or ended.",
)
def collect(  # noqa: PLR0913 - options
    *, host: str, port: int, quiet_s: float, idle_s: float, trace_dir: Path | None, as_json: bool
) -> int:
    """Receive the spans that programs export (OTLP over HTTP), and make a recording of every trace.

    Whatever is instrumented with OpenInference or by OpenTelemetry's GenAI conventions can use Playhead so, without any
    change of its code: set OTEL_EXPORTER_OTLP_ENDPOINT to the address that is printed. What was acknowledged is on disk
    first, and is recorded at the next start if this one dies. No tool of an imported run ever runs.

    There is no password: listen at another address than this machine's own only where you trust everybody. A body may
    have 16 MiB, plain or unpacked; web pages are refused.
    """
    from playhead.settings import load_settings

    try:
        from playhead.importing.collect.collector import Collector
        from playhead.importing.collect.server import CollectServer
    except ImportError as error:
        raise MissingDependencyError(f"collecting spans needs {error.name}: pip install 'playhead[collect]'") from None

    with stopping() as stop:
        folder = open_store(trace_dir).folder
        with _writing_in(folder):
            collector = Collector(folder, quiet_s=quiet_s, idle_s=idle_s, durability=load_settings().durability)
        try:
            server = CollectServer(collector.take, host, port)
            collecting = _Collecting(collector, server, as_json=as_json)
            try:
                server.start()
                while not stop.wait(LOOK_S):
                    collecting.record()
            finally:
                server.stop()
            return collecting.end()
        finally:
            collector.close()


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """Let SIGINT and SIGTERM set an event; the second one ends the command at once, as it does with any other."""
    stop = threading.Event()

    def handle(number: int, _: FrameType | None) -> None:
        if stop.is_set():
            raise exits.Terminated if number == signal.SIGTERM else KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Collecting:
    """What is recorded, and what people are told of it: what goes wrong, once, and at the end how often."""

    def __init__(self, collector: Collector, server: CollectServer, *, as_json: bool) -> None:
        self._collector, self._server, self._as_json = collector, server, as_json
        self._counts: Counter[str] = Counter()
        self._failed = False
        if server.is_open:
            note(
                "playhead: WARNING: it listens to other machines too, and there is no password: whoever reaches it can "
                "write recordings here, and fill the disk. Without --host only programs on this machine reach it"
            )
        if collector.taken_again:
            note(f"{collector.taken_again:,} requests of an earlier collector are taken in again")
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
        except BrokenPipeError:  # nobody reads what it prints
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
