"""What a run reached, for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose import tokens
from playhead.diagnose.summaries import duration_text, preview
from playhead.diagnose.terminal import Line, escape
from playhead.diagnose.tokens import pair_text, total_text, usage_as_json
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from rich.console import Console

    from playhead.agent.result import RunResult
    from playhead.trace.events import RunCompleted

CENT: Final = 0.01


def result_as_json(result: RunResult) -> dict[str, Any]:
    """Return the result as JSON, without the steps: the trace has them."""
    fields = result.model_dump(mode="json", exclude={"steps"})
    return {**fields, "usage": usage_as_json(result.usage), "success": result.success}


def print_result(console: Console, result: RunResult) -> None:
    """Print the answer, how the run ended, tokens, cost, and where the trace is."""
    if result.success:
        console.out(escape(as_text(result.output), keep="\n\t"), highlight=False)
        console.out()
    spent = result.usage
    counts = (spent.known(spent.input_tokens), spent.known(spent.output_tokens))
    usage = f"{pair_text(*counts, spent.unknown, '{} in, {} out') or 'not known'}, {cost_text(result.cost_usd, result.cost_unknown)}"
    console.print(
        ending_row(result, 8),
        *([] if result.success or result.output is None else [_best(result)]),
        *([] if result.fix is None else [Line(("fix     ", "dim"), result.fix.removeprefix("Fix: "))]),
        Line(("tokens  ", "dim"), usage),
        Line(("trace   ", "dim"), _trace(result), whole=True),
        crop=False,
    )


def tokens_text(ended: RunCompleted) -> str:
    """Return the tokens, or that they are not known, in full or at all."""
    return total_text(ended.usage.known(ended.usage.total_tokens), ended.usage.unknown)


def cost_text(cost_usd: float | None, unknown: int | None) -> str:
    """Return the cost, or that it is not known: which is not the same as nothing."""
    return f"cost {tokens.cost_text(cost_usd, unknown, cost_figure(cost_usd)) or 'not known'}"


def cost_figure(cost_usd: float | None) -> str:
    """Return the cost alone, `$?` when it is not known."""
    if cost_usd is None:
        return "$?"
    return f"${cost_usd:.4f}" if cost_usd >= CENT else f"${cost_usd:.6f}" if cost_usd else "$0"


def ending_row(result: RunResult, left: int) -> Line:
    """Return how the run ended, behind a label of so many cells."""
    turns = f", {result.iterations} turn{'' if result.iterations == 1 else 's'} in {duration_text(result.duration_ms)}"
    label = ("ended".ljust(left), "dim")
    if result.success:
        return Line(label, ("answered: ", "bold green"), result.terminated_by, turns)
    if result.status == "failed":
        return Line(label, ("failed: ", "bold red"), result.terminated_by, turns)
    return Line(label, ("stopped: ", "bold yellow"), f"{result.terminated_by} ({_lack(result)})", turns)


def _lack(result: RunResult) -> str:
    return "the answer is not whole" if result.terminated_by.startswith("output_") else "no answer by the model"


def _best(result: RunResult) -> Line:
    what = "model's words" if result.terminated_by.startswith("output_") else "tool result"
    return Line(("newest  ", "dim"), f"{what}: {preview(result.output)}")


def _trace(result: RunResult) -> str:
    if result.trace_path is None:
        return "none: it could not be created"
    return str(result.trace_path) + ("" if result.trace_complete else " (incomplete: events were lost)")
