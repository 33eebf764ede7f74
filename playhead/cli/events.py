"""Commands that read events: `show` and `grep`."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import asdict
from fnmatch import fnmatchcase
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any, Final

import click

from playhead.cli import exits, options
from playhead.cli.output import note, tell, text_console, write_json
from playhead.cli.reading import all_or, open_store
from playhead.diagnose.terminal import Line
from playhead.errors import NotATraceError, TraceError, UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playhead.trace.line import Record
    from playhead.trace.reader import Problem

BATCH: Final = 200
"""Lines that are written at once: memory stays flat, and `| head` ends the reading soon. The first ones are fewer."""
FOLDED: Final = frozenset({"message-added", "tools-defined", "llm-requested", "kernel-state-snapshot"})
"""Kinds of what was sent to models, which answers and calls follow from."""
POLL_S: Final = 0.2
"""Seconds between two looks at a run that is followed."""


# --- show -------------------------------------------------------------------------------------------------------------


@options.command("show")
@options.run_argument()
@click.argument("seq", type=click.IntRange(min=0), required=False)
@options.repeatable("--kind", "kinds", "KIND", "Only events of this kind; `tool-*` works.")
@click.option("--owner", metavar="OWNER", help="Only events of this agent: `root`, or `researcher@3.0`.")
@click.option("--all", "unfolded", is_flag=True, help="Every event: prompts, requests and snapshots too, as in --json.")
@click.option("--follow", is_flag=True, help="Wait for further events until the run ends.")
def show(  # noqa: PLR0913 - the options
    *,
    run: str,
    seq: int | None,
    kinds: tuple[str, ...],
    owner: str | None,
    unfolded: bool,
    follow: bool,
    trace_dir: Path | None,
    as_json: bool,
) -> int:
    """Show a run, one line per event, with each problem of its file at its place; or one event in full.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file. SEQ is the number
    of an event: all its fields are shown, and the file is read and verified up to it.

    The columns: number of the event, seconds since the start and since the line above, turn of the loop, kind, and what
    happened; below a call, the reason that the model stated for it. Prompts, requests, lists of tools and snapshots are
    folded: --all shows them, and --kind shows what it names. On a terminal a pager shows the lines: PAGER names another one.

    Example:
      playhead show latest --kind 'tool-*'
      playhead show latest 17     # one event in full

    Exit codes:
      0  all is well
      1  something is wrong with the file; what can be read of it is shown
      2  the command line is wrong
      3  there is no such run, or its file cannot be read
    """
    from playhead.diagnose.timeline import HEADING, Timeline
    from playhead.trace.reader import Problem, scan

    path, timeline = open_store(trace_dir).resolve(run), Timeline()
    wanted = Filter(kinds, owner, folds=not (unfolded or kinds or as_json))
    if seq is not None:
        if kinds or owner or follow:
            raise UsageError("SEQ names one event: leave out --kind, --owner and --follow")
        return show_event(seq, scan(path), as_json=as_json)
    items = followed(path) if follow else scan(path)
    if as_json:
        write_json(event_as_json(item) for item in timeline.seen(items) if isinstance(item, Problem) or wanted(item))
    elif not print_rows(
        chain([HEADING], timeline.rows(items, wanted)), at_once=1 if follow else BATCH, paged=not follow
    ):
        return exits.OK  # the reader closed the pager: what follows is not known
    if timeline.ending is None:
        note("open: this run has no end in the file; it is still running, or was killed")
    if wanted.folded:
        note(f"folded: {', '.join(f'{count} {kind}' for kind, count in wanted.folded.items())}; --all shows them")
    if timeline.problems:
        note(f"problems in the file: {timeline.problems}, marked !! above; `playhead check` judges them")
    wanted.complain()
    return exits.FAILED if timeline.problems else exits.OK


def print_rows(rows: Iterator[Line], *, at_once: int, paged: bool) -> bool:
    """Write lines, through a pager on a terminal; return whether all of them were made."""
    console = text_console()
    sizes = chain([min(at_once, 20)], repeat(at_once))
    batches = iter(lambda: list(islice(rows, next(sizes))), [])
    if not paged or not console.is_terminal:
        for batch in batches:
            console.print(*batch, crop=False)
        return True

    def text_of(batch: list[Line]) -> str:
        with console.capture() as captured:
            console.print(*batch, crop=False)
        return captured.get()

    os.environ.setdefault("LESS", "-FRX")  # as git does: what fits on the screen is only printed
    click.echo_via_pager(map(text_of, batches))
    return next(batches, None) is None


def followed(path: Path) -> Iterator[Record | Problem]:
    """Yield the events of a trace as they are written, until the run has ended or its process is gone."""
    from playhead.trace.events import RunCompleted
    from playhead.trace.reader import Following, Problem, open_trace
    from playhead.trace.store import is_alive

    with open_trace(path) as file:
        reading, is_over = Following(path, file), False
        while not is_over:
            is_over = is_alive(path) is False  # before reading: so the last thing that it wrote is read
            for item in reading.new():
                is_over = is_over or (not isinstance(item, Problem) and isinstance(item.event, RunCompleted))
                yield item
            if not is_over:
                time.sleep(POLL_S)
        yield from reading.ending()


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

    def __init__(self, kinds: tuple[str, ...] = (), owner: str | None = None, *, folds: bool = False) -> None:
        self.folded: Counter[str] = Counter()
        """How many events of each kind were folded."""
        self._kinds = kinds
        self._folds = folds
        self._owner = owner
        self._seen_kinds: set[str] = set()
        self._seen_owners: set[str] = set()

    def __call__(self, item: Record) -> bool:
        """Return whether to show this event."""
        self._seen_kinds.add(item.kind)
        self._seen_owners.add(item.owner)
        is_kind = not self._kinds or any(fnmatchcase(item.kind, pattern) for pattern in self._kinds)
        if not is_kind or not self._is_owner(item.owner):
            return False
        if self._folds and item.kind in FOLDED:
            self.folded[item.kind] += 1
            return False
        return True

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


@options.command("grep")
@click.argument("expression", metavar="EXPR")
@options.runs_argument
@options.filters()
def grep(*, expression: str, runs: tuple[str, ...], trace_dir: Path | None, as_json: bool) -> int:
    """Find events that meet a condition: in the named runs, in those that the options choose, or in every run of the folder.

    EXPR compares fields of an event (`kind`, `owner`, `iteration`, and those that `playhead show RUN SEQ` prints) with numbers, texts
    in quotes, true, false and null: == != < <= > >=, in, and, or, not, len(field), matches(field, "regex"). A dot reads a
    key: args.to. A text alone is found in any field. A comparison with a field that the event lacks is false. The
    expression is read, never run.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file. Lines are not
    verified: `playhead check` does that.

    Example:
      playhead grep 'tool == "send_mail" and args.amount > 400'
      playhead grep '"Mount Zed"' latest

    Exit codes:
      0  an event matches
      1  no event matches
      2  the command line is wrong
      3  a run, or a line that may match, cannot be read
    """
    from playhead.diagnose.expression import parse_expression
    from playhead.diagnose.search import Search
    from playhead.trace.blobs import run_id_of

    condition, store = parse_expression(expression), open_store(trace_dir)
    found = failed = False
    for path in all_or(store, runs):
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
