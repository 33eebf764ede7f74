"""`playhead import`: exported spans become recordings."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead.cli import exits, options, suggestions
from playhead.cli.imported import run_as_json, run_lines
from playhead.cli.output import note, text_console, write_json
from playhead.errors import NotImportableError

if TYPE_CHECKING:
    from playhead.importing import ImportedRun, Source

FORMATS = ("otlp-json", "otlp-protobuf", "phoenix", "openinference-jsonl", "langfuse")


@options.command(
    "import",
    example="playhead import spans.json\n  playhead import traces.jsonl.gz --as otlp-json --json\n"
    "  curl -s http://localhost:6006/v1/projects/default/spans | playhead import -",
    exits={
        0: "every trace is a recording now, or was one already",
        1: "a trace was imported before from other spans, or its id is another run's",
        3: "a file cannot be read, or holds no spans of a known format; or no trace is a run",
    },
)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=suggestions.files)
@click.option("--as", "format_name", type=click.Choice(FORMATS), help="The format of the files.  [default: by content]")
@click.option("--replace", is_flag=True, help="Import traces anew that were imported before from other spans.")
def command(
    *, files: tuple[str, ...], format_name: str | None, replace: bool, trace_dir: Path | None, as_json: bool
) -> int:
    """Make a recording of every trace in files of spans that another program exported.

    OTLP (JSON and protobuf, as the collector's file exporter writes too), Phoenix (its REST API's spans, its data frame as
    JSON), Langfuse (traces, observations) and OpenInference JSON Lines are read, by the conventions of OpenInference,
    OpenTelemetry GenAI and OpenLLMetry. Files are told apart by what they hold, and may be compressed by gzip; - is stdin.
    Traces in which no span is an agent, a model call or a tool call are no runs, and are left out.

    Of each run it is said what a replay can do with it: `full`, `tools-only` or `not`, and why. No tool of an imported run
    ever runs.
    """
    sources, unread = _sources(files, format_name)
    runs = _imported(sources, options.open_store(trace_dir).folder, as_json=as_json, replace=replace)
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
    return exits.FAILED if any(run.outcome == "differs" for run in runs) else exits.OK


def _sources(files: tuple[str, ...], format_name: str | None) -> tuple[list[Source], int]:
    """Return what the files hold, and how many cannot be read."""
    from playhead.importing import read_source  # noqa: PLC0415 - `--help` needs no reader

    sources, unread = [], 0
    for name in files:
        try:
            sources.append(read_source(Path(name), format_name))
        except NotImportableError as error:
            note(f"playhead: {error}")
            unread += 1
    return sources, unread


def _imported(sources: list[Source], folder: Path, *, as_json: bool, replace: bool) -> list[ImportedRun]:
    from playhead.importing import import_spans  # noqa: PLC0415 - as above

    runs = []
    console = text_console()
    formats = dict.fromkeys(source.format for source in sources)
    spans = (span for source in sources for span in source.spans)
    for run in import_spans(spans, folder, format_name=", ".join(formats), replace=replace):
        runs.append(run)
        if run.outcome == "no-run" and not as_json:
            continue
        if as_json:
            write_json([run_as_json(run)])
        else:
            console.print(*run_lines(run), crop=False)
    return runs


def _say_left_out(source: Source) -> None:
    for why, count in Counter(source.problems).items():
        note(f"{source.path}: left out: {count:,} {why}")
