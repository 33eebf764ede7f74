"""`playhead backtest`: where killswitches would have stopped recorded runs, and what that would have saved and lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.cli import exits, options
from playhead.cli.output import PROSE_WIDTH, elapsed_text, text_console, write_json
from playhead.cli.reading import NEWEST, Reading, open_store
from playhead.diagnose.document import Document, Row, Section
from playhead.diagnose.tokens import cost_text, total_text
from playhead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playhead.compose.killswitches.expressions import SwitchExpression
    from playhead.replay.backtest_model import Figures, RunBacktest, Stop, Summary

STYLES: Final = {"untouched": "green", "stopped": "yellow", "unknown": "red"}
PLACES: Final = {"response": "after", "result": "after", "outside": "in"}
NAME: Final = 13
"""Characters of a run's id: enough to tell runs apart that began in the same second."""


def _switch(text: str) -> SwitchExpression:
    from playhead.compose.killswitches.expressions import parse_switch

    return parse_switch(text)


@options.command(
    "backtest",
    example='playhead backtest --switch "budget_limit(max_tokens=20000)" --last 100\n'
    """  playhead backtest --switch "timeout_after('5m')" --switch "tool_limit('search', 5)" latest""",
    exits={
        3: "a run cannot be read, or is damaged; the others are reported all the same",
        4: "for no run can it be told what the switches would have done",
    },
)
@options.runs_argument
@options.repeatable(
    "--switch",
    "switches",
    "EXPRESSION",
    "A killswitch as in code, with literal arguments; several are stacked in this order.",
    type=_switch,
    required=True,
)
@options.last_option
def backtest(
    *,
    runs: tuple[str, ...],
    switches: tuple[SwitchExpression, ...],
    last: int | None,
    trace_dir: Path | None,
    as_json: bool,
) -> int:
    """Tell of stored runs where these killswitches would have stopped them, what that would have saved, and which runs
    that ended well would have been lost.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file; without any,
    the newest runs of the folder.

    Nothing runs and nobody is asked: the guards of the live switches look at what was recorded. Calls for which
    somebody would have been asked are counted; with on_trigger="stop" or "terminate" the first is taken as denied.
    Switches: budget_limit, circuit_breaker, max_iterations, require_approval_for, timeout_after, tool_limit, watchdog.
    """  # noqa: D205 - its first sentence takes two lines
    from playhead.replay.backtest import backtest as judge
    from playhead.replay.backtest_model import Summary

    if runs and last is not None:
        raise UsageError("--last takes the newest runs; without it, name runs")
    reading = Reading(open_store(trace_dir), runs, last or NEWEST)
    summary, console = Summary(switches=tuple(each.text for each in switches)), text_console(pipe_width=PROSE_WIDTH)
    for recording in reading:
        run = judge(recording, switches)
        summary.add(run)
        if as_json:
            write_json([run.model_dump(mode="json")])
        else:
            console.print(Document((Section("", tuple(_run_rows(run))),)), crop=False)
    if as_json:
        write_json([summary.model_dump(mode="json")])
    else:
        console.print(Document((Section("", tuple(_summary_rows(summary))),)), crop=False)
    if reading.failed or "damaged" in reading.states:
        return exits.UNREADABLE
    return exits.OK if summary.unknown < summary.runs else exits.INCONCLUSIVE


def _run_rows(run: RunBacktest) -> Iterator[Row]:
    """Yield what would have become of a run, and why."""
    said = "untouched" if run.verdict == "untouched" else "cannot be told"
    if run.stop is not None:
        turn = "" if run.stop.turn is None else f" in turn {run.stop.turn}"
        said = f"stopped by {run.stop.switch}{turn}, which would save {_figures(run.saved)}"
    style = "bold red" if run.lost else STYLES[run.verdict]
    yield Row(f"{run.run_id[:NAME]}, {run.ended_by or 'no end'}: {said}", depth=0, style=style)
    if run.lost:
        yield Row("LOST: it ended well", depth=4, style="bold red")
    if run.stop is not None:
        after = elapsed_text(run.stop.after_ms / 1000)
        yield Row(f"{_place(run.stop)}, {after} after the start: {run.stop.reason}", depth=4)
        if run.stop.recorded:
            yield Row("so it was: the run had this very switch", depth=4)
    yield from (Row(each, depth=4) for each in (run.why_unknown, *run.notes) if each is not None)


def _summary_rows(summary: Summary) -> Iterator[Row]:
    """Yield what came of all runs."""
    yield from (Row(f"Switch: {each}", depth=0) for each in summary.switches)
    counts = f"{summary.untouched:,} untouched, {summary.stopped:,} stopped"
    unknown = f", {summary.unknown:,} cannot be told" if summary.unknown else ""
    yield Row(f"Of {_count(summary.runs, 'run')}: {counts}{unknown}", depth=0)
    yield Row(f"Of {summary.ended_well:,} that ended well: {summary.lost:,} lost", depth=0)
    yield Row(f"Saved: {_figures(summary.saved)}, of {_figures(summary.took)}", depth=0)


def _place(stop: Stop) -> str:
    if stop.call_id is not None:
        where = f"call {stop.call_id}{f' of the tool {stop.tool}' if stop.tool else ''} by {stop.owner}"
    elif stop.request is not None:
        attempt = f", attempt {stop.attempt + 1}," if stop.attempt else ""
        where = f"request {stop.request}{attempt} of {stop.owner}"
    else:
        where = stop.owner if stop.turn is None else f"turn {stop.turn} of {stop.owner}"
    return f"{PLACES.get(stop.at, 'before')} {where}"


def _figures(figures: Figures) -> str:
    tokens = total_text(figures.tokens, figures.usage_unknown)
    cost = cost_text(figures.cost_usd, int(figures.cost_unknown)) or "a cost that is not known"
    counts = f"{_count(figures.requests, 'request')}, {_count(figures.calls, 'call')}"
    return f"{tokens}, {cost}, {counts}, {elapsed_text(figures.seconds)}"


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
