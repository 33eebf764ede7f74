"""`playhead report`: a run, two side by side, or a table of many, as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead.cli import exits, options
from playhead.cli.output import tell
from playhead.cli.reading import chosen, noted, open_store
from playhead.diagnose.terminal import Line
from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.trace.store import TraceStore


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
    """Write a run, two side by side or many as a page: one HTML file that needs no network and no other file.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file; without
    any, the newest run.

    The first screen shows the task, the ending, where to look first, time, tokens and cost; below it is every model call and
    tool call with its reason and result, beside a waterfall. `?` on the page lists its keys, and `#e17` in its address is
    event 17. With --against, turns that correspond stand side by side, and those that are alike are folded. Of many runs, the
    page shows how they ended, what each took and cost, and a table that sorts and filters.

    Example:
      playhead report latest -o report.html
      playhead report latest~1 --against latest
      playhead report --since 1d -o today.html

    Exit codes:
      0  all is well
      1  a file is damaged, or was erased in part; what is left of it is shown all the same
      2  the command line is wrong
      3  there is no such run, or its file cannot be read
    """
    if not output.parent.is_dir():
        raise UsageError(f"-o {output}: there is no folder {output.parent}")
    store = open_store(trace_dir)
    paths = chosen(store, runs, 1)
    if against is not None and len(paths) > 1:
        raise UsageError("--against shows one run beside another: name one RUN")
    page, found, is_damaged = _table(paths) if len(paths) > 1 else _timeline(paths[0], store, against)
    output.write_bytes(page.encode())
    said = {"path": str(output), "runs": found, "bytes": len(page.encode())}
    tell(said, Line("wrote ", str(output), whole=True), as_json=as_json)
    return exits.FAILED if is_damaged else exits.OK


def _timeline(path: Path, store: TraceStore, against: str | None) -> tuple[str, list[str], bool]:
    """Return the page of a run, or of two, with their ids, and whether one is damaged."""
    from playhead.diagnose.recording import read_recording
    from playhead.diagnose.report_page import render_pair, render_report

    paths = [path, *([] if against is None else [store.resolve(against)])]
    recordings = [noted(read_recording(each)) for each in paths]
    page = render_report(*recordings) if against is None else render_pair(*recordings)
    states = {each.status for each in recordings}
    return page, [each.run_id for each in recordings], bool({"damaged", "erased"} & states)


def _table(paths: list[Path]) -> tuple[str, list[str], bool]:
    """Return the page of many runs, with their ids, and whether one is damaged."""
    from playhead.diagnose.many_page import render_many
    from playhead.diagnose.run_summary import summarise

    runs = list(map(summarise, paths))
    is_damaged = any(not run.sound or run.ending == "unreadable" for run in runs)
    return render_many(runs), [run.run_id for run in runs], is_damaged
