"""Recordings run again: `reproduce` with everything frozen, `replay` with something changed, `backtest` under killswitches."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from playhead.cli import exits, options
from playhead.cli.corpus import replay_many
from playhead.cli.output import PROSE_WIDTH, note, tell, tell_all, text_console, write_json
from playhead.cli.reading import Reading, chosen, open_store
from playhead.diagnose.document import Document, Row, Section
from playhead.diagnose.parts import cost_text, counted, time_cell, total_text
from playhead.diagnose.terminal import Line
from playhead.errors import UsageError
from playhead.trace.blobs import run_id_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from playhead.compose.killswitches.expressions import SwitchExpression
    from playhead.replay import Reproduction
    from playhead.replay.backtest import Figures, RunBacktest, Summary

SUCCESSES: Final = "`answered`, `equal` to the recorded one, FILE.json (a JSON schema), MODULE:FUNCTION or judge:MODEL"
"""What a success of a run may be."""
SHOWN: Final = 10
"""Divergences that are printed; the first is the cause, `--json` has them all."""
UNRECORDED: Final = """if code and arguments are as they were, the program depends on what is not recorded: its clock or chance (ask playhead.facts \
for them), files, which of its tasks comes first, or a generator that was left early (take all its steps)"""
"""What may make a program differ besides its code."""
PARTIAL: Final = {
    "open": "the recording has no end: what would have come after it is not known",
    "truncated": "the recording is cut off: what came after is not known",
    "closed": "the run was cut off: what would have come after that is not known",
}


@options.command("reproduce")
@options.runs_argument
@options.filters("agent", "arg")
@options.agent_option
@options.program_option
@options.arg_option
@options.sealed_option
def reproduce(*, runs: tuple[str, ...], trace_dir: Path | None, as_json: bool, **given: Any) -> int:  # noqa: ANN401 - options
    """Run a recording again with model, tools and facts frozen, and compare every event.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    Nothing real is called. It proves that the code still does what was recorded, and nothing about model or tools.
    Exits 1 at a divergence, and 4 when the recording ends before the run did or was redacted by the user's own rules.

    Example:
      playhead reproduce latest
      playhead reproduce --last 100 --ended answered

    Exit codes:
      0  every event came out as recorded
      1  a divergence
      2  the command line is wrong
      3  there is no such run, or its file cannot be read
      4  inconclusive: the recording ends before the run did, or was redacted
    """
    from playhead.replay import load_recording

    paths, arguments, codes = chosen(open_store(trace_dir), runs, 0), arguments_of(given), set()
    for path in paths:
        outcome = load_recording(path).reproduce_sync(**arguments)
        name = [Line((run_id_of(path), "bold"))] if len(paths) > 1 else []
        tell({"run_id": run_id_of(path), **asdict(outcome)}, *name, *reproduction_rows(outcome), as_json=as_json)
        codes.add(reproduction_exit_code(outcome))
        if outcome.divergences and "program" in arguments:
            note(UNRECORDED)
    return worst(codes)


def arguments_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given, as arguments of Python of the same names; load the code that they name.

    Raises:
        UsageError: there are options of a program, and no program.
        ToolDefinitionError: the code is not there.
    """
    from playhead.cli.toolbox import load_agent, load_policy, load_program

    given = {name: value for name, value in options.items() if value not in (None, (), {}) and value is not False}
    if "program" not in given and given.keys() & {"args", "sealed"}:
        raise UsageError("--arg and --sealed are for a recorded function: name it with --program MODULE:NAME")
    policies = {tool: load_policy(each) for tool, each in given.get("on_missing", {}).items()}
    if policies:
        given["on_missing"] = policies.get("", policies) if len(policies) == 1 else policies
    loaders = {"agent": load_agent, "program": load_program}
    return {name: loaders[name](value) if name in loaders else value for name, value in given.items()}


def reproduction_exit_code(outcome: Reproduction) -> int:
    """Return 0 when the whole run came out the same, 1 at a divergence, 4 when it is inconclusive."""
    if not outcome.identical:
        return exits.INCONCLUSIVE if outcome.redacted or outcome.ambiguous else exits.FAILED
    return exits.OK if outcome.is_whole else exits.INCONCLUSIVE


