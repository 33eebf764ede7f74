"""`playhead backtest`: where killswitches would have stopped recorded runs, and what that would have saved and lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from playhead.cli import exits, options
from playhead.cli.output import PROSE_WIDTH, note, text_console, write_json
from playhead.cli.reading import NEWEST
from playhead.compose.killswitches.expressions import parse_switch
from playhead.errors import TraceError, TraceNotFoundError, UsageError
from playhead.trace.recording import read_recording

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playhead.replay.backtest_model import RunBacktest, Summary
    from playhead.trace.recording import Recording
    from playhead.trace.store import TraceStore

UNREADABLE: Final = 3


@options.command(
    "backtest",
    example='playhead backtest --switch "budget_limit(max_tokens=20000)" --last 100\n'
    """  playhead backtest --switch "timeout_after('5m')" --switch "tool_limit('search', 5)" latest""",
    exits={
        3: "a run cannot be read, or is damaged; the others are reported all the same",
        4: "for no run can it be told what the switches would have done",
    },
)
@options.run_argument("runs", metavar="[RUN]...", nargs=-1)
@click.option(
    "--switch",
    "switches",
    multiple=True,
    required=True,
    metavar="EXPRESSION",
    help="A killswitch as in code, with literal arguments. Repeatable: they are stacked in this order.",
)
@click.option(
    "--last", type=click.IntRange(min=1), metavar="N", help=f"The newest N runs; {NEWEST} when no run is named."
)
def backtest(
    *, runs: tuple[str, ...], switches: tuple[str, ...], last: int | None, trace_dir: Path | None, as_json: bool
) -> int:
    """Tell of stored runs where these killswitches would have stopped them, what that would have saved, and which runs
    that ended well would have been lost.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file; without any,
    the newest runs of the folder.

    Nothing runs and nobody is asked: the guards of the live switches look at what was recorded. Calls for which
    somebody would have been asked are counted; with on_trigger="stop" or "terminate" the first is taken as denied.
    Switches: budget_limit, circuit_breaker, max_iterations, require_approval_for, timeout_after, tool_limit, watchdog.
    """  # noqa: D205 - its first sentence takes two lines
    if runs and last is not None:
        raise UsageError("--last takes the newest runs; without it, name runs")
    parsed = [parse_switch(each) for each in switches]
    store = options.open_store(trace_dir)

    from playhead.replay.backtest import backtest  # noqa: PLC0415 - bad options are told without the kernel
    from playhead.replay.backtest_model import Summary  # noqa: PLC0415 - the same

    reading = _Reading(store, runs, last or NEWEST)
    summary = Summary(switches=tuple(each.text for each in parsed))
    told = (backtest(recording, parsed) for recording in reading.recordings())
    if as_json:
        write_json(_as_json(told, summary))
    else:
        from playhead.cli.backtest_view import print_backtests  # noqa: PLC0415 - JSON needs no view
        from playhead.diagnose.runs import unique_beginnings  # noqa: PLC0415 - the same

        short = unique_beginnings(path.name.partition(".")[0] for path in store.paths())
        print_backtests(text_console(pipe_width=PROSE_WIDTH), told, summary, short)
    return _exit_code(reading, summary)


def _as_json(told: Iterator[RunBacktest], summary: Summary) -> Iterator[dict[str, Any]]:
    for run in told:
        summary.add(run)
        yield run.model_dump(mode="json")
    yield summary.model_dump(mode="json")


def _exit_code(reading: _Reading, summary: Summary) -> int:
    if reading.failed:
        return UNREADABLE
    return exits.OK if summary.unknown < summary.runs else exits.INCONCLUSIVE


class _Reading:
    """The runs that are meant, one after the other, and whether all of them could be read."""

    def __init__(self, store: TraceStore, references: tuple[str, ...], newest: int) -> None:
        self.failed = False
        self._store = store
        self._references = references
        self._newest = newest

    def recordings(self) -> Iterator[Recording]:
        """Yield each run once, so that no more than one is in memory.

        Raises:
            TraceNotFoundError: there is none that can be read.
        """
        none = True
        for path in self._paths():
            try:
                recording = read_recording(path)
            except TraceError as error:
                self._fail(error)
                continue
            self.failed = self.failed or recording.status == "damaged"
            none = False
            yield recording
        if none and self._references:
            raise TraceNotFoundError("none of these runs can be read")
        if none:
            raise TraceNotFoundError(f"no run in {self._store.folder} can be read; `playhead demo` records one")

    def _paths(self) -> Iterator[Path]:
        if not self._references:
            yield from self._store.paths()[: self._newest]
            return
        seen = set()
        for reference in self._references:
            try:
                path = self._store.resolve(reference)
            except TraceError as error:
                self._fail(error)
                continue
            if path not in seen:
                seen.add(path)
                yield path

    def _fail(self, error: TraceError) -> None:
        self.failed = True
        note(f"not looked at: {error}")
