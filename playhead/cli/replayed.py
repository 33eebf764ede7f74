"""What a replay came to: what was changed, how it ended, where its tool results came from, and what that did."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from playhead.cli import exits
from playhead.cli.changes import in_options
from playhead.cli.result import ending_row, result_as_json
from playhead.diagnose.diff_view import DiffView
from playhead.diagnose.summaries import preview
from playhead.diagnose.terminal import Line, escape
from playhead.trace.events.tools import GROUNDED
from playhead.trace.store import TraceStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from playhead.replay.result import ReplayResult
    from playhead.trace.recording import Recording

RUNGS: Final = {
    "exact": "recorded for this very call",
    "reordered": "recorded for this call at another time",
    "normalised": "recorded for a call with the same key",
    "stale": "recorded in another state, or perhaps for another call",
    "override": "yours, given with --tool-result",
    "fault": "a fault that was asked for",
    "simulated": "made up by a function",
    "live": "asked for real",
    "synthetic-error": "not recorded: the model was told so",
}
"""What each rung means, from the surest to the least sure."""
BROKEN: Final = ("llm_error", "error", "trace_error", "cancelled")
"""Endings of a replay that is no answer to what was asked."""
STYLES: Final = {"same": "bold green", "changed": "bold yellow", "inconclusive": "bold red"}
"""How a verdict looks."""
LONGEST: Final = 240
"""Characters of a change that are shown; the trace has all of it."""
LEFT: Final = 10
"""Cells of the labels."""


@dataclass(frozen=True, slots=True)
class Row:
    """A label and a text, which is wrapped, and never cut."""

    label: str
    text: str
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines."""
        from rich.text import Text  # noqa: PLC0415 - rich is loaded by those who print

        label = self.label
        for line in Text(escape(self.text)).wrap(console, max(options.max_width - LEFT, LEFT)):
            yield Line((label.ljust(LEFT), "dim"), (line.plain.rstrip(), self.style))
            label = ""


def exit_code(outcome: ReplayResult) -> int:
    """Return 0 when the replay ran to its end, 1 when it broke, 4 when it was stopped or cannot tell."""
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


def print_replay(
    console: Console, original: Recording, outcome: ReplayResult, min_grounded: float, trace_dir: Path | None
) -> None:
    """Print it, and what to look at next."""
    console.print(
        *summary(original, outcome, min_grounded),
        Line(),
        DiffView(outcome.diff),
        Line(),
        *next_commands(original, outcome, trace_dir),
        crop=False,
    )


def summary(original: Recording, outcome: ReplayResult, min_grounded: float) -> Iterator[RenderableType]:
    """Yield what was changed, how it ended, and how far the results are to be trusted."""
    yield Row("replay of", original.run_id)
    yield from _changes(outcome.recording.header.overrides)
    yield ending_row(outcome.run, LEFT)
    if outcome.stopped is not None:
        yield Row("stopped", in_options(outcome.stopped), "red")
    yield from _results(outcome)
    for note in outcome.notes:
        yield Row("note", in_options(note))
    yield Row("verdict", f"{outcome.verdict}: {_meaning(original, outcome, min_grounded)}", STYLES[outcome.verdict])
    path = "none" if outcome.run.trace_path is None else str(outcome.run.trace_path)
    yield Line(("trace".ljust(LEFT), "dim"), path, whole=True)  # somebody will copy it


def next_commands(original: Recording, outcome: ReplayResult, trace_dir: Path | None) -> Iterator[Line]:
    """Yield the commands that show more."""
    where = "" if trace_dir is None else f" --trace-dir {shlex.quote(str(trace_dir))}"
    replay, path = outcome.run.run_id, outcome.run.trace_path
    beside = path is not None and _folder(path) == _folder(original.path)
    first = "" if beside else f"{shlex.quote(str(original.path))} "
    for what, typed in (
        ("both, side by side", f"diff {first}{replay}"),
        ("why it decided so", f"debrief {replay}"),
        ("every event", f"show {replay}"),
    ):
        yield Line((f"{what:<20}", "dim"), (f"playhead {typed}{where}", "cyan"), whole=True)


def _folder(trace: Path) -> Path:
    return TraceStore.of(trace.resolve()).folder


def _changes(overrides: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield each change; that there is none is a change to say, too."""
    if not overrides:
        yield Row("changed", "nothing: it shows how much the model varies by itself (an A/A run)")
    for name, value in overrides.items():
        for each in _spelled(name, value):
            yield Row("changed", each if len(each) <= LONGEST else f"{each[:LONGEST]}…")


def _spelled(name: str, value: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    if name == "parameters" and isinstance(value, dict):
        yield from (f"{key} = {preview(each)}" for key, each in value.items())
    elif name == "tool_results" and isinstance(value, list):
        yield from (_tool_result(each) for each in value)
    else:
        yield f"{name}: {preview(value)}"


def _tool_result(value: Any) -> str:  # noqa: ANN401 - JSON
    if not isinstance(value, dict):
        return f"tool result: {preview(value)}"
    given = preview(value["arguments"]) if value.get("arguments") else "any arguments"
    answer = f"error: {value['error']}" if value.get("error") is not None else preview(value.get("result"))
    return f"{value.get('tool')}({given}) → {answer}"


def _results(outcome: ReplayResult) -> Iterator[RenderableType]:
    """Yield how the tool results came about, and how many of them are grounded."""
    if outcome.grounded is None:
        yield Row("results", "none: no tool was called")
        return
    count = sum(outcome.rungs.values())
    served = f"{count} tool result{'' if count == 1 else 's'}" if count else "no tool result was served"
    yield Row("results", f"{served}, {_grounded(outcome, outcome.grounded)}")
    for rung, meaning in RUNGS.items():
        if outcome.rungs.get(rung):
            yield Line((" " * LEFT, ""), (f"{outcome.rungs[rung]:>4}  ", ""), (f"{rung}: ", "bold"), meaning)


def _grounded(outcome: ReplayResult, share: float) -> str:
    """Return how many calls have a recorded result; those that the caller answered himself are not in doubt."""
    given = outcome.rungs.get("override", 0)
    if not given:
        return f"{share:.0%} of the calls grounded in the recording"
    recorded = sum(outcome.rungs.get(rung, 0) for rung in GROUNDED)
    calls = round(recorded / share) if share else sum(outcome.rungs.values())
    yours = f"{given} of them yours (--tool-result)"
    if calls == given:
        return f"{yours}; no other call needed one"
    return f"{yours}; {recorded / (calls - given):.0%} of the other calls grounded in the recording"


def _meaning(original: Recording, outcome: ReplayResult, min_grounded: float) -> str:
    if outcome.verdict == "same":
        return "the same answer, the same calls, as many turns"
    if outcome.verdict == "changed":
        switched = outcome.diff.original.switches != outcome.diff.replay.switches
        said = "another answer, other calls, or more or fewer turns"
        return f"another switch of strategy, {said}" if switched else said
    if outcome.stopped is not None:
        return "the replay did not run to its end"
    if original.status != "closed":
        return f"the recording is {original.status}, so nobody knows what would be the same"
    which = "the other results" if outcome.rungs.get("override") else "the results"
    return f"too few of {which} are recorded ones; --min-grounded asks for {min_grounded:.0%}"
