"""Commands that read whole runs: `list`, `debrief`, `stats`, `check` and `diff`."""

from __future__ import annotations

import re
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from playhead.cli import exits, options
from playhead.cli.output import PROSE_WIDTH, note, tell, text_console, write_json
from playhead.cli.reading import Reading, chosen, existing_store, none_found, noted, open_store, query_of
from playhead.diagnose.terminal import Line
from playhead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playhead.diagnose.integrity import Check
    from playhead.diagnose.recording import Recording

VERDICTS: Final = {
    "ok": "closed, whole and unchanged",
    "open": "sound so far, but the run has no end: it is still running, or was killed",
    "truncated": "the last line is torn; everything before it is sound",
    "lost-events": "some events could not be written; the run says so itself",
    "missing-blob": "a large value that belongs to it is missing or changed",
    "erased": "the others are what was written",
    "damaged": "this is not what was written",
    "other-run": "it holds another run than the one that its name says",
    "other-head": "it does not end in the head that was given",
}
SHOWN: Final = 20
"""Problems that are printed; `--json` has more."""


@options.command("list")
@click.option("--limit", type=click.IntRange(min=1), default=20, help="Runs at most.")
@options.filters()
@options.counts_replays
def list_(*, limit: int, trace_dir: Path | None, as_json: bool) -> int:
    """List runs, newest first, or those that fulfil all conditions: ending, time, cost, agent and task.

    A run is `answered` by its model, `stopped` (with the reason, such as a limit or `kill`), `failed`, `running` (its
    process lives), `interrupted` (its process is gone, and the trace has no end), `resumed` (another run continues it),
    `open` (without an end, on a machine that cannot be seen from here), `damaged` (its first or last line is not what was
    written) or `unreadable`. `?` stands for what is not known: 1,200+? tokens are at least 1,200. Only the first and the
    last line of a file are read and verified; `playhead check` verifies all of it.

    With conditions an index beside the traces saves reading them; the first time it is made. Delete it whenever you like.

    Example:
      playhead list --limit 5
      playhead list --ended timeout_after --since 1d
      playhead list --tool send_mail --arg amount=420
      playhead list --sort cost --limit 1

    Exit codes:
      0  all is well
      2  the command line is wrong
      3  the folder cannot be read
    """
    from playhead.diagnose.finding import find
    from playhead.diagnose.run_summary import summaries
    from playhead.trace.blobs import run_id_of

    store = existing_store(trace_dir)
    query = query_of()
    found = iter(summaries(store, limit)) if query is None else find(store, query)
    runs = list(islice(found, limit))
    paths, hidden = store.paths() if runs or query is None else [], store.hidden()
    if as_json:
        write_json(run.as_json() for run in runs)
    elif runs:
        from playhead.diagnose.runs import RunList  # loads pydantic, which finding nothing does without

        text_console().print(RunList(runs, [run_id_of(path) for path in (*paths, *hidden)]), crop=False)
    if query is not None and not runs:
        note(none_found(store, query))
    elif not runs:
        note(f"no runs in {store.folder} yet; `playhead demo` records one")
    if query is None and len(paths) > limit:
        note(f"{limit} of {len(paths):,} runs in {store.folder}; --limit shows more")
    elif query is not None and next(found, None) is not None:
        note(f"the first {limit} of them; --limit shows more")
    if hidden:
        note(f"{len(hidden):,} replay{' is' if len(hidden) == 1 else 's are'} not shown; --replays shows them too")
    return exits.OK


# --- debrief and stats ------------------------------------------------------------------------------------------------


