"""Commands that read: `list`, `show`, `grep`, `debrief`, `stats`, `check` and `diff`."""

from __future__ import annotations

import re
from dataclasses import asdict
from fnmatch import fnmatchcase
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

import click

from playhead.cli import exits, options
from playhead.cli.output import PROSE_WIDTH, note, tell, text_console, write_json
from playhead.cli.reading import Reading, chosen, none_found, noted, open_store, query_of
from playhead.diagnose.parts import counted
from playhead.diagnose.terminal import Line
from playhead.errors import NotATraceError, TraceError, TraceNotFoundError, UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playhead.diagnose.integrity import Check
    from playhead.diagnose.recording import Recording
    from playhead.trace.line import Record
    from playhead.trace.reader import Problem

BATCH: Final = 200
"""Lines that are written at once: memory stays flat, and `| head` ends the reading soon."""
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


@options.command(
    "list",
    example="playhead list --limit 5\n"
    "  playhead list --ended timeout_after --since 1d\n"
    "  playhead list --tool send_mail --arg amount=420\n"
    "  playhead list --sort cost --limit 1",
    exits={3: "the folder cannot be read"},
)
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
    """
    from playhead.diagnose.finding import find
    from playhead.diagnose.run_summary import summaries
    from playhead.diagnose.runs import RunList
    from playhead.trace.blobs import run_id_of

    store = open_store(trace_dir)
    if trace_dir is not None and not store.folder.exists():
        raise TraceNotFoundError(f"{store.folder}: no such folder")
    query = query_of()
    found = iter(summaries(store, limit)) if query is None else find(store, query)
    runs = list(islice(found, limit))
    if as_json:
        write_json(run.as_json() for run in runs)
        return exits.OK
    paths, hidden = store.paths(), store.hidden()
    if runs:
        text_console().print(RunList(runs, [run_id_of(path) for path in (*paths, *hidden)]), crop=False)
    elif query is not None and paths:
        note(none_found(store, query))
    else:
        note(f"no runs in {store.folder} yet; `playhead demo` records one")
    if query is None and len(paths) > limit:
        note(f"{limit} of {len(paths):,} runs in {store.folder}; --limit shows more")
    elif query is not None and next(found, None) is not None:
        note(f"the first {limit} of them; --limit shows more")
    if hidden:
        note(f"{len(hidden):,} replay{' is' if len(hidden) == 1 else 's are'} not shown; --replays shows them too")
    return exits.OK


# --- show -------------------------------------------------------------------------------------------------------------


@options.command(
    "show",
    example="playhead show latest --kind 'tool-*'\n  playhead show latest 17     # one event in full",
    exits={1: "something is wrong with the file; what can be read of it is shown", **options.UNREADABLE},
)
@options.run_argument()
@click.argument("seq", type=click.IntRange(min=0), required=False)
@options.repeatable("--kind", "kinds", "KIND", "Only events of this kind; `tool-*` works.")
@click.option("--owner", metavar="OWNER", help="Only events of this agent: `root`, or `researcher@3.0`.")
def show(  # noqa: PLR0913 - the options
    *, run: str, seq: int | None, kinds: tuple[str, ...], owner: str | None, trace_dir: Path | None, as_json: bool
) -> int:
    """Show a run, one line per event, with each problem of its file at its place; or one event in full.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file. SEQ is the number
    of an event: all its fields are shown, and the file is read and verified up to it.

    The columns: number of the event, seconds since the start, turn of the loop, kind, and what happened; below a call,
    the reason that the model stated for it.
    """
    from playhead.diagnose.timeline import HEADING, Timeline
    from playhead.trace.reader import Problem, scan

    items, wanted, timeline = scan(open_store(trace_dir).resolve(run)), Filter(kinds, owner), Timeline()
    if seq is not None:
        if kinds or owner:
            raise UsageError("SEQ names one event: leave out --kind and --owner")
        return show_event(seq, items, as_json=as_json)
    if as_json:
        write_json(event_as_json(item) for item in timeline.seen(items) if isinstance(item, Problem) or wanted(item))
    else:
        console, rows = text_console(), chain([HEADING], timeline.rows(items, wanted))
        while batch := list(islice(rows, BATCH)):
            console.print(*batch, crop=False)
    if timeline.ending is None:
        note("open: this run has no end in the file; it is still running, or was killed")
    if timeline.problems:
        note(f"problems in the file: {timeline.problems}, marked !! above; `playhead check` judges them")
    wanted.complain()
    return exits.FAILED if timeline.problems else exits.OK


def show_event(seq: int, items: Iterator[Record | Problem], *, as_json: bool) -> int:
    """Show one event in full.

    Raises:
        UsageError: the run has no such event.
    """
    from playhead.diagnose.whole_event import event_lines
    from playhead.trace.reader import Problem

    started_us, last, problems = None, None, []
    for item in items:
        if isinstance(item, Problem):
            problems.append(item)
            continue
        started_us, last = (item.ts if started_us is None else started_us), item.seq
        if item.seq == seq:
            tell(event_as_json(item), *event_lines(item, started_us), as_json=as_json)
            break
    else:
        readable = "no event of it can be read" if last is None else f"the last one is {last}"
        raise UsageError(f"there is no event {seq} in this run: {readable}")
    for problem in problems:
        note(f"up to this event: {problem}")
    return exits.FAILED if problems else exits.OK


class Filter:
    """The filter of the events to show, which notes what it has seen."""

    def __init__(self, kinds: tuple[str, ...] = (), owner: str | None = None) -> None:
        self._kinds = kinds
        self._owner = owner
        self._seen_kinds: set[str] = set()
        self._seen_owners: set[str] = set()

    def __call__(self, item: Record) -> bool:
        """Return whether to show this event."""
        self._seen_kinds.add(item.kind)
        self._seen_owners.add(item.owner)
        is_kind = not self._kinds or any(fnmatchcase(item.kind, pattern) for pattern in self._kinds)
        return is_kind and self._is_owner(item.owner)

    def complain(self) -> None:
        """Report filters that matched no event.

        Raises:
            UsageError: a filter cannot match any event.
            NotATraceError: the file has no readable event.
        """
        from playhead.trace.events import EVENT_TYPES

        if not self._seen_kinds:
            raise NotATraceError("not one event in this file can be read")
        known = self._seen_kinds | EVENT_TYPES.keys()
        for pattern in self._kinds:
            if not any(fnmatchcase(kind, pattern) for kind in known):
                raise UsageError(f"--kind: there is no kind {pattern!r}.{nearest(pattern, known)}")
            if not any(fnmatchcase(kind, pattern) for kind in self._seen_kinds):
                note(f"no {pattern} events in this run")
        if self._owner is not None and not any(map(self._is_owner, self._seen_owners)):
            raise UsageError(f"--owner: {self._owner!r} is not in this run.{nearest(self._owner, self._seen_owners)}")

    def _is_owner(self, owner: str) -> bool:
        return self._owner is None or self._owner in (owner, owner.rpartition("/")[2])


def event_as_json(item: Record | Problem) -> dict[str, Any]:
    """Return an event in the form of its line, or a problem under a key that no event has.

    The hash is left out: `check` prints the head of a sound file.
    """
    from playhead.trace.reader import Problem

    if isinstance(item, Problem):
        return {"problem": asdict(item)}
    return {name: value for name, value in item.as_json().items() if name != "h"}


# --- grep -------------------------------------------------------------------------------------------------------------


@options.command(
    "grep",
    example="""playhead grep 'tool == "send_mail" and args.amount > 400'\n  playhead grep '"Mount Zed"' latest""",
    exits={0: "an event matches", 1: "no event matches", 3: "a run, or a line that may match, cannot be read"},
)
@click.argument("expression", metavar="EXPR")
@options.runs_argument
def grep(*, expression: str, runs: tuple[str, ...], trace_dir: Path | None, as_json: bool) -> int:
    """Find events that meet a condition, in the named runs, or in every run of the folder.

    EXPR compares fields of an event (`kind`, `owner`, `iteration`, and those that `playhead show RUN SEQ` prints) with numbers, texts
    in quotes, true, false and null: == != < <= > >=, in, and, or, not, len(field), matches(field, "regex"). A dot reads a
    key: args.to. A text alone is found in any field. A comparison with a field that the event lacks is false. The
    expression is read, never run.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file. Lines are not
    verified: `playhead check` does that.
    """
    from playhead.diagnose.expression import parse_expression
    from playhead.diagnose.search import Search
    from playhead.trace.blobs import run_id_of

    condition, store = parse_expression(expression), open_store(trace_dir)
    found = failed = False
    for path in [store.resolve(each) for each in runs] or store.paths():
        search, run_id = Search(path, condition), run_id_of(path)
        try:
            for record in search:
                found = True
                tell({"run_id": run_id, **event_as_json(record)}, match_row(run_id, record), as_json=as_json)
        except TraceError as error:
            search.unread = str(error)
        if search.unread:
            failed = True
            note(f"{path.name}: {search.unread}")
    return exits.UNREADABLE if failed else exits.OK if found else exits.FAILED


def match_row(run_id: str, record: Record) -> Line:
    """Return the line of an event that was found: its run, its number, its kind, and what happened."""
    from playhead.diagnose.summaries import summarise

    return Line((f"{run_id} {record.seq:>4}  ", "dim"), (f"{record.kind}  ", "green"), summarise(record.event))


# --- debrief and stats ------------------------------------------------------------------------------------------------


@options.command(
    "debrief",
    example="playhead debrief latest\n  playhead debrief latest --markdown > debrief.md\n  playhead debrief --failed --last 3",
    exits={1: "the file is damaged; what can be read of it is shown all the same", **options.UNREADABLE},
)
@options.runs_argument
@options.filters()
@click.option("--markdown", is_flag=True, help="Write Markdown, for a review or an issue.")
def debrief(*, runs: tuple[str, ...], markdown: bool, trace_dir: Path | None, as_json: bool) -> int:
    """Explain a run's decisions, from its trace alone.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    It shows the task, the calls with their stated reasons, assumptions, other influences, the ending, and flags: claims and
    stated reasons that the trace does not support. No model is asked, and no reason is made up.
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
    return exits.FAILED if "damaged" in states else exits.OK


