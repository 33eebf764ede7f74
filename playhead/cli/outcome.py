"""The result of a run or a replay, as text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.cli import exits
from playhead.diagnose.document import wrap
from playhead.diagnose.parts import cost_text, counted, short, total_text, usage_as_json, usage_text
from playhead.diagnose.summaries import duration_text, ending_text, preview
from playhead.diagnose.terminal import Line
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.agent.result import RunResult
    from playhead.diagnose.recording import Recording
    from playhead.replay.engine import ReplayResult
    from playhead.trace.events import RunCompleted

RUNGS: Final = {
    "exact": "recorded for this very call",
    "reordered": "recorded for this call at another time",
    "normalised": "recorded for a call with the same key",
    "stale": "recorded in another state, or perhaps for another call",
    "override": "yours, given with --tool-result",
    "fault": "a fault that was asked for",
    "simulated": "made up by a function or a model",
    "live": "asked for real",
    "synthetic-error": "not recorded: the model was told so",
}
"""What each rung means, from the surest to the least sure."""
BROKEN: Final = ("llm_error", "error", "trace_error", "cancelled")
"""Endings of a replay that is no answer to what was asked."""
MEANINGS: Final = {
    "same": "the same answer, the same calls, as many turns",
    "changed": "another answer, other calls, or more or fewer turns",
}
"""What a verdict says of the replay."""
STYLES: Final = {"same": "bold green", "changed": "bold yellow", "inconclusive": "bold red"}
"""How a verdict looks."""
LONGEST: Final = 240
"""Characters of a change that are shown; the trace has all of it."""
LEFT: Final = 10
"""Cells of the labels of a replay."""


# --- a run ------------------------------------------------------------------------------------------------------------


def result_as_json(result: RunResult) -> dict[str, Any]:
    """Return the result as JSON, without the steps: the trace has them."""
    fields = result.model_dump(mode="json", exclude={"steps"})
    return {**fields, "usage": usage_as_json(result.usage), "success": result.success}


def result_rows(result: RunResult) -> Iterator[Line]:
    """Yield the answer, how the run ended, tokens, cost, and where the trace is."""
    if result.success:
        yield from (Line(line.expandtabs(), whole=True) for line in as_text(result.output).split("\n"))
        yield Line()
    yield ending_row(result, 8)
    if not result.success and result.output is not None:
        what = "model's words" if result.terminated_by.startswith("output_") else "tool result"
        yield Line(("newest  ", "dim"), f"{what}: {preview(result.output)}")
    cost = cost_text(result.cost_usd, result.cost_unknown) or "not known"
    yield Line(("spent   ", "dim"), f"{usage_text(result.usage, '{} tokens in, {} out')}, cost {cost}")
    trace = "none: it could not be created" if result.trace_path is None else str(result.trace_path)
    lost = "" if result.trace_complete or result.trace_path is None else " (incomplete: events were lost)"
    yield Line(("trace   ", "dim"), trace + lost, whole=True)


def ending_row(result: RunResult, left: int) -> Line:
    """Return how the run ended, behind a label of so many cells."""
    turns = f", {counted(result.iterations, 'turn')} in {duration_text(result.duration_ms)}"
    lack = "the answer is not whole" if result.terminated_by.startswith("output_") else "no answer by the model"
    word, style, why = "stopped: ", "bold yellow", f"{result.terminated_by} ({lack})"
    if result.success or result.status == "failed":
        word, style = ("answered: ", "bold green") if result.success else ("failed: ", "bold red")
        why = result.terminated_by
    return Line(("ended".ljust(left), "dim"), (word, style), why, turns)


def ending_line(event: RunCompleted) -> str:
    """Return how a run ended, in how many turns, how long it took, its tokens, and always its cost."""
    turns = f"{counted(event.iterations, 'turn')} in {duration_text(event.duration_ms)}"
    usage = total_text(event.usage.known(event.usage.total_tokens), event.usage.unknown)
    cost = cost_text(event.cost_usd, event.cost_unknown) or "not known"
    return f"{ending_text(event)}, {turns}, {usage}, cost {cost}"


# --- a replay ---------------------------------------------------------------------------------------------------------


def replay_exit_code(outcome: ReplayResult) -> int:
    """Return 0 when the replay ran to its end, 1 when it broke, 4 when it was stopped or is inconclusive."""
    if outcome.run.terminated_by in BROKEN:
        return exits.FAILED
    return exits.INCONCLUSIVE if outcome.verdict == "inconclusive" else exits.OK


def replay_as_json(outcome: ReplayResult) -> dict[str, Any]:
    """Return the outcome as JSON: what was changed, how it ended, the verdict and the whole diff."""
    return {
        "original_run_id": outcome.recording.header.replay_of,
        "overrides": outcome.recording.header.overrides,
        "verdict": outcome.verdict,
        "grounded": outcome.grounded,
        "rungs": dict(outcome.rungs),
        "stopped": outcome.stopped,
        "notes": list(outcome.notes),
        "run": result_as_json(outcome.run),
        "diff": outcome.diff.as_json(),
    }


def _row(width: int, label: str, text: str, style: str = "") -> Iterator[Line]:
    """Yield a label and a text, which is wrapped, and never cut."""
    for number, line in enumerate(wrap(text, max(width - LEFT, LEFT))):
        yield Line(("" if number else label).ljust(LEFT), (line, style))


def replay_rows(original: Recording, outcome: ReplayResult, min_grounded: float, width: int) -> Iterator[Line]:
    """Yield what was changed, how it ended, and how far the results are to be trusted."""
    yield from _row(width, "replay of", original.run_id)
    for name, value in outcome.recording.header.overrides.items():
        yield from _row(width, "changed", f"{name}: {short(preview(value), LONGEST)}")
    if not outcome.recording.header.overrides:
        yield from _row(width, "changed", "nothing: it shows how much the model varies by itself (an A/A run)")
    yield ending_row(outcome.run, LEFT)
    if outcome.stopped is not None:
        yield from _row(width, "stopped", outcome.stopped, "red")
    yield from _row(width, "results", _results(outcome))
    for rung, meaning in RUNGS.items():
        if outcome.rungs.get(rung):
            yield Line((" " * LEFT, ""), (f"{outcome.rungs[rung]:>4}  ", ""), (f"{rung}: ", "bold"), meaning)
    for note in outcome.notes:
        yield from _row(width, "note", note)
    if original.status != "closed":
        yield from _row(width, "note", f"the recording is {original.status}, so what would be the same is not known")
    doubt = f"nothing can be concluded, as the lines above say; --min-grounded asks for {min_grounded:.0%}"
    meaning = MEANINGS.get(outcome.verdict, doubt)
    yield from _row(width, "verdict", f"{outcome.verdict}: {meaning}", STYLES[outcome.verdict])
    path = "none" if outcome.run.trace_path is None else str(outcome.run.trace_path)
    yield Line(("trace".ljust(LEFT), "dim"), path, whole=True)  # to be copied


def _results(outcome: ReplayResult) -> str:
    """Return how many tool results were served, and which share of the calls got a recorded one."""
    if outcome.grounded is None:
        return "none: no tool was called"
    given = outcome.rungs.get("override", 0)
    yours = f"; {given:,} yours, which --min-grounded leaves out" if given else ""
    served = counted(sum(outcome.rungs.values()), "tool result")
    return f"{served}, {outcome.grounded:.0%} of the calls grounded in the recording{yours}"