def reproduction_rows(outcome: Reproduction) -> Iterator[Line]:
    """Yield whether the run came out the same, and where it did not."""
    from playhead.diagnose.summaries import preview

    many = len(outcome.divergences)
    if outcome.identical:
        word = ("identical: ", "bold green") if outcome.is_whole else ("so far: ", "bold yellow")
        yield Line(word, f"{outcome.events} events came out as recorded")
    else:
        count = f"{counted(many, 'divergence')} in {outcome.events} events"
        if many:
            yield Line(("different: ", "bold red"), f"{count}; each agent and call is compared up to its first")
    yield from _remarks(outcome)
    for divergence in outcome.divergences[:SHOWN]:
        at = "" if divergence.seq is None else f" (event {divergence.seq} of the recording)"
        yield Line(("!! ", "bold red"), (f"{divergence.owner}, {divergence.where}{at}", "bold"))
        yield Line("   ", divergence.what)
        sides = divergence.expected, divergence.actual
        shown = repr if {type(each) for each in sides} == {str, int} else preview  # the text "7" is no 7
        yield Line(("   recorded  ", "dim"), shown(sides[0]))
        yield Line(("   now       ", "dim"), shown(sides[1]))
    if many > SHOWN:
        yield Line(f"… and {many - SHOWN} more; --json lists them all")


def _remarks(outcome: Reproduction) -> Iterator[Line]:
    unsure = [] if outcome.is_whole else [PARTIAL.get(outcome.status, outcome.status)]
    unsure += ["redaction changed what was recorded"] if outcome.redacted and not outcome.identical else []
    said = {
        "inconclusive": (*unsure, *outcome.ambiguous),
        "note": outcome.notes,
        "not compared": [f"{name}, {_why_not(name)}" for name in outcome.not_compared],
        "but": ["; ".join(map(str, outcome.changed_sources))] if outcome.changed_sources else [],
        "in part": [f"{each}, up to where a killswitch ended it: no run repeats the moment" for each in outcome.raced],
        "stays frozen": [
            f"{owner}: inside a tool, or ended by a killswitch at a moment" for owner in outcome.not_entered
        ],
    }
    yield from (Line((f"{word}: ", "bold yellow"), each, whole=True) for word, texts in said.items() for each in texts)


def _why_not(name: str) -> str:
    of_parameter = name.startswith("parameters.")
    return "its fingerprint is not of this key" if of_parameter else "which this version does not know"


