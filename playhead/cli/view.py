"""`playhead view`: the trace folder in the browser."""

from __future__ import annotations

import sys
import webbrowser
from functools import partial
from typing import TYPE_CHECKING

import click

from playhead.cli import exits, options
from playhead.cli.moving import stopping
from playhead.cli.output import note, tell
from playhead.cli.reading import existing_store, open_store, query_of
from playhead.diagnose.terminal import Line
from playhead.errors import MissingDependencyError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.diagnose.run_summary import RunSummary


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
        from playhead.diagnose.viewing import application
        from playhead.importing.collect.listening import ThreadedServer
    except ImportError as error:
        raise MissingDependencyError(f"viewing runs needs {error.name}: pip install 'playhead[view]'") from None

    store = existing_store(trace_dir)
    with stopping() as stop:
        server = ThreadedServer(application(store, partial(choose, store.folder)), "127.0.0.1", port)
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


# --- the conditions of a query string -----------------------------------------------------------------------------------


@click.command(add_help_option=False)
@click.option("--limit", type=click.IntRange(min=1), default=200, help="Runs at most.")
@options.filters()
@options.counts_replays
def conditions(limit: int) -> int:
    """Stand for a query string: `ended=failed&since=2h` has the options of `list`, and is read like them."""
    return limit


def choose(folder: Path, given: list[tuple[str, str]]) -> tuple[list[RunSummary], list[dict[str, str]], int]:
    """Return the first runs that a query string describes, the conditions that there are, and how many such runs exist."""
    from playhead.diagnose.finding import find
    from playhead.diagnose.run_summary import summaries

    known = [each for each in conditions.params if isinstance(each, click.Option)]
    switches = {each.opts[0] for each in known if each.is_flag}
    words = [(f"--{name}", value) for name, value in given if value]
    line = [flag if flag in switches else f"{flag}={value}" for flag, value in words]
    try:
        context = conditions.make_context("view", line)
    except click.UsageError as error:
        raise UsageError(error.format_message()) from None
    with context:
        store, query, limit = open_store(folder, context), query_of(), context.params["limit"]
    runs = summaries(store, limit) if query is None else list(find(store, query))
    values = {each: [value for flag, value in words if flag == each.opts[0]] or [""] for each in known}
    fields = [_field(each, value) for each in known for value in values[each]]
    return runs[:limit], fields, len(store.paths()) if query is None else len(runs)


def _field(option: click.Option, value: str) -> dict[str, str]:
    choices = "|".join(getattr(option.type, "choices", ()))
    hint = "" if option.is_flag else str(option.metavar or choices or option.default)
    return {"name": option.opts[0][2:], "value": value, "hint": hint, "meaning": option.help or ""}
