"""Backtests as text: a row and its reasons for each run, and what came of all, in 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.diagnose.document import wrap
from playhead.diagnose.terminal import Line, pad
from playhead.diagnose.tokens import cell, total_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rich.console import Console

    from playhead.replay.backtest_model import Figures, RunBacktest, Stop, Summary

_THOUSAND: Final = 1000
_MINUTE_S: Final = 60
_HOUR_S: Final = 3600
_INDENT: Final = 4
_NAME: Final = 13
_SAVED: Final = " WOULD BE SAVED ".center(27, "-").rjust(80)
_STYLES: Final = {"untouched": "green", "stopped": "yellow", "unknown": "red"}
_SAID: Final = {"untouched": "-", "unknown": "(cannot be told)"}


def print_backtests(
    console: Console, told: Iterable[RunBacktest], summary: Summary, short: Mapping[str, str] | None = None
) -> None:
    """Print each run as soon as it is known, then what came of all of them; `short` are ids of runs in short."""
    heading = _row("RUN", "ENDED", "WOULD STOP BY", "TURN", "TOKENS", "COST", "CALLS", "TIME")
    for number, run in enumerate(told):
        if number == 0:
            console.print(Line((_SAVED, "dim")), crop=False)
            console.print(Line((heading, "dim")), crop=False)
        summary.add(run)
        for line in run_lines(run, console.width, (short or {}).get(run.run_id)):
            console.print(line, crop=False)
    for line in summary_lines(summary, console.width):
        console.print(line, crop=False)


def run_lines(run: RunBacktest, width: int, name: str | None = None) -> Iterator[Line]:
    """Yield the row of a run, by its id or, when that is too long, a name for it, and below it why."""
    stop = run.stop
    saved = ("", "", "", "") if stop is None else _cells(run.saved)
    shown = run.run_id if len(run.run_id) <= _NAME else name or run.run_id
    turn = "-" if stop is None or stop.turn is None else str(stop.turn)
    switch = _SAID[run.verdict] if stop is None else stop.switch
    yield Line((_row(shown, run.ended_by or "(no end)", switch, turn, *saved), _STYLES[run.verdict]))
    if run.lost:
        yield Line(" " * _INDENT, ("LOST: it ended well", "bold red"))
    for text in _reasons(run):
        yield from _wrapped(text, width)


def summary_lines(summary: Summary, width: int) -> Iterator[Line]:
    """Yield what came of all runs."""
    yield Line("")
    for text in summary.switches:
        yield from _wrapped(text, width, "Switch: ")
    parts = [f"{summary.untouched:,} untouched", f"{summary.stopped:,} stopped"]
    parts += [f"{summary.unknown:,} cannot be told"] if summary.unknown else []
    yield from _wrapped(", ".join(parts), width, f"Of {_count(summary.runs, 'run')}: ")
    yield from _wrapped(f"{summary.lost:,} lost", width, f"Of {summary.ended_well:,} that ended well: ")
    yield from _wrapped(_saved(summary.saved, summary.took), width, "Saved: ")


def _reasons(run: RunBacktest) -> Iterator[str]:
    if run.stop is not None:
        yield f"{_place(run.stop)}: {run.stop.reason}"
        if run.stop.recorded:
            yield "so it was: the run had this very switch"
    if run.why_unknown is not None:
        yield run.why_unknown
    yield from run.notes


def _place(stop: Stop) -> str:
    before = {
        "phase": f"before turn {stop.turn} of {stop.owner}",
        "request": f"before {_where(stop)}",
        "response": f"after {_where(stop)}",
        "call": f"before {_where(stop)}",
        "approval": f"before {_where(stop)}",
        "result": f"after {_where(stop)}",
        "outside": f"in turn {stop.turn} of {stop.owner}" if stop.turn is not None else f"in {stop.owner}",
    }
    return f"{before[stop.at]}, {_duration(stop.after_ms / 1000)} after the start"


def _where(stop: Stop) -> str:
    of = f" of {stop.owner}"
    if stop.call_id is not None:
        return f"call {stop.call_id}{f' of the tool {stop.tool}' if stop.tool else ''} by {stop.owner}"
    attempt = f", attempt {stop.attempt + 1}," if stop.attempt else ""
    return f"request {stop.request}{attempt}{of}" if stop.request is not None else f"turn {stop.turn}{of}"


def _saved(saved: Figures, took: Figures) -> str:
    cost = (
        f"${saved.cost_usd:.4f}{' and an unknown part' if saved.cost_unknown else ''}" if saved.cost_usd else "$0.0000"
    )
    if saved.cost_unknown and not saved.cost_usd:
        cost = "an unknown cost"
    tokens = _tokens_saved(saved, took)
    calls = f"{saved.calls:,} of {_count(took.calls, 'call')}"
    requests = f"{saved.requests:,} of {_count(took.requests, 'request')}"
    return f"{tokens}, {cost}, {requests}, {calls}, {_duration(saved.seconds)} of {_duration(took.seconds)}"


def _row(run: str, ended: str, switch: str, turn: str, *saved: str) -> str:
    tokens, cost, calls, time = saved
    names = f"{pad(run, _NAME)} {pad(ended, 12)} {pad(switch, 20)}"
    return f"{names} {turn:>4} {tokens:>6} {cost:>7} {calls:>5} {time:>6}".rstrip()


def _cells(saved: Figures) -> tuple[str, str, str, str]:
    cost = "?" if saved.cost_usd is None else f"{_cost(saved.cost_usd)}{'+?' if saved.cost_unknown else ''}"
    tokens = None if saved.tokens is None else _number(saved.tokens)
    return cell(tokens, saved.usage_unknown), cost, _number(saved.calls), _duration(saved.seconds)


def _tokens_saved(saved: Figures, took: Figures) -> str:
    whole = "an unknown number of tokens"
    if took.tokens is not None:
        whole = total_text(took.tokens, took.usage_unknown)
    if saved.tokens is None:
        return whole if took.tokens is None else f"an unknown part of {whole}"
    return f"{total_text(saved.tokens, saved.usage_unknown, '{:,}')} of {whole}"


def _cost(cost: float) -> str:
    return f"${cost:.4f}" if cost < 1 else f"${cost:.3g}"


def _number(count: int) -> str:
    for size, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**5, "k")):
        if abs(count) >= size:
            return "many" if unit == "T" else f"{count / {'G': 10**9, 'M': 10**6, 'k': 10**3}[unit]:.3g}{unit}"
    return str(count)


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _duration(seconds: float) -> str:
    if seconds < _MINUTE_S:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), _MINUTE_S)
    return f"{minutes}m{rest:02}s" if seconds < _HOUR_S else f"{seconds / _HOUR_S:.3g}h"


def _wrapped(text: str, width: int, start: str = " " * _INDENT) -> Iterator[Line]:
    for number, line in enumerate(wrap(text, width - len(start))):
        yield Line(start if number == 0 else " " * len(start), line)
