"""`playhead list`: recent runs, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from playhead.cli import exits, options
from playhead.cli.output import note, text_console, write_json
from playhead.diagnose.runs import RunList
from playhead.errors import TraceNotFoundError
from playhead.trace.blobs import run_id_of
from playhead.trace.store import summarise, with_resumptions

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.store import TraceStore


@options.command("list", example="playhead list --limit 5", exits={3: "the folder cannot be read"})
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Runs at most.")
@options.counts_replays
def command(*, limit: int, trace_dir: Path | None, as_json: bool) -> int:
    """List recent runs, newest first: how each ended, how long it took, its tokens and its cost.

    A run is `answered` by its model, `stopped` (with the reason, such as a limit or `kill`), `failed`, `running` (its
    process lives), `interrupted` (its process is gone, and the trace has no end), `resumed` (another run continues it),
    `open` (without an end, on a machine that cannot be seen from here) or `unreadable`. `?` stands for what is not known:
    1,200+? tokens are at least 1,200. Only the first and the last line of a file are read, and nothing is verified:
    `playhead check` does that.
    """
    store = options.open_store(trace_dir)
    if trace_dir is not None and not store.folder.exists():
        raise TraceNotFoundError(f"{store.folder}: no such folder")
    if as_json:
        write_json(run.as_json() for run in store.summaries(limit))
    else:
        _print(store, limit)
    return exits.OK


def _print(store: TraceStore, limit: int) -> None:
    paths = store.paths()
    if paths:
        newest = with_resumptions([summarise(path) for path in paths[:limit]])
        text_console().print(RunList(newest, [run_id_of(path) for path in (*paths, *store.hidden())]), crop=False)
    else:
        note(f"no runs in {store.folder} yet; `playhead demo` records one")
    if len(paths) > limit:
        note(f"{limit} of {len(paths):,} runs in {store.folder}; --limit shows more")
    if hidden := len(store.hidden()):
        note(f"{hidden:,} replay{' is' if hidden == 1 else 's are'} not shown; --replays shows them too")
