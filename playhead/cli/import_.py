"""`playhead import`: exported spans become recordings."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from playhead.cli import exits, options, suggestions
from playhead.cli.imported import run_as_json, run_lines, writing_in
from playhead.cli.output import note, text_console, write_json
from playhead.diagnose.terminal import Line
from playhead.errors import NotImportableError
from playhead.importing.spans import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.importing import ImportedRun, Source


@options.command(
    "import",
    example="playhead import spans.json\n  playhead import traces.jsonl.gz --as otlp-json --json\n"
    "  curl -s http://localhost:6006/v1/projects/default/spans | playhead import -",
    exits={
        0: "every trace is a recording now, or was one already",
        1: "a trace was imported before from other spans, or its id is another run's; or a part of a file was left out: lines "
        "that are torn, spans without ids, pages that come after this one",
        3: "a file cannot be read, or holds no spans of a known format; or no trace is a run",
    },
)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=suggestions.files)
@click.option(
    "--as", "format_name", type=click.Choice(list(FORMATS)), help="The format of the files.  [default: by content]"
)
@click.option(
    "--replace",
    is_flag=True,
    help="Import traces anew that were imported before from other spans. The recording before is kept beside it.",
)
@click.option(
    "--read-only",
    multiple=True,
    metavar="TOOL",
    help="A tool that has no side effects, which no span says; may be repeated. A replay serves what it returned more often.",
)
def import_(  # noqa: PLR0913 - options
    *,
    files: tuple[str, ...],
    format_name: str | None,
    replace: bool,
    read_only: tuple[str, ...],
    trace_dir: Path | None,
    as_json: bool,
) -> int:
    """Make a recording of every trace in files of spans that another program exported.

    OTLP (JSON and protobuf, as the collector's file exporter writes too), Phoenix (its REST API's spans, its data frame as
    JSON), Langfuse (traces, observations) and OpenInference JSON Lines are read, by the conventions of OpenInference,
    OpenTelemetry GenAI and OpenLLMetry. Files are told apart by what they hold, and may be compressed by gzip; - is stdin.
    Traces in which no span is an agent, a model call or a tool call are no runs: they are counted and left out.

    Of each run it is said what a replay can do with it: `full`, `tools-only` or `not`, and why. No tool of an imported run
    ever runs.
    """
    from playhead.importing import import_sources  # noqa: PLC0415 - `--help` needs no reader

    sources, unread = _sources(files, format_name)
    folder = options.open_store(trace_dir).folder
    with writing_in(folder):
        made = import_sources(sources, folder, replace=replace, read_only=read_only)
        runs = _imported(made, as_json=as_json)
    for source in sources:
        _say_left_out(source)
        if not source.spans:
            note(f"playhead: {source.path}: no spans of {source.format} in it: nothing was imported from it")
            unread += 1
    others = sum(run.outcome == "no-run" for run in runs)
    if others:
        note(f"left out: {others:,} traces in which no span is an agent, a model call or a tool call")
    if unread or others == len(runs):
        return NotImportableError.exit_code
    is_partial = any(source.is_partial for source in sources) or all(source.is_followed for source in sources)
    return exits.FAILED if is_partial or any(run.outcome in REFUSED for run in runs) else exits.OK


def _sources(files: tuple[str, ...], format_name: str | None) -> tuple[list[Source], int]:
    """Return what the files hold, and how many cannot be read."""
    from playhead.importing import read_source  # noqa: PLC0415 - `--help` needs no reader
    from playhead.importing.limits import Room  # noqa: PLC0415 - the same

    sources, unread, room = [], 0, Room()
    for name in files:
        try:
            sources.append(read_source(Path(name), format_name, room))
        except NotImportableError as error:
            note(f"playhead: {error}")
            unread += 1
    return sources, unread


def _imported(made: Iterator[ImportedRun], *, as_json: bool) -> list[ImportedRun]:
    """Say of each run what became of it, as soon as it is there."""
    runs = []
    console = text_console()
    for run in made:
        runs.append(run)
        if run.outcome == "no-run":
            continue  # counted
        if as_json:
            write_json([run_as_json(run)])
        else:
            console.print(*run_lines(run), *_advice(run), crop=False)
    return runs


REFUSED: Final[dict[str, str]] = {
    "differs": "--replace imports it anew, and keeps the recording before beside it",
}
"""Outcomes for which the exit code is no success, with what can be done."""


def _advice(run: ImportedRun) -> list[Line]:
    return [Line(("   to do    ", "yellow"), REFUSED[run.outcome])] if run.outcome in REFUSED else []


def _say_left_out(source: Source) -> None:
    for why, count in Counter(source.problems).items():
        note(f"{source.path}: left out: {count:,} {why}")
