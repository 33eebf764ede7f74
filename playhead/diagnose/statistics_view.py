"""Statistics as text: tables of 80 columns that need no colour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.diagnose.document import wrap
from playhead.diagnose.terminal import ELLIPSIS, Line, pad
from playhead.diagnose.tokens import UNKNOWN, cell, pair_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console, ConsoleOptions, RenderResult

    from playhead.diagnose import statistics_model as m

MOST: Final = 30
"""Rows of a table; `--json` has all."""
_NAME: Final = 25
_THOUSAND: Final = 1000
_MINUTE_MS: Final = 60_000
_HOUR_MINUTES: Final = 60


@dataclass(frozen=True, slots=True)
class StatisticsView:
    """Statistics for a terminal."""

    statistics: m.Statistics

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the totals, then a table each for models, tools and agents, then what is not known."""
        figures, width = self.statistics, options.max_width
        for text in _totals(figures):
            yield from (Line(line) for line in wrap(text, width))
        for title, rows in _tables(figures):
            yield Line((title, "bold cyan"))
            yield from (Line((row, "dim" if number == 0 else "")) for number, row in enumerate(rows))
        if figures.coverage:
            yield Line(("Not known, which is not the same as 0", "bold cyan"))
        for each in figures.coverage:
            for number, line in enumerate(wrap(f"{each.metric}: {each.reason}", width - 4)):
                yield Line("    " if number else "  ", (line, "yellow"))


def _totals(figures: m.Statistics) -> Iterator[str]:
    name = f"run {figures.run_ids[0]}" if figures.runs == 1 else f"{figures.runs:,} runs"
    yield f"Statistics of {name}"
    yield f"Endings: {_counts(figures.endings) or 'none'}"
    cost = f"{_cost(figures.cost_usd)}{' and an unknown part' if figures.cost_usd is not None and figures.cost_unknown else ''}"
    tokens = pair_text(figures.tokens_in, figures.tokens_out, figures.usage_unknown, "{} in, {} out")
    yield f"Tokens: {tokens or UNKNOWN}. Cost: {cost}"
    time = figures.time
    parts = (("model", time.model_ms), ("tools", time.tools_ms), ("other", time.other_ms))
    shares = ", ".join(f"{what} {_share(part, time.total_ms)}" for what, part in parts)
    yield f"Time: {_duration(time.total_ms)} ({shares})"
    reasons = figures.reasons
    stated = "not asked for" if reasons.coverage is None else f"{reasons.stated:,} of {reasons.expected:,} calls"
    yield f"Stated reasons: {stated}"
    replays = figures.replays
    if replays is not None:
        grounded = "" if replays.grounded is None else f"; {replays.grounded:.0%} grounded"
        yield f"Replays: {replays.runs:,}; results: {_counts(replays.rungs) or 'none'}{grounded}"


def _tables(figures: m.Statistics) -> Iterator[tuple[str, list[str]]]:
    for title, heading, rows in (
        (
            "Models",
            _model_row("model", "asked", "failed", "in", "out", "cost", "median", "p95"),
            map(_model, figures.models),
        ),
        (
            "Tools",
            _tool_row("tool", "calls", "ok", "fail", "refused", "timeout", "again", "median", "p95"),
            map(_tool, figures.tools),
        ),
        ("Errors of tools", _error_row("tool", "error", "times"), _errors(figures)),
        ("Agents", _agent_row("agent", "runs", "turns", "calls", "in", "out", "endings"), map(_agent, figures.agents)),
    ):
        shown = list(rows)
        if shown:
            left = len(shown) - MOST
            yield (
                title,
                [heading, *shown[:MOST], *([f"  {ELLIPSIS} and {left} more (--json has all)"] if left > 0 else [])],
            )


def _model(each: m.ModelStatistics) -> str:
    latency = each.latency
    return _model_row(
        each.model,
        _number(each.requests),
        _number(each.failed + each.cancelled),
        _tokens(each.tokens_in, each.usage_unknown),
        _tokens(each.tokens_out, each.usage_unknown),
        _cost(each.cost_usd),
        _duration(latency.median),
        _duration(latency.p95),
    )


def _model_row(name: str, *cells: str) -> str:
    asked, failed, tokens_in, tokens_out, cost, median, p95 = cells
    return f"  {pad(name, _NAME)} {asked:>5} {failed:>6} {tokens_in:>7} {tokens_out:>6} {cost:>8} {median:>7} {p95:>7}"


def _tool(each: m.ToolStatistics) -> str:
    return _tool_row(
        each.tool,
        *map(_number, (each.calls, each.ok, each.failed + each.cancelled, each.refused, each.timeouts, each.repeated)),
        _duration(each.duration.median),
        _duration(each.duration.p95),
    )


def _tool_row(name: str, *cells: str) -> str:
    calls, good, failed, refused, timeouts, repeated, median, p95 = cells
    shown = f"{calls:>6} {good:>6} {failed:>5} {refused:>7} {timeouts:>7} {repeated:>5} {median:>7} {p95:>7}"
    return f"  {pad(name, _NAME - 5)} {shown}"


def _errors(figures: m.Statistics) -> Iterator[str]:
    return (
        _error_row(tool.tool, error, _number(count)) for tool in figures.tools for error, count in tool.errors.items()
    )


def _error_row(tool: str, error: str, count: str) -> str:
    return f"  {pad(tool, _NAME)} {pad(error, 43)} {count:>6}"


def _agent(each: m.AgentStatistics) -> str:
    cells = (each.runs, each.iterations, each.tool_calls)
    return _agent_row(
        each.owner.rpartition("/")[2] if "/" in each.owner else each.agent,
        *map(_number, cells),
        _tokens(each.tokens_in, each.usage_unknown),
        _tokens(each.tokens_out, each.usage_unknown),
        _counts(each.endings) or "inside a tool",
    )


def _agent_row(name: str, *cells: str) -> str:
    runs, turns, calls, tokens_in, tokens_out, endings = cells
    return f"  {pad(name, 20)} {runs:>5} {turns:>5} {calls:>5} {tokens_in:>7} {tokens_out:>6}  {endings}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _number(count: int) -> str:
    for size, unit in ((10**15, ""), (10**12, "T"), (10**9, "G"), (10**6, "M"), (10**5, "k")):
        if abs(count) >= size:
            return (
                "many" if not unit else f"{count / {'T': 10**12, 'G': 10**9, 'M': 10**6, 'k': 10**3}[unit]:.4g}{unit}"
            )
    return str(count)


def _tokens(count: int | None, unknown: int) -> str:
    return cell(None if count is None else _number(count), unknown)


def _cost(cost: float | None) -> str:
    return "?" if cost is None else f"${cost:.4f}" if cost < _THOUSAND else f"${cost:.3g}"


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else "0%"


def _duration(milliseconds: float | None) -> str:
    if milliseconds is None:
        return "-"
    if milliseconds < _THOUSAND:
        return f"{milliseconds:.1f}ms"
    if milliseconds < _MINUTE_MS:
        return f"{milliseconds / 1000:.1f}s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    return f"{minutes}m{seconds:02}s" if minutes < _HOUR_MINUTES else f"{minutes / 60:.1f}h"
