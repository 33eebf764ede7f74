"""`playhead view`: the trace folder in the browser."""

from __future__ import annotations

import sys
import webbrowser
from typing import TYPE_CHECKING

import click

from playhead.cli import exits, options
from playhead.cli.moving import stopping
from playhead.cli.output import note, tell
from playhead.cli.reading import open_store
from playhead.diagnose.terminal import Line
from playhead.errors import MissingDependencyError, TraceNotFoundError

if TYPE_CHECKING:
    from pathlib import Path


@options.command("view")
@click.option("--port", type=click.IntRange(0, 65535), default=7529, help="The port; 0: a free one.")
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
def view(*, port: int, opens: bool, trace_dir: Path | None, as_json: bool) -> int:
    """Show the trace folder in the browser: the runs with the filters of `list`, the report of each, two side by side.

    The pages are those of `playhead report`. The list and the page of a run without an end are kept up to date. The server
    reads only, and programs of this machine alone reach it: whoever works on this machine can read the runs while it serves.

    Example:
      playhead view --open
      playhead view --port 0 --json     # a free port; its address as JSON

    Exit codes:
      0  it was stopped (Ctrl-C, SIGTERM)
      2  the command line is wrong, or the port is taken
      3  the folder cannot be read
    """
    try:
        from playhead.cli.viewing import application
        from playhead.importing.collect.listening import ThreadedServer
    except ImportError as error:
        raise MissingDependencyError(f"viewing runs needs {error.name}: pip install 'playhead[view]'") from None

    store = open_store(trace_dir)
    if trace_dir is not None and not store.folder.exists():
        raise TraceNotFoundError(f"{store.folder}: no such folder")
    with stopping() as stop:
        server = ThreadedServer(application(store), "127.0.0.1", port)
        server.start()
        try:
            shown = Line("viewing ", str(store.folder), " at ", (server.address, "bold"), " (Ctrl-C stops)", whole=True)
            tell({"url": server.address, "trace_dir": str(store.folder)}, shown, as_json=as_json)
            sys.stdout.flush()
            if opens and not webbrowser.open(server.address):
                note("there is no browser here; BROWSER names one")
            stop.wait()
        finally:
            server.stop()
    return exits.OK