@options.command("replay")
@options.runs_argument
@click.option("--from", "at", type=int, metavar="K", help="Freeze all before turn K, from 0; changes hold from it on.")
@click.option(
    "--answer",
    type=options.answer,
    metavar="ANSWER",
    help='With --from: what the model answers there; text, or `{"text": …, "calls": [{"tool": …, "arguments": {…}}]}`.',
)
@options.repeatable(
    "--edit",
    "edit",
    "ID=TEXT",
    "With --from: the new text of a message before turn K.",
    type=options.edited_message,
    callback=options.paired,
)
@click.option("--only", type=int, metavar="K", help="Ask the --models the request of turn K again; no loop runs.")
@click.option("--models", metavar="A,B", help="With --only: the models to ask, separated by commas.")
@click.option(
    "--repeat",
    type=click.IntRange(1),
    help="How often each run is replayed, or with --only, each model asked.  [default: 1]",
)
@options.change_options
@options.repeatable(
    "--on-missing",
    "on_missing",
    "[TOOL=]POLICY",
    "At a call that was not recorded: strict stops; lenient tells the model so; live runs a read-only tool of --agent, or "
    "the TOOL; MODULE:FUNCTION or a provider/model makes the result up.  [default: strict]",
    type=options.policy,
    callback=options.paired,
)
@options.read_only_option
@click.option(
    "--min-grounded",
    type=click.FloatRange(0, 1),
    default=0.8,
    help="Below this part of recorded results nothing is concluded (exit 4); those from --tool-result do not count.",
)
@options.program_option
@options.arg_option
@options.sealed_option
@click.option(
    "--margin",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="One verdict on all runs: the loss of success to accept; 0.05 is 5 points.",
)
@click.option("--baseline", is_flag=True, help="With --margin: replay without the change too, and compare with that.")
@click.option("--success", metavar="WHAT", help=f"With --margin: {SUCCESSES}.  [default: answered]")
@click.option("--group", metavar="NAME", help="With --margin: go on with these replays; none of them runs again.")
@click.option("--concurrency", type=click.IntRange(1), help="With --margin: replays at a time.  [default: 4]")
@options.repeatable(
    "--output", "outputs", "FILE", "With --margin: also write an .html, .md, .xml (JUnit) or .json.", type=Path
)
@options.filters("model", "arg", "agent")
def replay(  # noqa: PLR0913 - options
    *,
    runs: tuple[str, ...],
    at: int | None,
    only: int | None,
    models: str | None,
    repeat: int | None,
    min_grounded: float,
    trace_dir: Path | None,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - overrides and options, named as in Python
) -> int:
    """Run a recording again with its tool results frozen and something changed, and say what that did.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    The model is asked for real. No tool runs: each call gets the result that was recorded for it, and the summary says
    how sure that is. Without any change it shows how much the model varies by itself. The replay is a recording too.

    With --only K --models A,B the recorded request of turn K is asked again, and a table shows what each model would do.
    With --from K the run is forked: what came before turn K stays as it was, and the changes hold from there on.
    With --margin all chosen runs are replayed, and one verdict says whether the change loses successes.

    Example:
      playhead replay latest --system-prompt "Answer in one sentence."
      playhead replay latest --model ollama/qwen3:8b --set temperature=0
      playhead replay latest --tool-result 'lookup:{"key": "Zed"}=9,000 feet'
      playhead replay latest --from 3 --model openai/gpt-4o
      playhead replay latest --only 3 --models openai/gpt-4o,ollama/qwen3:8b --repeat 3
      playhead replay --last 50 --system-prompt new.md --repeat 3 --baseline --margin 0.05

    Exit codes:
      0  the replay ran to its end, whatever changed; with --margin: PASS
      1  the replay broke: the model did not answer, the strategy raised, or
         it was cancelled; with --margin: FAIL
      2  the command line is wrong
      3  there is no such run, or its file cannot be read
      4  inconclusive: it stopped at a call that was not recorded, or too few
         results were recorded ones; with --margin: too little is known
    """
    from playhead.cli.outcome import replay_as_json, replay_exit_code, replay_rows
    from playhead.cli.progress import Progress, following
    from playhead.diagnose.diff_view import diff_document
    from playhead.replay import load_recording

    store = open_store(trace_dir)
    paths, arguments = chosen(store, runs, 0), arguments_of(given)
    if only is not None or models:
        return _decide(paths, only, models, arguments | {"repeat": repeat or 1}, as_json=as_json)
    if at is not None and (len(paths) > 1 or "margin" in arguments):
        raise UsageError("--from K is a turn of one run: without --margin, and with one run named")
    if "margin" in arguments:
        many = {"repeats": repeat or 1, "min_grounded": min_grounded, "trace": store.folder}
        return replay_many(paths, arguments | many, as_json=as_json)
    if len(paths) > 1 or repeat or arguments.keys() & {"baseline", "success", "group", "concurrency", "outputs"}:
        raise UsageError("many replays get one verdict: name with --margin the loss of success to accept, such as 0.05")
    if at is None and arguments.keys() & {"answer", "edit"}:
        raise UsageError("--answer and --edit are for a fork: name its turn with --from K")
    recording, progress = load_recording(paths[0]), Progress()
    again: Any = recording.replay_sync if at is None else partial(recording.fork_sync, at)
    with following(progress, trace_dir, as_json=as_json):
        outcome = again(**arguments, trace=store.folder, min_grounded=min_grounded, on_record=progress)
    if as_json:
        write_json([replay_as_json(outcome)])
    else:
        console = text_console(pipe_width=PROSE_WIDTH)
        rows = replay_rows(recording, outcome, min_grounded, console.width)
        console.print(*rows, Line(), diff_document(outcome.diff), crop=False)
    return replay_exit_code(outcome)


def worst(codes: Collection[int]) -> int:
    """Return the exit code of several runs: a failure outweighs what is inconclusive."""
    return next(code for code in (exits.FAILED, exits.INCONCLUSIVE, exits.OK) if code in codes)


def _decide(paths: list[Path], at: int | None, models: str | None, given: dict[str, Any], *, as_json: bool) -> int:
    """Print what each model would have done in one turn; return 1 if one did not answer."""
    from playhead.diagnose.summaries import preview
    from playhead.replay import load_recording

    if at is None or not models or len(paths) > 1:
        raise UsageError("--only K and --models A,B go together, for one run: the turn to ask again, and whom")
    if given.keys() - {"parameters", "api_base", "rebind", "repeat"}:
        raise UsageError("--only takes --models, --repeat, --set, --api-base and --rebind; to change more, use --from")
    decisions = load_recording(paths[0]).decide_sync(at, models.split(","), **given)
    width = max(len(each.model) for each in decisions)
    lines = []
    for before, each in zip((None, *decisions), decisions, strict=False):
        name = "" if before is not None and before.model == each.model else each.model
        count = "" if each.model == "recorded" else f"{each.count} of {given['repeat']}"
        calls = ", ".join(f"{tool}({preview(arguments)})" for tool, arguments in each.calls)
        what = f"failed: {each.error}" if each.error is not None else calls or f"answers: {preview(each.text)}"
        lines.append(Line((f"{name:<{width}}  ", "bold"), f"{count:<8}", what, whole=True))
    tell_all(map(asdict, decisions), lines, as_json=as_json, width=PROSE_WIDTH)
    return exits.FAILED if any(each.error is not None for each in decisions[1:]) else exits.OK


