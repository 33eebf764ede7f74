"""`playhead report`: a run, or two side by side, as one HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from playhead.cli import exits, options
from playhead.cli.output import tell
from playhead.cli.reading import chosen, noted, open_store
from playhead.diagnose.terminal import Line
from playhead.errors import UsageError


@options.command("report")
@options.runs_argument
@options.filters()
@click.option(
    "--against",
    metavar="RUN",
    shell_complete=options.complete_runs,
    help="Show this run beside it, and where they part.",
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), default="report.html", help="The file to write."
)
def report(*, runs: tuple[str, ...], against: str | None, output: Path, trace_dir: Path | None, as_json: bool) -> int:
    """Write a run, or two side by side, as a page: one HTML file that needs no network and no other file.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file; without
    any, the newest run.

    The first screen shows the task, the ending, where to look first, time, tokens and cost; below it is every model call and
    tool call with its reason and result, beside a waterfall. `?` on the page lists its keys, and `#e17` in its address is
    event 17. With --against, turns that correspond stand side by side, and those that are alike are folded.

    Example:
      playhead report latest -o report.html
      playhead report latest~1 --against latest

    Exit codes:
      0  all is well
      1  a file is damaged; what can be read of it is shown all the same
      2  the command line is wrong
      3  there is no such run, or its file cannot be read
    """
    from playhead.diagnose.recording import read_recording
    from playhead.diagnose.report_page import render_pair, render_report

    store = open_store(trace_dir)
    paths = [*chosen(store, runs, 1), *([] if against is None else [store.resolve(against)])]
    if len(paths) > (1 if against is None else 2):
        raise UsageError("a page shows one run, or two with --against")
    recordings = [noted(read_recording(path)) for path in paths]
    page = (render_report(*recordings) if against is None else render_pair(*recordings)).encode()
    output.write_bytes(page)
    found = {"path": str(output), "runs": [each.run_id for each in recordings], "bytes": len(page)}
    tell(found, Line("wrote ", str(output), whole=True), as_json=as_json)
    return exits.FAILED if "damaged" in {each.status for each in recordings} else exits.OK
