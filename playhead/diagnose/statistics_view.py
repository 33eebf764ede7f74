"""Statistics as a document: tables of 80 columns that need no colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.diagnose.document import Document, Row, Section, omitted
from playhead.diagnose.parts import UNKNOWN, cell, cost_text, dollars, number_cell, pair_text, time_cell
from playhead.trace.owners import depth_of, own_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from playhead.diagnose import statistics_model as m
    from playhead.diagnose.parts import Spending

MOST: Final = 30
"""Rows of a table; `--json` has all."""


def statistics_document(figures: m.Statistics) -> Document:
    """Return the totals, then a table each for models, tools and agents, then what is not known."""
    name = f"run {figures.run_ids[0]}" if figures.runs == 1 else f"{figures.runs:,} runs"
    totals = Section(f"Statistics of {name}", tuple(Row(each, depth=0) for each in _totals(figures)))
    unknown = tuple(Row(f"{each.metric}: {each.reason}", style="yellow") for each in figures.coverage)
    blind = (Section("Not known, which is not the same as 0", unknown),) if unknown else ()
    return Document((totals, *_tables(figures), *blind))


def _totals(figures: m.Statistics) -> Iterator[str]:
    yield f"Endings: {_counts(figures.endings) or 'none'}"
    tokens = pair_text(figures.tokens_in, figures.tokens_out, figures.usage_unknown, "{} in, {} out")
    yield f"Tokens: {tokens or UNKNOWN}. Cost: {cost_text(figures.cost_usd, figures.cost_unknown) or UNKNOWN}"
    yield f"Time: {time_cell(figures.duration_ms)}"
    reasons = figures.reasons
    stated = "not asked for" if reasons.coverage is None else f"{reasons.stated:,} of {reasons.expected:,} calls"
    yield f"Stated reasons: {stated}"


def _tables(figures: m.Statistics) -> Iterator[Section]:
    names: tuple[str, ...] = ("model", "asked", "failed", "in", "out", "cost", "median", "p95")
    yield from _table("Models", names, map(_model, figures.models))
    names = ("tool", "calls", "ok", "fail", "refused", "timeout", "again", "median", "p95")
    yield from _table("Tools", names, map(_tool, figures.tools))
    errors = ((each.tool, name, number_cell(count)) for each in figures.tools for name, count in each.errors.items())
    yield from _table("Errors of tools", ("tool", "error", "times"), errors)
    heading = ("agent", "runs", "turns", "calls", "in", "out", "endings")
    yield from _table("Agents", heading, map(_agent, figures.agents))


def _table(title: str, names: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[Section]:
    shown = list(rows)
    if shown:
        yield Section(title, tuple(omitted(len(shown) - MOST)), table=(names, *shown[:MOST]))


def _model(each: m.ModelStatistics) -> tuple[str, ...]:
    counts = (number_cell(each.requests), number_cell(each.failed + each.cancelled))
    times = (time_cell(each.latency.median), time_cell(each.latency.p95))
    cost = cell(None if each.cost_usd is None else dollars(each.cost_usd), each.cost_unknown)
    return (each.model, *counts, *_tokens(each), cost, *times)


def _tool(each: m.ToolStatistics) -> tuple[str, ...]:
    counts = (each.calls, each.ok, each.failed + each.cancelled, each.refused, each.timeouts, each.repeated)
    return (each.tool, *map(number_cell, counts), time_cell(each.duration.median), time_cell(each.duration.p95))


def _agent(each: m.AgentStatistics) -> tuple[str, ...]:
    name = own_name(each.owner) if depth_of(each.owner) else each.agent
    counts = map(number_cell, (each.runs, each.iterations, each.tool_calls))
    return (name, *counts, *_tokens(each), _counts(each.endings) or "inside a tool")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _tokens(each: Spending) -> tuple[str, ...]:
    counts = (each.tokens_in, each.tokens_out)
    return tuple(cell(None if count is None else number_cell(count), each.usage_unknown) for count in counts)