STYLES: Final = {"untouched": "green", "stopped": "yellow", "unknown": "red"}
NAME: Final = 13
"""Characters of a run's id: enough to distinguish runs that began in the same second."""


@options.command("backtest")
@options.runs_argument
@options.switch_option
@options.filters()
def backtest(
    *,
    runs: tuple[str, ...],
    switches: tuple[SwitchExpression, ...],
    trace_dir: Path | None,
    as_json: bool,
) -> int:
    """Report where killswitches would have stopped recorded runs, what that would have saved, and which would be lost.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file; without any,
    the newest runs of the folder.

    Nothing runs: the guards of the live switches look at the recorded events. A run is lost if it ended well and would have
    been stopped.
    Switches: budget_limit, circuit_breaker, max_iterations, timeout_after, tool_limit, watchdog.

    Example:
      playhead backtest --switch "budget_limit(max_tokens=20000)" --last 100
      playhead backtest --switch "timeout_after('5m')" --switch "tool_limit('search', 5)" latest

    Exit codes:
      0  all is well
      2  the command line is wrong
      3  a run cannot be read, or is damaged; the others are reported all the
         same
      4  for no run is it known what the switches would have done
    """
    from playhead.replay.backtest import Summary
    from playhead.replay.backtest import backtest as judge

    if not switches:
        raise UsageError("backtest needs a --switch")
    reading = Reading(open_store(trace_dir), runs)
    summary = Summary(switches=tuple(each.text for each in switches))
    for recording in reading:
        run = judge(recording, switches)
        summary.add(run)
        shown = Document((Section("", tuple(_run_rows(run))),))
        tell(run.model_dump(mode="json"), shown, as_json=as_json, width=PROSE_WIDTH)
    shown = Document((Section("", tuple(_summary_rows(summary))),))
    tell(summary.model_dump(mode="json"), shown, as_json=as_json, width=PROSE_WIDTH)
    if reading.failed or {"damaged", "erased"} & reading.states:
        return exits.UNREADABLE
    return exits.OK if summary.unknown < summary.runs else exits.INCONCLUSIVE


def _run_rows(run: RunBacktest) -> Iterator[Row]:
    """Yield the effect on a run, and the reason."""
    said = "untouched" if run.verdict == "untouched" else "cannot be told"
    if run.stop is not None:
        turn = "" if run.stop.turn is None else f" in turn {run.stop.turn}"
        said = f"stopped by {run.stop.switch}{turn}, which would save {_figures(run.saved)}"
    style = "bold red" if run.lost else STYLES[run.verdict]
    yield Row(f"{run.run_id[:NAME]}, {run.ended_by or 'no end'}: {said}", depth=0, style=style)
    if run.lost:
        yield Row("LOST: it ended well", depth=4, style="bold red")
    if run.stop is not None:
        after = time_cell(run.stop.after_ms)
        yield Row(f"at event {run.stop.seq} of {run.stop.owner}, {after} after the start: {run.stop.reason}", depth=4)
    yield from (Row(each, depth=4) for each in (run.why_unknown, *run.notes) if each is not None)


def _summary_rows(summary: Summary) -> Iterator[Row]:
    """Yield the total effect on all runs."""
    yield from (Row(f"Switch: {each}", depth=0) for each in summary.switches)
    counts = f"{summary.untouched:,} untouched, {summary.stopped:,} stopped"
    unknown = f", {summary.unknown:,} cannot be told" if summary.unknown else ""
    yield Row(f"Of {counted(summary.runs, 'run')}: {counts}{unknown}", depth=0)
    yield Row(f"Of {summary.ended_well:,} that ended well: {summary.lost:,} lost", depth=0)
    yield Row(f"Saved: {_figures(summary.saved)}, of {_figures(summary.took)}", depth=0)


def _figures(figures: Figures) -> str:
    tokens = total_text(figures.tokens, figures.usage_unknown)
    cost = cost_text(figures.cost_usd, figures.cost_unknown) or "a cost that is not known"
    counts = f"{counted(figures.requests, 'request')}, {counted(figures.calls, 'call')}"
    return f"{tokens}, {cost}, {counts}, {time_cell(figures.seconds * 1000)}"
