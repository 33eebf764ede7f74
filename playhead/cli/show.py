"""`playhead show`: the timeline of a run."""

from __future__ import annotations

from dataclasses import asdict
from fnmatch import fnmatchcase
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from playhead.cli import exits, options, suggestions
from playhead.cli.output import note, text_console, write_json
from playhead.diagnose.timeline import Heading, Timeline
from playhead.errors import NotATraceError, UsageError, nearest
from playhead.trace.events import EVENT_TYPES
from playhead.trace.reader import Problem, scan

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rich.console import Console

    from playhead.trace.line import Record

BATCH = 200
"""Lines that are written at once: memory stays flat, and `| head` ends the reading soon."""


@options.command(
    "show",
    example="playhead show latest --kind 'tool-*'",
    exits={1: "something is wrong with the file; what can be read of it is shown", **options.UNREADABLE},
)
@options.run_argument()
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    shell_complete=suggestions.kinds,
    help="Only events of this kind; `tool-*` works. Repeatable.",
)
@click.option("--owner", metavar="OWNER", help="Only events of this agent: `root`, or `researcher@3.0`.")
def command(*, run: str, kinds: tuple[str, ...], owner: str | None, trace_dir: Path | None, as_json: bool) -> int:
    """Show a run, one line per event, with whatever is wrong with its file at its place.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    The columns: number of the event, seconds since the start, turn of the loop, kind, and what happened; below a call,
    the reason that the model stated for it.
    """
    path = options.open_store(trace_dir).resolve(run)
    wanted = Filter(kinds, owner)
    if as_json:
        timeline = Timeline()
        shown = (item for item in timeline.seen(scan(path)) if isinstance(item, Problem) or wanted(item))
        write_json(map(event_as_json, shown))
        note_problems(timeline)
    else:
        timeline = print_timeline(text_console(), scan(path), wanted)
    wanted.complain()
    return exits.FAILED if timeline.problems else exits.OK


def print_timeline(console: Console, items: Iterable[Record | Problem], wanted: Filter | None = None) -> Timeline:
    """Print the lines of a run as they are read, and at the end what is wrong with it."""
    timeline = Timeline()
    rows = timeline.rows(items, wanted)
    heading: tuple[Heading, ...] = (Heading(),)
    while batch := list(islice(rows, BATCH)):
        console.print(*heading, *batch, crop=False)
        heading = ()
    note_problems(timeline)
    return timeline


def note_problems(timeline: Timeline) -> None:
    """Say on stderr what is wrong with the file."""
    if timeline.ending is None:
        note("open: this run has no end in the file; it is still running, or was killed")
    if timeline.problems:
        note(f"problems in the file: {timeline.problems}, marked !! above; `playhead check` judges them")


class Filter:
    """Which events are wanted."""

    def __init__(self, kinds: tuple[str, ...], owner: str | None) -> None:
        self._kinds = kinds
        self._owner = owner
        self._seen: tuple[set[str], set[str]] = (set(), set())

    def __call__(self, item: Record) -> bool:
        """Return whether to show this event."""
        seen_kinds, seen_owners = self._seen
        seen_kinds.add(item.kind)
        seen_owners.add(item.owner)
        return self._is_kind(item.kind) and self._is_owner(item.owner)

    def complain(self) -> None:
        """Say what was asked for and is not there.

        Raises:
            UsageError: no event could have been meant.
            NotATraceError: there is no event at all.
        """
        kinds, owners = self._seen
        if not kinds:
            raise NotATraceError("not one event in this file can be read")
        for pattern in self._kinds:
            if any(fnmatchcase(kind, pattern) for kind in kinds):
                continue
            if not any(fnmatchcase(kind, pattern) for kind in EVENT_TYPES):
                raise UsageError(f"--kind: there is no kind {pattern!r}.{nearest(pattern, kinds | EVENT_TYPES.keys())}")
            note(f"no {pattern} events in this run")
        if self._owner is not None and not any(map(self._is_owner, owners)):
            raise UsageError(f"--owner: {self._owner!r} is not in this run.{nearest(self._owner, owners)}")

    def _is_kind(self, kind: str) -> bool:
        return not self._kinds or any(fnmatchcase(kind, pattern) for pattern in self._kinds)

    def _is_owner(self, owner: str) -> bool:
        return self._owner is None or self._owner in (owner, owner.rpartition("/")[2])


def event_as_json(item: Record | Problem) -> dict[str, Any]:
    """Return an event in the form of its line, or a problem under a name that no event has.

    It is without its hash: `check` says which one is the head of a sound file.
    """
    if isinstance(item, Problem):
        return {"problem": asdict(item)}
    return {name: value for name, value in item.as_json().items() if name != "h"}
