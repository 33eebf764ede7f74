"""`playhead export`: the spans of recorded runs, to a collector or into a file."""

from __future__ import annotations

import os
import sys
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from playhead.cli import options
from playhead.cli.output import note, text_console, write_json
from playhead.cli.reading import open_store
from playhead.diagnose.terminal import Line
from playhead.errors import PlayheadError, TraceNotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.spans.delivery import Sink
    from playhead.spans.destination import Destination
    from playhead.trace.store import TraceStore

FORMATS: Final = ("otlp-json", "openinference-jsonl")
BEGINNING: Final = 200
"""Bytes of a file in which a trace says that it is one."""


@options.command(
    "export",
    example=(
        "playhead export latest --to http://localhost:4318\n"
        "  playhead export --since 2h --resume\n"
        "  playhead export latest --format openinference-jsonl -o spans.jsonl"
    ),
    exits={
        0: "everything was delivered, or had been before",
        1: "spans were refused, could not be delivered or wait, or a file is damaged",
        **options.UNREADABLE,
    },
)
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
@click.option(
    "--since",
    "since_us",
    metavar="WHEN",
    type=options.moment,
    help="All runs that began since: `2h` ago, or 2026-11-22T09:00.",
)
@click.option("--resume", is_flag=True, help="Leave out what this collector has acknowledged.")
@click.option("--follow", is_flag=True, help="Go on until runs that still go on have ended.")
@click.option("--assume-dead", is_flag=True, help="Runs of other machines whose lock is free have ended.")
@click.option(
    "--retry-for",
    "patience_s",
    metavar="TIME",
    type=options.duration,
    default="30s",
    help="How long to try when nobody takes anything; no request lasts longer.",
)
@click.option("--no-content", is_flag=True, help="Leave out prompts, answers, arguments, results, tags and metadata.")
@click.option("--all-messages", is_flag=True, help="Show every message of each prompt, not only the newest.")
@click.option("--gen-ai", is_flag=True, help="Add OpenTelemetry's own gen_ai attributes.")
def export(  # noqa: PLR0913 - the options
    *,
    runs: tuple[str, ...],
    to: str | None,
    headers: tuple[tuple[str, str], ...],
    form: str | None,
    output: Path | None,
    since_us: int | None,
    no_content: bool,
    all_messages: bool,
    gen_ai: bool,
    trace_dir: Path | None,
    as_json: bool,
    **how: Any,  # noqa: ANN401 - options, see `Export`
) -> int:
    """Send the spans of recorded runs to an OpenTelemetry collector, or write them into a file.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    The spans follow from the trace: sent twice, they are the same spans under the same ids. What a collector has
    acknowledged is kept beside the traces, also by live export, so that --resume sends exactly what is missing, whatever
    happened to the process or the collector. Spans that a dead run has left open are sent as interrupted. A run of another
    machine (or of a container that has another name now) is dead when nobody holds its lock and its trace was silent for
    10 minutes, or with --assume-dead; until then its open spans wait, and the exit code says so.

    The collector, headers, timeout and compression are as the standard OTEL_EXPORTER_OTLP_… variables say.
    """
    if form is None and output is not None:
        raise UsageError(f"-o needs --format, one of {', '.join(FORMATS)}")
    if form is not None and (to is not None or how["resume"] or headers):
        raise UsageError("--format writes text; --to, --header and --resume are for sending it")
    destination = _destination(to, dict(headers)) if form is None else None
    paths = _chosen(open_store(trace_dir), runs, since_us)
    from playhead.spans.destination import require_opentelemetry

    require_opentelemetry()
    from playhead.cli.exporting import Export, counts
    from playhead.spans import SpanOptions

    shown = SpanOptions(content=not no_content, gen_ai=gen_ai, **({"max_messages": None} if all_messages else {}))
    where = destination.name if destination is not None else "stdout" if output is None else str(output)
    with _sink(destination, form or "", output) as sink:
        summaries, code = Export(paths, destination, shown, **how).to(sink, where)
    if form is not None and output is None:  # stdout is where the spans are
        for run in summaries:
            note(f"{run['run']}: {counts(run, 'written')}")
    elif as_json:
        write_json(summaries)
    else:
        done = "sent" if form is None else "written"
        lines = [Line((run["run"], "bold"), f"  {counts(run, done)}", whole=True) for run in summaries]
        text_console().print(*lines, Line(("to  ", "dim"), where, whole=True), crop=False)
    return code


# --- what is exported, and where to -----------------------------------------------------------------------------------


def _destination(to: str | None, headers: dict[str, str]) -> Destination:
    from playhead.spans.destination import from_environment, named

    if to is not None:
        return named(to, headers, argument="--to")
    found = from_environment()
    if found is None:
        raise UsageError(
            "there is nowhere to export to: name a collector with --to http://localhost:4318 or in "
            "OTEL_EXPORTER_OTLP_ENDPOINT, or write a file with --format otlp-json -o spans.json"
        )
    return found.with_headers(headers)


def _chosen(store: TraceStore, runs: tuple[str, ...], since_us: int | None) -> list[Path]:
    """Return the traces to export, each once, the oldest first when they are chosen by their time."""
    if bool(runs) == (since_us is not None):
        raise UsageError("name runs, or choose them with --since" + (", not both" if runs else ""))
    if since_us is None:
        return list(dict.fromkeys(store.resolve(reference) for reference in runs))
    newer = [path for path in store.paths() if _began_us(path) >= since_us]
    if not newer:
        raise TraceNotFoundError(f"no run in {store.folder} began since then")
    return newer[::-1]


def _began_us(path: Path) -> int:
    """Return when a run began; of a file that does not say, when it was last written, so that it is named, not left out."""
    from playhead.trace.store import summarise

    started_us = summarise(path).started_us
    with suppress(OSError):  # it is gone by now
        return started_us if started_us is not None else path.stat().st_mtime_ns // 1000
    return 0


@contextmanager
def _sink(destination: Destination | None, form: str, output: Path | None) -> Iterator[Sink]:
    """Open what takes the spans; a file is opened when there is something to write, and only its owner can read it."""
    from playhead.spans.delivery import Otlp
    from playhead.spans.files import SpanFile

    if destination is not None:
        with closing(Otlp(destination)) as sink:
            yield sink
    elif output is None:
        yield SpanFile(sys.stdout, form)
    elif _is_recording(output):
        raise UsageError(f"-o {output} is a recording, and is not written over")
    else:
        os.umask(0o077)
        with click.open_file(str(output), "w", encoding="utf-8", lazy=True) as file:
            yield SpanFile(file, form)


def _is_recording(path: Path) -> bool:
    """Return whether a file begins as every trace does."""
    from playhead.trace.reader import open_trace

    with suppress(OSError, EOFError, PlayheadError):
        if path.is_file():
            with open_trace(path) as file:
                return b'"kind":"run-started"' in file.read(BEGINNING)
    return False
