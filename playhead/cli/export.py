"""`playhead export`: the spans of recorded runs, to a collector or into a file."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import click

from playhead.cli import exits, options
from playhead.cli.output import note, text_console, write_json
from playhead.cli.reading import open_store
from playhead.diagnose.terminal import Line
from playhead.errors import PlayheadError, TraceNotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.spans import SpanOptions
    from playhead.spans.delivery import Sink
    from playhead.spans.destination import Destination
    from playhead.spans.pump import Pump
    from playhead.spans.run_export import RunExport
    from playhead.trace.store import TraceStore

FORMATS: Final = ("otlp-json", "openinference-jsonl")
POLL_S: Final = 0.2
"""Seconds between two looks at a run that goes on."""
LEAST_S: Final = 0.01
"""Seconds of a request at least."""
TO_COUNT_S: Final = 5.0
"""Seconds in which what could not be delivered is counted, of all runs."""
LONGEST_HOST: Final = 80
"""Characters of a machine's name that are shown."""
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
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file for --format.  [default: stdout]")
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
    show_default=True,
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
    **how: Any,  # noqa: ANN401 - options, see `Order`
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
    from playhead.spans import SpanOptions

    shown = SpanOptions(content=not no_content, gen_ai=gen_ai, **({"max_messages": None} if all_messages else {}))
    order = Order(paths, destination, shown, **how)
    where = destination.name if destination is not None else "stdout" if output is None else str(output)
    with _sink(destination, form or "", output, paths) as sink:
        summaries, code = _Export(order, sink, where).run()
    if form is not None and output is None:  # stdout is where the spans are
        for run in summaries:
            note(f"{run['run']}: {_counts(run, 'written')}")
    elif as_json:
        write_json(summaries)
    else:
        done = "sent" if form is None else "written"
        lines = [Line((run["run"], "bold"), f"  {_counts(run, done)}", whole=True) for run in summaries]
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
def _sink(destination: Destination | None, form: str, output: Path | None, paths: list[Path]) -> Iterator[Sink]:
    """Open what takes the spans."""
    from playhead.spans.delivery import Otlp
    from playhead.spans.files import SpanFile

    if destination is not None:
        sink = Otlp(destination)
        try:
            yield sink
        finally:
            sink.close()
    elif output is None:
        yield SpanFile(sys.stdout, form)
    else:
        file = _OutputFile(output, paths)
        yield SpanFile(file, form)
        file.close()


class _OutputFile:
    """A text file that is opened when there is something to write: until then, what was there stays as it is."""

    def __init__(self, path: Path, traces: list[Path]) -> None:
        """Refuse what cannot be written, and what was recorded."""
        if any(path.exists() and each.exists() and path.samefile(each) for each in traces) or _is_recording(path):
            raise UsageError(f"-o {path} is a recording, and is not written over")
        if path.is_dir() or not path.parent.is_dir():
            why = "it is a folder; name a file in it" if path.is_dir() else f"there is no folder {path.parent}"
            raise UsageError(f"-o {path} cannot be written: {why}")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise UsageError(f"-o {path} cannot be written: Permission denied")
        self._path = path
        self._file: IO[str] | None = None

    def write(self, text: str) -> int:
        """Write text."""
        if self._file is None:
            own = partial(os.open, mode=0o600)  # readable by its owner only
            self._file = open(self._path, "w", encoding="utf-8", opener=own)  # noqa: SIM115 - see `close`
        return self._file.write(text)

    def flush(self) -> None:
        """Hand over what was written, also to who reads while it grows."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Close it; when nothing was written, say so."""
        if self._file is None:
            note(f"there were no spans to write: {self._path} is as it was")
        else:
            self._file.close()


def _is_recording(path: Path) -> bool:
    """Return whether a file begins as every trace does."""
    from playhead.trace.reader import open_trace

    with suppress(OSError, EOFError, PlayheadError):
        if path.is_file():
            with open_trace(path) as file:
                return b'"kind":"run-started"' in file.read(BEGINNING)
    return False


# --- exporting --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Order:
    """What is to be exported, and how."""

    paths: list[Path]
    """The traces."""
    destination: Destination | None
    """The collector; None: the spans are written as text."""
    shown: SpanOptions
    """What the spans show."""
    resume: bool
    """Whether to leave out what the collector has acknowledged."""
    follow: bool
    """Whether to go on until runs that go on have ended."""
    patience_s: float
    """Seconds for which a collector is asked that does not answer, the last request included."""
    assume_dead: bool = False
    """Whether a run is over of which it cannot be seen from here."""

    def run(self, path: Path) -> RunExport:
        """Return a run on its way."""
        from playhead.spans import SpanBuilder
        from playhead.spans.cursor import Cursor
        from playhead.spans.run_export import RunExport
        from playhead.spans.sources import TraceSource, is_over
        from playhead.trace.blobs import run_id_of

        cursor = None if self.destination is None else Cursor(path, self.destination)
        source = partial(TraceSource, path, partial(is_over, path, assume_dead=self.assume_dead))
        return RunExport(run_id_of(path), path, source, partial(SpanBuilder, self.shown), cursor, resume=self.resume)

    def perhaps_on(self, run: RunExport) -> str | None:
        """Return the other machine on which a run may go on, so that its open spans are not sent."""
        from playhead.spans.sources import perhaps_on

        return None if self.assume_dead or run.done or run.path is None else perhaps_on(run.path)


