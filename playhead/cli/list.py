"""`playhead list`: recent runs, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from playhead.cli import exits, options
from playhead.cli.output import note, text_console, write_json
from playhead.diagnose.runs import RunList
from playhead.errors import TraceNotFoundError
from playhead.trace.blobs import run_id_of
from playhead.trace.store import summarise

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.store import TraceStore


@options.command("list", example="playhead list --limit 5", exits={3: "the folder cannot be read"})
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Runs at most.")
def command(*, limit: int, trace_dir: Path | None, as_json: bool) -> int:
    """List recent runs, newest first.

    A run is `done` (it stopped in order, be it at a limit), `failed`, `open` (it has no end: it is still running, or
    was killed) or `unreadable`. Nothing is verified here: that is what `playhead check` is for.
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
    if not paths:
        note(f"no runs in {store.folder} yet; `playhead demo` records one")
        return
    text_console().print(
        RunList([summarise(path) for path in paths[:limit]], [run_id_of(path) for path in paths]), crop=False
    )
    if len(paths) > limit:
        note(f"{limit} of {len(paths):,} runs in {store.folder}; --limit shows more")
