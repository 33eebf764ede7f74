"""Sending the spans of runs, and what is said of it: per run what was sent, refused, left and there before."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from playhead.cli import exits
from playhead.cli.output import note, text_console, write_json
from playhead.cli.output_file import OutputFile
from playhead.diagnose.terminal import Line
from playhead.spans import SpanBuilder
from playhead.spans.cursor import Cursor
from playhead.spans.delivery import Otlp
from playhead.spans.files import SpanFile
from playhead.spans.notices import Undelivered, count_undelivered, notices
from playhead.spans.pump import Pump
from playhead.spans.run_export import RunExport
from playhead.spans.sources import SILENT_S, TraceSource, is_over, is_running, perhaps_on, silent_s
from playhead.trace.blobs import run_id_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playhead.spans import SpanOptions
    from playhead.spans.delivery import Sink
    from playhead.spans.destination import Destination

POLL_S: Final = 0.2
"""Seconds between two looks at a run that goes on."""
LEAST_S: Final = 0.01
"""Seconds of a request at least."""
TO_COUNT_S: Final = 5.0
"""Seconds in which what could not be delivered is counted, of all runs."""
LONGEST_HOST: Final = 80
"""Characters of a machine's name that are shown."""
UNREADABLE: Final = 3
"""The exit code when a file could not be read."""
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
            with OutputFile(self._output, paths) as file:
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

    def runs(self) -> list[RunExport]:
        """Return the runs on their way."""
        return [self._run(path) for path in self.paths]

    def perhaps_on(self, run: RunExport) -> str | None:
        """Return the other machine on which a run may go on, so that its open spans are not sent."""
        if self.assume_dead or run.done or run.path is None:
            return None
        return perhaps_on(run.path)

    def _run(self, path: Path) -> RunExport:
        cursor = None if self.destination is None else Cursor(path, self.destination)
        builder = partial(SpanBuilder, self.shown)
        source = partial(TraceSource, path, partial(is_over, path, assume_dead=self.assume_dead))
        return RunExport(run_id_of(path), path, source, builder, cursor, resume=self.resume)


def export(order: Order, sink: Sink, told: Told) -> int:
    """Send the spans of these traces, say what became of them, and return the exit code."""
    runs, pump = order.runs(), Pump(sink)
    pump.runs.extend(runs)
    told_of = _work(pump, order)
    summaries = _summaries(pump, runs, order, told.where)
    _note(pump, runs, told.where)
    _note_unseen(pump.runs, order, told_of)
    told.tell(summaries)
    return _exit_code(pump, runs, summaries)


def _summaries(pump: Pump, runs: list[RunExport], order: Order, where: str) -> list[dict[str, Any]]:
    late_at = time.monotonic() + TO_COUNT_S
    left = {run: count_undelivered([run], late_at) for run in pump.runs if pump.stopped}
    return [_summary(run, order, where, left.get(run, NOTHING_LEFT)) for run in runs]


def _exit_code(pump: Pump, runs: list[RunExport], summaries: list[dict[str, Any]]) -> int:
    if any(run.failure is not None for run in runs):
        return UNREADABLE
    refused = pump.totals.refused or any(run.refused_before for run in runs)
    damaged = any(problem.kind != "truncated" for run in runs for problem in run.problems)
    unsent = any(summary["perhaps_on"] for summary in summaries)
    return exits.FAILED if pump.stopped or refused or damaged or unsent else exits.OK


def _work(pump: Pump, order: Order) -> set[RunExport]:
    """Send until everything is sent, or nobody takes anything for too long; return the runs that were told to be unseen."""
    late_at = time.monotonic() + order.patience_s
    told: set[RunExport] = set()
    while True:
        step = pump.step(timeout_s=max(late_at - time.monotonic(), LEAST_S))
        pump.finished()
        if step != "stuck" or pump.stopped is None:
            late_at = time.monotonic() + order.patience_s
        if step == "sent":
            continue
        if (step == "idle" and not (order.follow and pump.runs)) or (step == "stuck" and _is_hopeless(pump, late_at)):
            return told
        if step == "idle":
            _note_unseen(pump.runs, order, told)
        time.sleep(POLL_S if step == "idle" else max(min(pump.patience.again_at - time.monotonic(), 1.0), POLL_S))


def _note_unseen(runs: list[RunExport], order: Order, told: set[RunExport]) -> None:
    """Say once of which runs it cannot be seen whether they go on, and what to do then."""
    for run in runs:
        host = None if run in told else order.perhaps_on(run)
        if host is not None and run.path is not None:
            told.add(run)
            note(
                f"{run.run_id}: it began on the machine {host[:LONGEST_HOST]!r}, and whether it goes on there cannot be seen "
                f"from here; its last event is {_ago(silent_s(run.path))} old. Its open spans are sent when that is "
                f"{SILENT_S / 60:.0f} minutes, or at once with --assume-dead"
            )


def _ago(seconds: float) -> str:
    return f"{max(seconds, 0):.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"  # noqa: PLR2004 - two minutes


def _is_hopeless(pump: Pump, late_at: float) -> bool:
    """Return whether trying again is of no use: somebody has to mend the endpoint, or the time for it is over."""
    if pump.stopped is None:
        return False
    return pump.stopped.meaning == "unusable" or max(time.monotonic(), pump.patience.again_at) > late_at


def _summary(run: RunExport, order: Order, where: str, left: Undelivered) -> dict[str, Any]:
    assert run.path is not None  # noqa: S101 - the command line exports files
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
        "running": not run.done and is_running(run.path),
        "perhaps_on": order.perhaps_on(run),
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
    parts += ["it may still go on elsewhere"] if run["perhaps_on"] else []
    return ", ".join(parts)


def _note(pump: Pump, runs: list[RunExport], where: str) -> None:
    """Say on stderr what is not as it should be."""
    for run in runs:
        run.close()
        for what in (*notices(run, where), *_of_cursor(run)):
            note(f"{run.run_id}: {what}")
    for remark in pump.totals.remarks:
        note(f"{where} takes the spans, and says: {remark}")
    if pump.stopped is not None:
        note(
            f"{where} takes nothing: {pump.stopped.reason}. {_without(pump)}The same command with --resume sends the rest"
        )


def _without(pump: Pump) -> str:
    """Say of how many runs nothing arrived: they waited together for the destination, not one after the other."""
    runs = sum(not (run.accepted or run.skipped) for run in pump.runs)
    return f"Nothing of {runs:,} runs was delivered. " if runs > 1 else ""


def _of_cursor(run: RunExport) -> Iterator[str]:
    cursor = run.cursor
    if run.refused_before:
        yield "what was refused before is sent again by the same command without --resume"
    if cursor is not None and cursor.error is not None:
        yield f"what was sent cannot be written down: {cursor.error}: {cursor.path}"