@options.command("debrief")
@options.runs_argument
@options.filters()
@click.option("--markdown", is_flag=True, help="Write Markdown, for a review or an issue.")
def debrief(*, runs: tuple[str, ...], markdown: bool, trace_dir: Path | None, as_json: bool) -> int:
    """Explain a run's decisions, from its trace alone.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    It shows the task, the calls with their stated reasons, assumptions, other influences, the ending, and flags: claims and
    stated reasons that the trace does not support. No model is asked, and no reason is made up.

    Example:
      playhead debrief latest
      playhead debrief latest --markdown > debrief.md
      playhead debrief --failed --last 3

    Exit codes:
      0  all is well
      1  a file is damaged, or was erased in part; what is left of it is shown all the same
      2  the command line is wrong
      3  there is no such run, or its file cannot be read
    """
    from playhead.diagnose.debrief import build_debrief
    from playhead.diagnose.debrief_view import debrief_document
    from playhead.diagnose.recording import read_recording

    if markdown and as_json:
        raise UsageError("--markdown and --json are two forms: choose one")
    states = set()
    for path in chosen(open_store(trace_dir), runs, 0):
        recording = noted(read_recording(path))
        states.add(recording.status)
        made = build_debrief(recording)
        if markdown:
            click.echo(debrief_document(made).markdown())
        else:
            tell(made.model_dump(mode="json"), debrief_document(made), as_json=as_json, width=PROSE_WIDTH)
    return exits.FAILED if {"damaged", "erased"} & states else exits.OK


@options.command("stats")
@options.runs_argument
@options.filters()
def stats(*, runs: tuple[str, ...], trace_dir: Path | None, as_json: bool) -> int:
    """Count what one run or several took: tokens, cost and time by model, tool and agent, errors, stated reasons.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file; without any,
    the newest runs of the folder, 20 at most. Unknown figures are listed, and never counted as 0.

    Example:
      playhead stats latest
      playhead stats --last 100 --json

    Exit codes:
      0  all is well
      1  a file is damaged, or was erased in part; what is left of it is counted all the same
      2  the command line is wrong
      3  a run cannot be read; the others are counted
    """
    from playhead.diagnose.statistics import run_statistics
    from playhead.diagnose.statistics_view import statistics_document

    reading = Reading(open_store(trace_dir), runs)
    statistics = run_statistics(reading)
    tell(statistics.model_dump(mode="json"), statistics_document(statistics), as_json=as_json, width=PROSE_WIDTH)
    if reading.failed and runs:
        return exits.UNREADABLE
    return exits.FAILED if {"damaged", "erased"} & reading.states else exits.OK


# --- check ------------------------------------------------------------------------------------------------------------


@options.command("check")
@options.runs_argument
@options.filters()
@click.option("--head", metavar="HASH", help="The hash of the last event, kept elsewhere: the trace has to end in it.")
@options.heads_option
@click.option("--write", is_flag=True, help="Add to the file of --heads what is new; a head that differs stays.")
@click.option("--key", metavar="FILE", help="The key that signed the heads; env:VARIABLE has it. See `playhead sign`.")
def check(  # noqa: PLR0913 - the options
    *,
    runs: tuple[str, ...],
    head: str | None,
    heads: Path | None,
    write: bool,
    key: str | None,
    trace_dir: Path | None,
    as_json: bool,
) -> int:
    """Verify that a trace is whole and unchanged: every line's chained hash, the order, the large values, the end.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file; without any,
    every run of the folder is verified.

    Cutting off whole lines at the end, or hashing a changed file anew from its start, shows only against a head that
    was kept elsewhere, or signed: --heads FILE keeps the heads of all runs when there is no such file, and compares with
    them when there is. A run that was removed shows too. A run that has grown since is no difference. Erased lines are
    named: neither the chain nor a head proves what an erasure left of them before the head was kept.

    Example:
      playhead check latest
      playhead check --heads ~/kept/heads     # every run of the folder

    Exit codes:
      0  closed, whole and unchanged; with --heads or --key: sound, and what
         the kept heads say
      1  anything else, erased lines among it
      2  the command line is wrong
      3  there is no such run, or its file cannot be read
    """
    from playhead.diagnose.integrity import check_trace
    from playhead.trace.blobs import run_id_of
    from playhead.trace.store import SUFFIXES

    if write and heads is None:
        raise UsageError("--write writes the file of --heads")
    store = open_store(trace_dir)
    if len(runs) != 1 or heads is not None or key is not None or query_of() is not None:
        from playhead.cli.keeping import check_heads

        if head is not None:
            raise UsageError("--head is of one run; --heads FILE has those of many")
        return check_heads(store, runs, heads, key, write=write, as_json=as_json)
    if head is not None and not re.fullmatch("[0-9a-f]{64}", head):
        raise UsageError("--head takes the 64 lower-case hex digits that `playhead check` prints as head")
    path = store.resolve(runs[0])
    by_id = not runs[0].endswith(SUFFIXES)  # a file that is named by its path may have any name
    checked = check_trace(path, head, run_id_of(path) if by_id else None)
    file = Line(("file  ", "dim"), str(checked.path), whole=True)
    tell(check_as_json(checked), *check_rows(checked), file, head_row(checked), as_json=as_json)
    return exits.OK if checked.ok else exits.FAILED


