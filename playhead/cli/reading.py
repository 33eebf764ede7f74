"""From options to the folder of traces and its runs, and notes on files that are not whole."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final, get_args

import click

from playhead.cli.output import note
from playhead.errors import TraceError, TraceNotFoundError, UsageError, nearest_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from playhead.diagnose.finding import Query
    from playhead.diagnose.recording import Recording
    from playhead.trace.store import TraceStore

REPLAYS: Final = "playhead.replays"
"""The key under which a command stores whether replays count as runs."""
FILTERS: Final = "playhead.filters"
"""The key under which a command stores the conditions on runs, by the names of a `Query`'s fields."""
LOOKED_AT: Final = 500
"""Runs whose endings are compared with one that no run has."""
NEWEST: Final = 20
"""The number of runs to read if none is named."""
STATES: Final = {
    "open": "has no end: it is still running, or was killed",
    "truncated": "is cut off: what came after is not known",
    "erased": "has lines whose content was erased on request",
    "damaged": "is damaged, and what it says may not be what happened; `playhead check` says where",
}


def open_store(trace_dir: Path | None, context: click.Context | None = None) -> TraceStore:
    """Return the folder of traces that the option, the environment or the settings name."""
    from playhead.trace.store import TraceStore

    context = context or click.get_current_context(silent=True)
    replays = context is not None and context.meta.get(REPLAYS, False)
    if trace_dir is None:
        from playhead.settings import load_settings  # costs 70 ms

        trace_dir = load_settings().trace_dir
    return TraceStore(trace_dir.expanduser(), replays=replays)


def existing_store(trace_dir: Path | None) -> TraceStore:
    """Return the folder of traces; raises `TraceNotFoundError` if an option names one that is not there."""
    store = open_store(trace_dir)
    if trace_dir is not None and not store.folder.is_dir():
        raise TraceNotFoundError(f"{store.folder}: no such folder")
    return store


def query_of() -> Query | None:
    """Return the conditions on runs that this command was given, or None if it was given none."""
    from playhead.diagnose.finding import Query

    given = click.get_current_context().meta.get(FILTERS)
    return Query(**given) if given else None


def chosen(store: TraceStore, references: tuple[str, ...], newest: int | None = None) -> list[Path]:
    """Return the named runs, each once, or those that fulfil the conditions, or else the newest; with 0, no other ones.

    Raises:
        UsageError: there are both names and conditions, or neither and no other runs are meant.
        TraceNotFoundError: a run does not exist, or none fulfils the conditions.
    """
    query = query_of()
    if query is None and not references and newest == 0:
        raise UsageError("name runs, or choose them with --last, --since, --ended and the like")
    if query is None:
        references = references or (("latest",) if newest == 1 else ())
        return list(dict.fromkeys(map(store.resolve, references))) or store.paths()[:newest]
    if references:
        raise UsageError("name runs, or choose them with --last, --since, --ended and the like, not both")
    from playhead.diagnose.finding import find

    if not (paths := [run.path for run in find(store, query)]):
        raise TraceNotFoundError(none_found(store, query))
    return paths


def all_or(store: TraceStore, runs: tuple[str, ...], but: Collection[str] = ()) -> list[Path]:
    """Return the chosen runs, or all runs of the folder.

    Raises:
        TraceNotFoundError: a chosen run does not exist, or there is no run and `but` is empty.
    """
    paths = chosen(store, runs)
    if not paths and not but:
        raise TraceNotFoundError(f"no runs in {store.folder}; `playhead demo` records one")
    return paths


def none_found(store: TraceStore, query: Query) -> str:
    """Return the message that no run fulfils the conditions; it names the ending nearest to a misspelt one."""
    from playhead.diagnose.run_summary import Ending, summarise

    newest = map(summarise, store.paths()[:LOOKED_AT] if query.endings else [])
    known: set[Any] = {"damaged", *get_args(Ending)}.union(*map(query.endings_of, newest)) - {None}
    words = [each for each in query.endings if each not in known]  # `cancelled` is no `answered`: hence 0.7
    close = filter(None, (nearest_name(each, known, 0.7) for each in words))
    return f"no run in {store.folder} is as the options say." + "".join(f" Did you mean {each!r}?" for each in close)


class Reading:
    """The chosen runs, each once, one after the other, so that no more than one is in memory.

    Files that cannot be read are reported and skipped.
    """

    def __init__(self, store: TraceStore, references: tuple[str, ...]) -> None:
        """Read these runs, those that fulfil the conditions, or the newest; raises like `chosen`, but for missing runs."""
        self.failed = False
        """Whether a run could not be read."""
        self.states: set[str] = set()
        """The states of the other runs."""
        self._store, self._references = store, references
        self._chosen = [] if references and query_of() is None else chosen(store, references, NEWEST)

    def __iter__(self) -> Iterator[Recording]:
        """Yield them.

        Raises:
            TraceNotFoundError: there is none that can be read.
        """
        from playhead.diagnose.recording import read_recording

        for path in self._paths():
            try:
                recording = read_recording(path)
            except TraceError as error:
                self._fail(error)
            else:
                self.states.add(recording.status)
                yield noted(recording)
        if not self.states:
            where = "none of these runs" if self._references else f"no run in {self._store.folder}"
            raise TraceNotFoundError(f"{where} can be read; `playhead list` shows runs, `playhead demo` records one")

    def _paths(self) -> list[Path]:
        found = list(self._chosen)
        for reference in self._references:
            try:
                found.append(self._store.resolve(reference))
            except TraceError as error:
                self._fail(error)
        return list(dict.fromkeys(found))

    def _fail(self, error: TraceError) -> None:
        self.failed = True
        note(f"not read: {error}")


def option_of(trace_dir: Path | None) -> str:
    """Return the option with which a command that is suggested finds the same traces."""
    return "" if trace_dir is None else f" --trace-dir {shlex.quote(str(trace_dir))}"


def noted(recording: Recording) -> Recording:
    """Return the recording; says on stderr when its file is not whole."""
    if recording.status != "closed":
        note(f"{recording.path.name} {STATES[recording.status]}")
    return recording