@options.command(
    "stats",
    example="playhead stats latest\n  playhead stats --last 100 --json",
    exits={
        1: "a file is damaged; what can be read of it is counted all the same",
        3: "a run cannot be read; the others are counted",
    },
)
@options.runs_argument
@options.filters()
def stats(*, runs: tuple[str, ...], trace_dir: Path | None, as_json: bool) -> int:
    """Count what one run or several took: tokens, cost and time by model, tool and agent, errors, stated reasons.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file; without any,
    the newest runs of the folder, 20 at most. Unknown figures are listed, and never counted as 0.
    """
    from playhead.diagnose.statistics import run_statistics
    from playhead.diagnose.statistics_view import statistics_document

    reading = Reading(open_store(trace_dir), runs)
    statistics = run_statistics(reading)
    tell(statistics.model_dump(mode="json"), statistics_document(statistics), as_json=as_json, width=PROSE_WIDTH)
    if reading.failed and runs:
        return exits.UNREADABLE
    return exits.FAILED if "damaged" in reading.states else exits.OK


# --- check ------------------------------------------------------------------------------------------------------------


@options.command(
    "check",
    example="playhead check latest\n  playhead check --heads ~/kept/heads     # every run of the folder",
    exits={
        0: "closed, whole and unchanged; with --heads or --key: sound, and what the kept heads say",
        1: "anything else, erased lines among it",
        **options.UNREADABLE,
    },
)
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


@options.command(
    "diff",
    example="playhead diff latest~1 latest\n  playhead diff latest --replays     # a replay against its original",
    exits={
        0: "identical: the same answer, the same calls, as many turns",
        1: "different",
        4: "inconclusive: a recording has no end, or is damaged",
        **options.UNREADABLE,
    },
)
@options.run_argument("first", metavar="A")
@options.run_argument("second", metavar="[B]", required=False)
def diff(*, first: str, second: str | None, trace_dir: Path | None, as_json: bool) -> int:
    """Compare two runs: what was changed, where they first diverge, and how calls, answer, tokens and time differ.

    A and B are runs: a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.
    With A alone, A has to be a replay, and is compared with the run that it replays.
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
