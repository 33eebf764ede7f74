"""`playhead stats`: tokens, cost and time by model, tool and agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from playhead.cli import exits, options
from playhead.cli.output import PROSE_WIDTH, note, text_console, write_json
from playhead.cli.reading import note_state
from playhead.diagnose.statistics import run_statistics
from playhead.errors import TraceError, TraceNotFoundError, UsageError
from playhead.trace.recording import read_recording

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playhead.trace.recording import Recording
    from playhead.trace.store import TraceStore

NEWEST: Final = 20
"""Runs that are counted when none is named."""


@options.command(
    "stats",
    example="playhead stats latest\n  playhead stats --last 100 --json",
    exits={1: "a file is damaged; what can be read of it is counted all the same", **options.UNREADABLE},
)
@options.run_argument("runs", metavar="[RUN]...", nargs=-1)
@click.option(
    "--last", type=click.IntRange(min=1), metavar="N", help=f"The newest N runs; {NEWEST} when no run is named."
)
def command(*, runs: tuple[str, ...], last: int | None, trace_dir: Path | None, as_json: bool) -> int:
    """Count what one run or several took: tokens, cost and time by model, tool and agent, errors, stated reasons.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file; without any,
    the newest runs of the folder. What is not known is said, and never counted as nothing.
    """
    if runs and last is not None:
        raise UsageError("--last counts the newest runs; without it, name runs")
    store = options.open_store(trace_dir)
    statistics = run_statistics(_named(store, runs) if runs else _newest(store, last or NEWEST))
    if not statistics.runs:
        raise TraceNotFoundError(f"no run in {store.folder} can be read; `playhead demo` records one")
    if as_json:
        write_json([statistics.model_dump(mode="json")])
    else:
        from playhead.diagnose.statistics_view import StatisticsView  # noqa: PLC0415 - JSON needs no view

        text_console(pipe_width=PROSE_WIDTH).print(StatisticsView(statistics), crop=False)
    return exits.FAILED if "damaged" in statistics.recordings else exits.OK


def _named(store: TraceStore, references: tuple[str, ...]) -> Iterator[Recording]:
    """Yield one after the other, each run once, so that no more than one is in memory."""
    paths = dict.fromkeys(store.resolve(reference) for reference in references)
    for path in paths:
        recording = read_recording(path)
        note_state(recording)
        yield recording


def _newest(store: TraceStore, count: int) -> Iterator[Recording]:
    """Yield the newest runs; a file that is no trace is said and passed over."""
    for path in store.paths()[:count]:
        try:
            recording = read_recording(path)
        except TraceError as error:
            note(f"not counted: {error}")
            continue
        note_state(recording)
        yield recording
