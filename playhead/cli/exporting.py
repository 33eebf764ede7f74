"""Sending the spans of runs, and what is said of it: per run what was sent, refused, left and there before."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from playhead.cli import exits
from playhead.cli.output import note, text_console, write_json
from playhead.diagnose.terminal import Line
from playhead.errors import UsageError
from playhead.trace.blobs import run_id_of
from playhead.trace.otlp.cursor import Cursor, in_words
from playhead.trace.otlp.delivery import Otlp
from playhead.trace.otlp.files import SpanFile
from playhead.trace.otlp.pump import Pump
from playhead.trace.otlp.run_export import RunExport
from playhead.trace.otlp.sources import TraceSource, is_running
from playhead.trace.otlp.undelivered import Undelivered, count_undelivered
from playhead.trace.reader import open_trace
from playhead.trace.spans import SpanBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playhead.trace.otlp.delivery import Sink
    from playhead.trace.otlp.destination import Destination
    from playhead.trace.spans import SpanOptions

POLL_S: Final = 0.2
"""Seconds between two looks at a run that goes on."""
TO_COUNT_S: Final = 5.0
"""Seconds in which what could not be delivered is counted, of all runs."""
PROBLEMS: Final = 3
"""Problems of a file that are told."""
UNREADABLE: Final = 3
"""The exit code when a file could not be read."""
BEGINNING: Final = 200
"""Bytes of a file in which a trace says that it is one."""
NOTHING_LEFT: Final = Undelivered((), 0, all_counted=True)


class Told:
    """Where spans go, and where it is said what became of them."""

    def __init__(self, form: str | None, output: Path | None, *, as_json: bool) -> None:
        self._form, self._output, self._as_json = form, output, as_json
        self._done = "sent" if form is None else "written"
        self.where = "stdout" if output is None else str(output)

    @contextmanager
    def sink(self, destination: Destination | None, paths: list[Path]) -> Iterator[Sink]:
        """Open what takes the spans."""
        if destination is not None:
            self.where = destination.name
            sink = Otlp(destination)
            try:
                yield sink
            finally:
                sink.close()
        elif self._output is None:
            yield SpanFile(sys.stdout, self._form or "")
        else:
            _check_output(self._output, paths)
            descriptor = os.open(self._output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - readable by its owner only
                yield SpanFile(file, self._form or "")

    def tell(self, runs: list[dict[str, Any]]) -> None:
        """Say what became of each run's spans, unless stdout is where the spans are."""
        if self._form is not None and self._output is None:
            for run in runs:
                note(f"{run['run']}: {_counts(run, self._done)}")
        elif self._as_json:
            write_json(runs)
        else:
            lines = [Line((run["run"], "bold"), f"  {_counts(run, self._done)}", whole=True) for run in runs]
            text_console().print(*lines, Line(("to  ", "dim"), self.where, whole=True), crop=False)


def _check_output(output: Path, paths: list[Path]) -> None:
    """Refuse to write over what was recorded."""
    if any(output.exists() and output.samefile(path) for path in paths):
        raise UsageError(f"-o {output} is the trace itself")
    if _is_recording(output):
        raise UsageError(f"-o {output} is a recording, and is not written over")


def _is_recording(path: Path) -> bool:
    """Return whether a file begins as every trace does."""
    if not path.is_file():
        return False
    with open_trace(path) as file, suppress(OSError, EOFError):
        return b'"kind":"run-started"' in file.read(BEGINNING)
    return False


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
    """Seconds for which a collector is asked again that does not answer."""

    def runs(self) -> list[RunExport]:
        """Return the runs on their way."""
        return [self._run(path) for path in self.paths]

    def _run(self, path: Path) -> RunExport:
        cursor = None if self.destination is None else Cursor(path, self.destination)
        builder = partial(SpanBuilder, self.shown)
        return RunExport(run_id_of(path), path, partial(TraceSource, path), builder, cursor, resume=self.resume)


def export(order: Order, sink: Sink, told: Told) -> int:
    """Send the spans of these traces, say what became of them, and return the exit code."""
    runs, pump = order.runs(), Pump(sink)
    pump.runs.extend(runs)
    sources = _work(pump, runs, order)
    summaries = _summaries(pump, runs, told.where)
    _note(pump, runs, sources, told.where)
    told.tell(summaries)
    return _exit_code(pump, runs, sources)


def _summaries(pump: Pump, runs: list[RunExport], where: str) -> list[dict[str, Any]]:
    late_at = time.monotonic() + TO_COUNT_S
    left = {run: count_undelivered([run], late_at) for run in pump.runs if pump.stopped}
    return [_summary(run, where, left.get(run, NOTHING_LEFT)) for run in runs]


