"""`playhead collect`: a live receiver of spans, which become recordings."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from playhead.cli import exits, options
from playhead.cli.imported import run_as_json, run_lines, writing_in
from playhead.cli.output import note, text_console, write_json
from playhead.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType

    from playhead.importing.collect.collector import Collected, Collector
    from playhead.importing.collect.server import CollectServer

LOOK_S: Final = 0.25
"""Seconds between two looks for traces that have ended."""


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
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=4318, show_default=True, help="The port; 0: a free one.")
@click.option(
    "--quiet",
    "quiet_s",
    type=click.FloatRange(min=0),
    default=3.0,
    show_default=True,
    metavar="S",
    help="Seconds without a span after which a trace whose root has ended is recorded.",
)
@click.option(
    "--idle",
    "idle_s",
    type=click.FloatRange(min=0),
    default=120.0,
    show_default=True,
    metavar="S",
    help="Seconds after which one is recorded whose root has not come.",
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
    from playhead.settings import load_settings  # noqa: PLC0415 - `--help` needs no server

    try:
        from playhead.importing.collect.collector import Collector  # noqa: PLC0415 - the same
        from playhead.importing.collect.server import CollectServer  # noqa: PLC0415 - the same
    except ImportError as error:
        raise MissingDependencyError(f"collecting spans needs {error.name}: pip install 'playhead[collect]'") from None

    with _stopping() as stop:
        folder = options.open_store(trace_dir).folder
        with writing_in(folder):
            collector = Collector(folder, quiet_s=quiet_s, idle_s=idle_s, durability=load_settings().durability)
        try:
            server = CollectServer(collector.take, host, port)
            _introduce(collector, server)
            told = Told(collector, server, as_json=as_json)
            try:
                server.start()
                while not stop.wait(LOOK_S):
                    told.record()
            finally:
                server.stop()
            return told.end()
        finally:
            collector.close()


def _introduce(collector: Collector, server: CollectServer) -> None:
    if server.is_open:
        note(
            "playhead: WARNING: it listens to other machines too, and there is no password: whoever reaches it can write"
        )
        note("         recordings here, and fill the disk. Without --host only programs on this machine reach it")
    if collector.taken_again:
        note(f"{collector.taken_again:,} requests of an earlier collector are taken in again")
    for file in collector.unread:
        note(f"playhead: warning: {file} of an earlier collector cannot be read, and is left there")
    note(f"collecting: OTEL_EXPORTER_OTLP_ENDPOINT={server.address} (recordings in {collector.folder}; Ctrl-C stops)")


@contextmanager
def _stopping() -> Iterator[threading.Event]:
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


class Told:
    """What is recorded, and what people are told of it: what goes wrong, once."""

    def __init__(self, collector: Collector, server: CollectServer, *, as_json: bool) -> None:
        self._collector = collector
        self._server = server
        self._as_json = as_json
        self._said: set[str] = set()
        self._no_runs = 0
        self._again = 0
        self._failed = False

    def record(self, *, all_of_them: bool = False) -> bool:
        """Record what is due, and return whether all of it could be written."""
        for why in tuple(self._server.refused):
            self._once(f"playhead: refused: {why}")
        try:
            for collected in self._collector.record(all_of_them=all_of_them):
                self._tell(collected)
        except BrokenPipeError:  # nobody reads what it prints
            raise
        except OSError as error:
            where = self._collector.folder
            self._once(
                f"playhead: a recording cannot be written: {error.strerror or error}; its spans are kept in {where}, and "
                "it is tried again"
            )
            return False
        return True

    def end(self) -> int:
        """Record all that is left, say what was left out, and return the exit code."""
        written = self.record(all_of_them=True)
        for why, count in self._collector.problems.items():
            note(f"left out: {count:,} {why}")
        if self._no_runs:
            note(f"left out: {self._no_runs:,} traces in which no span is an agent, a model call or a tool call")
        if self._again:
            note(f"came again: spans of {self._again:,} recorded traces, of which nothing was new")
        for why, count in self._server.refused.items():
            if count > 1:
                note(f"refused: {count:,} requests: {why}")
        return exits.OK if written and not self._failed else exits.FAILED

    def _tell(self, collected: Collected) -> None:
        if collected.run is None:
            self._failed = True
            files = ", ".join(map(str, collected.kept_in))
            note(
                f"playhead: trace {collected.trace_id} cannot be recorded, which is a bug in Playhead ({collected.why}); "
                f"its spans are in {files}"
            )
            return
        if collected.run.outcome in ("no-run", "already-imported"):
            self._count(collected.run.outcome)
            return
        if self._as_json:
            told = {**run_as_json(collected.run), "complete": collected.complete}
            write_json([{**told, "kept_in": [str(path) for path in collected.kept_in]}])
        else:
            console = text_console()
            console.print(*run_lines(collected.run), crop=False)
            console.file.flush()
        if not collected.complete:
            note(f"{collected.run.run_id} is incomplete: its outermost span has not come, or not ended")
        for file in collected.kept_in:
            note(
                f"{collected.run.run_id}: spans that came after it was recorded are in {file}, and stay there; the recording "
                "stays as it was. One of all spans is made from an export of the whole trace"
            )

    def _count(self, outcome: str) -> None:
        if outcome == "already-imported":
            self._again += 1
            return
        self._no_runs += 1
        self._once(
            "traces in which no span is an agent, a model call or a tool call come too, and are left out: no runs"
        )

    def _once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            note(text)
