"""`playhead collect`: a live receiver of spans, which become recordings."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from playhead.cli import exits, options
from playhead.cli.imported import run_as_json, run_lines
from playhead.cli.output import note, text_console, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playhead.importing.collect import Collected, Collector

LOOK_S: Final = 0.25
"""Seconds between two looks for traces that have ended."""


@options.command(
    "collect",
    example="playhead collect &\n  OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 python my_agent.py",
    exits={
        0: "it was told to stop (Ctrl-C, SIGTERM), and everything that it acknowledged is recorded",
        1: "a recording could not be written; its spans are kept, and taken in again at the next start",
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
def command(  # noqa: PLR0913 - options
    *, host: str, port: int, quiet_s: float, idle_s: float, trace_dir: Path | None, as_json: bool
) -> int:
    """Receive the spans that programs export (OTLP over HTTP), and make a recording of every trace.

    Whatever is instrumented with OpenInference or by OpenTelemetry's GenAI conventions can use Playhead so, without any
    change of its code: set OTEL_EXPORTER_OTLP_ENDPOINT to the address that is printed. What was acknowledged is on disk
    first, and is recorded at the next start if this one dies. No tool of an imported run ever runs.

    There is no password: listen at another address than this machine's own only where you trust everybody.
    """
    from playhead.importing.collect import Collector, CollectServer  # noqa: PLC0415 - `--help` needs no server
    from playhead.importing.collect.server import LOOPBACK  # noqa: PLC0415 - as above

    collector = Collector(options.open_store(trace_dir).folder, quiet_s=quiet_s, idle_s=idle_s)
    try:
        server = CollectServer(collector.take, host, port)
        if host not in LOOPBACK:
            note(f"playhead: warning: {host} is open to others: whoever reaches it can write recordings here")
        if collector.taken_again:
            note(f"{collector.taken_again:,} requests of an earlier collector are taken in again")
        for file in collector.unread:
            note(f"playhead: warning: {file} of an earlier collector cannot be read, and is left there")
        with _stopping() as stop:
            server.start()
            note(
                f"collecting: OTEL_EXPORTER_OTLP_ENDPOINT={server.address} (recordings in {collector.folder}; Ctrl-C stops)"
            )
            try:
                while not stop.wait(LOOK_S):
                    _record(collector, as_json=as_json)
            finally:
                server.stop()
        _record(collector, as_json=as_json, all_of_them=True)
    except OSError as error:
        note(
            f"playhead: a recording cannot be written: {error.strerror or error}; its spans are kept in {collector.folder}"
        )
        return exits.FAILED
    finally:
        collector.close()
    for why, count in collector.problems.items():
        note(f"left out: {count:,} {why}")
    return exits.OK


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """Let SIGINT and SIGTERM set an event, and nothing else."""
    stop = threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _record(collector: Collector, *, as_json: bool, all_of_them: bool = False) -> None:
    for collected in collector.record(all_of_them=all_of_them):
        if as_json:
            write_json([_as_json(collected)])
        else:
            console = text_console()
            console.print(*run_lines(collected.run), crop=False)
            console.file.flush()
        if not collected.complete:
            note(f"{collected.run.run_id} is incomplete: its outermost span has not come, or not ended")
        for file in collected.kept_in:
            note(f"{collected.run.run_id}: spans that came after it was recorded are in {file}")


def _as_json(collected: Collected) -> dict[str, Any]:
    return {
        **run_as_json(collected.run),
        "complete": collected.complete,
        "kept_in": [str(path) for path in collected.kept_in],
    }