def _exit_code(pump: Pump, runs: list[RunExport], sources: dict[RunExport, TraceSource]) -> int:
    if any(run.failure is not None for run in runs):
        return UNREADABLE
    refused = pump.totals.refused or any(run.refused_before for run in runs)
    damaged = any(problem for source in sources.values() for problem in source.problems if problem.kind != "truncated")
    return exits.FAILED if pump.stopped or refused or damaged else exits.OK


def _work(pump: Pump, runs: list[RunExport], order: Order) -> dict[RunExport, TraceSource]:
    """Send until everything is sent, or nobody has taken anything for too long; return what was read."""
    sources: dict[RunExport, TraceSource] = {}
    while True:
        step = pump.step()
        sources |= {run: run.source for run in runs if isinstance(run.source, TraceSource)}
        pump.finished()
        if step == "sent":
            continue
        if step == "idle" and not (order.follow and pump.runs):
            return sources
        if step == "stuck" and _is_hopeless(pump, order.patience_s):
            return sources
        time.sleep(POLL_S if step == "idle" else max(min(pump.patience.again_at - time.monotonic(), 1.0), POLL_S))


def _is_hopeless(pump: Pump, patience_s: float) -> bool:
    """Return whether trying again is of no use: somebody has to mend the endpoint, or it has not answered for so long."""
    failing = pump.patience.failing_since
    if pump.stopped is None or failing is None:
        return False
    late_at = failing + patience_s
    return pump.stopped.meaning == "unusable" or max(time.monotonic(), pump.patience.again_at) > late_at


def _summary(run: RunExport, where: str, left: Undelivered) -> dict[str, Any]:
    assert run.path is not None  # noqa: S101 - the command line exports files
    open_still = not run.done and run.failure is None and is_running(run.path)
    return {
        "run": run.run_id,
        "path": str(run.path),
        "to": where,
        "sent": run.accepted,
        "refused": run.refused,
        "skipped": run.skipped - run.refused_before,
        "refused_before": run.refused_before,
        "undelivered": left.spans,
        "all_counted": left.all_counted,
        "interrupted": run.interrupted,
        "running": open_still,
        "error": run.failure,
    }


def _counts(run: dict[str, Any], done: str) -> str:
    parts = [f"{run['sent']:,} span{'' if run['sent'] == 1 else 's'} {done}"]
    parts += [f"{run['interrupted']:,} interrupted"] if run["interrupted"] else []
    parts += [f"{run['skipped']:,} there already"] if run["skipped"] else []
    parts += [f"{run['refused']:,} refused"] if run["refused"] else []
    parts += [f"{run['refused_before']:,} refused before"] if run["refused_before"] else []
    if not run["all_counted"]:
        parts += [f"at least {run['undelivered']:,} not delivered" if run["undelivered"] else "the rest not delivered"]
    elif run["undelivered"]:
        parts += [f"{run['undelivered']:,} not delivered"]
    parts += ["it still goes on"] if run["running"] else []
    return ", ".join(parts)


def _note(pump: Pump, runs: list[RunExport], sources: dict[RunExport, TraceSource], where: str) -> None:
    """Say on stderr what is not as it should be."""
    for run in runs:
        run.close()
        for what in (*_of_file(run, sources.get(run)), *_of_delivery(run, where)):
            note(f"{run.run_id}: {what}")
    if pump.totals.smaller:
        named = ", ".join(pump.totals.smaller_named)
        spans = "1 span was" if pump.totals.smaller == 1 else f"{pump.totals.smaller:,} spans were"
        note(f"{spans} too large, and sent without content: {named}")
    if pump.stopped is not None:
        note(
            f"{where} takes nothing: {pump.stopped.reason}. {_without(pump)}The same command with --resume sends the rest"
        )


def _without(pump: Pump) -> str:
    """Say of how many runs nothing arrived: they waited together for the destination, not one after the other."""
    runs = sum(not (run.accepted or run.skipped) for run in pump.runs)
    return f"Nothing of {runs:,} runs was delivered. " if runs > 1 else ""


def _of_file(run: RunExport, source: TraceSource | None) -> Iterator[str]:
    problems = [] if source is None else source.problems
    yield from map(str, problems[:PROBLEMS])
    if len(problems) > PROBLEMS:
        yield f"and {len(problems) - PROBLEMS:,} more problems; `playhead check` says where"
    if run.left_out:
        yield f"{run.left_out:,} events belong to nothing that began, and are in no span"
    if run.failure is not None:
        yield run.failure


def _of_delivery(run: RunExport, where: str) -> Iterator[str]:
    if run.refused_before:
        yield "what was refused before is sent again by the same command without --resume"
    for refused in in_words(run.refused_now)[:PROBLEMS]:
        yield f"{where} refused {refused}"
    if run.cursor is not None and run.cursor.error is not None:
        yield f"what was sent cannot be written down: {run.cursor.error}: {run.cursor.path}"