class _Export:
    """Sends the spans of traces, and says on stderr what is not as it should be."""

    def __init__(self, order: Order, sink: Sink, where: str) -> None:
        from playhead.spans.pump import Pump

        self._order, self._where = order, where
        self._runs = [order.run(path) for path in order.paths]
        self._pump: Pump = Pump(sink)
        self._pump.runs.extend(self._runs)
        self._unseen: set[RunExport] = set()

    def run(self) -> tuple[list[dict[str, Any]], int]:
        """Return what became of each run's spans, and the exit code."""
        self._send()
        summaries = self._summaries()
        self._note_mishaps()
        self._note_unseen()
        return summaries, self._exit_code(summaries)

    def _send(self) -> None:
        """Send until everything is sent, or nobody takes anything for too long."""
        pump, order = self._pump, self._order
        late_at = time.monotonic() + order.patience_s
        while True:
            step = pump.step(timeout_s=max(late_at - time.monotonic(), LEAST_S))
            pump.finished()
            if step != "stuck" or pump.stopped is None:
                late_at = time.monotonic() + order.patience_s
            elif pump.stopped.meaning == "unusable" or max(time.monotonic(), pump.patience.again_at) > late_at:
                return  # trying again is of no use: somebody has to mend the endpoint, or the time for it is over
            if step == "idle":
                if not (order.follow and pump.runs):
                    return
                self._note_unseen()
            if step != "sent":
                wait_s = min(pump.patience.again_at - time.monotonic(), 1.0) if step == "stuck" else POLL_S
                time.sleep(max(wait_s, POLL_S))

    def _summaries(self) -> list[dict[str, Any]]:
        from playhead.spans.notices import Undelivered, count_undelivered
        from playhead.spans.sources import is_running

        late_at, nothing = time.monotonic() + TO_COUNT_S, Undelivered((), 0, all_counted=True)
        left = {run: count_undelivered([run], late_at) for run in self._pump.runs if self._pump.stopped}
        return [
            {
                "run": run.run_id,
                "path": str(path),
                "to": self._where,
                "sent": run.accepted,
                "refused": run.refused,
                "skipped": run.skipped - run.refused_before,
                "refused_before": run.refused_before,
                "undelivered": left.get(run, nothing).spans,
                "all_counted": left.get(run, nothing).all_counted,
                "interrupted": run.interrupted,
                "running": not run.done and is_running(path),
                "perhaps_on": self._order.perhaps_on(run),
                "error": run.failure,
            }
            for path, run in zip(self._order.paths, self._runs, strict=True)
        ]

    def _exit_code(self, summaries: list[dict[str, Any]]) -> int:
        if any(run.failure is not None for run in self._runs):
            return exits.UNREADABLE
        refused = any(run.refused or run.refused_before for run in self._runs)
        damaged = any(problem.kind != "truncated" for run in self._runs for problem in run.problems)
        unsent = any(summary["perhaps_on"] for summary in summaries)
        return exits.FAILED if self._pump.stopped or refused or damaged or unsent else exits.OK

    def _note_unseen(self) -> None:
        """Say once of which runs it cannot be seen whether they go on, and what to do then."""
        from playhead.spans.sources import SILENT_S, silent_s

        for run in self._pump.runs:
            host = None if run in self._unseen else self._order.perhaps_on(run)
            if host is not None and run.path is not None:
                self._unseen.add(run)
                note(
                    f"{run.run_id}: it began on the machine {host[:LONGEST_HOST]!r}, and whether it goes on there cannot be "
                    f"seen from here; its last event is {max(silent_s(run.path), 0):.0f} seconds old. Its open spans are "
                    f"sent when that is {SILENT_S / 60:.0f} minutes, or at once with --assume-dead"
                )

    def _note_mishaps(self) -> None:
        from playhead.spans.notices import notices

        pump, where = self._pump, self._where
        for run in self._runs:
            run.close()
            said = list(notices(run, where))
            if run.refused_before:
                said.append("what was refused before is sent again by the same command without --resume")
            if run.cursor is not None and run.cursor.error is not None:
                said.append(f"what was sent cannot be written down: {run.cursor.error}: {run.cursor.path}")
            for what in said:
                note(f"{run.run_id}: {what}")
        for remark in pump.totals.remarks:
            note(f"{where} takes the spans, and says: {remark}")
        if pump.stopped is not None:
            without = sum(not (run.accepted or run.skipped) for run in pump.runs)
            nothing = f"Nothing of {without:,} runs was delivered. " if without > 1 else ""
            note(
                f"{where} takes nothing: {pump.stopped.reason}. {nothing}The same command with --resume sends the rest"
            )


def _counts(run: dict[str, Any], done: str) -> str:
    known = run["all_counted"]
    parts = {
        "interrupted": run["interrupted"],
        "there already": run["skipped"],
        "refused": run["refused"],
        "refused before": run["refused_before"],
        "not delivered": run["undelivered"] if known else 0,
    }
    said = [f"{run['sent']:,} span{'' if run['sent'] == 1 else 's'} {done}"]
    said += [f"{count:,} {what}" for what, count in parts.items() if count]
    if not known:
        said += [f"at least {run['undelivered']:,} not delivered" if run["undelivered"] else "the rest not delivered"]
    said += ["it still goes on"] if run["running"] else []
    said += ["it may still go on elsewhere"] if run["perhaps_on"] else []
    return ", ".join(said)