def check_as_json(checked: Check) -> dict[str, Any]:
    """Return the outcome as JSON."""
    return {**asdict(checked), "path": str(checked.path), "ok": checked.ok}


def check_rows(checked: Check) -> Iterator[Line]:
    """Yield the verdict and the problems."""
    from playhead.diagnose.parts import counted

    style = "bold green" if checked.ok else "bold red"
    erased = f"{counted(checked.erased, 'line')} erased, " if checked.erased else ""
    yield Line((f"{checked.verdict}: ", style), f"{checked.events} events, {erased}{VERDICTS[checked.verdict]}")
    if checked.unredacted:
        yield Line(("credentials were not redacted: ", "yellow"), "the run was recorded with redact=None")
    shown, rest = checked.problems[:SHOWN], checked.problems[SHOWN:]
    for problem in shown:
        yield Line(("!! ", "bold red"), str(problem))
    if len(rest) > 1:
        yield Line(f"… and {len(rest) - 1:,} more problems; --json names them")
    for problem in rest[-1:]:  # the last one says where the reading ended
        yield Line(("!! ", "bold red"), str(problem), whole=True)


def head_row(checked: Check) -> Line:
    """Return the line with the head, to be stored elsewhere."""
    return Line(("head  ", "dim"), checked.head or "none", whole=True)


# --- diff -------------------------------------------------------------------------------------------------------------


@options.command("diff")
@options.run_argument("first", metavar="A")
@options.run_argument("second", metavar="[B]", required=False)
def diff(*, first: str, second: str | None, trace_dir: Path | None, as_json: bool) -> int:
    """Compare two runs: what was changed, where they first diverge, and how calls, answer, tokens and time differ.

    A and B are runs: a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.
    With A alone, A has to be a replay, and is compared with the run that it replays.

    Example:
      playhead diff latest~1 latest
      playhead diff latest --replays     # a replay against its original

    Exit codes:
      0  identical: the same answer, the same calls, as many turns
      1  different
      2  the command line is wrong
      3  there is no such run, or its file cannot be read
      4  inconclusive: a recording has no end, or is damaged
    """
    from playhead.diagnose.diff import diff_recordings
    from playhead.diagnose.diff_view import diff_document
    from playhead.diagnose.recording import read_recording

    store = open_store(trace_dir)
    recording = read_recording(store.resolve(first))
    other = _original_of(recording) if second is None else read_recording(store.resolve(second))
    pair = (other, recording) if second is None else (recording, other)
    found = diff_recordings(*map(noted, pair))
    tell(found.as_json(), diff_document(found), as_json=as_json, width=PROSE_WIDTH)
    if any(recording.status != "closed" for recording in pair):
        return exits.INCONCLUSIVE
    return exits.OK if found.identical else exits.FAILED


def _original_of(replay: Recording) -> Recording:
    """Return the recording of the run that a replay replays, from the folder of traces that the replay belongs to."""
    from playhead.diagnose.recording import read_recording
    from playhead.trace.store import TraceStore

    if replay.header.replay_of is None:
        raise UsageError(f"{replay.path.name} is no replay, so there are two runs to name: playhead diff A B")
    return read_recording(TraceStore.of(replay.path).resolve(replay.header.replay_of))
