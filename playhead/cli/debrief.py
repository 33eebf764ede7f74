"""`playhead debrief`: the decisions of a run, and the claims that its trace does not support."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from playhead.cli import exits, options
from playhead.cli.output import PROSE_WIDTH, text_console, write_json
from playhead.cli.reading import note_state, read_run
from playhead.diagnose.debrief import build_debrief
from playhead.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.diagnose.debrief_model import Debrief


@options.command(
    "debrief",
    example="playhead debrief latest\n  playhead debrief latest --markdown > debrief.md",
    exits={1: "the file is damaged; what can be read of it is shown all the same", **options.UNREADABLE},
)
@options.run_argument()
@click.option("--markdown", is_flag=True, help="Write Markdown, for a review or an issue.")
def command(*, run: str, markdown: bool, trace_dir: Path | None, as_json: bool) -> int:
    """Tell what a run decided and why, from its trace alone.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    What was asked, the path of calls, the stated reason of each, assumptions, who else steered, how it ended, and
    flags: claims and stated reasons that the trace does not support. No model is asked, and no reason is made up.
    """
    if markdown and as_json:
        raise UsageError("--markdown and --json are two forms: choose one")
    recording = read_run(options.open_store(trace_dir), run)
    note_state(recording)
    debrief = build_debrief(recording)
    if as_json:
        write_json([debrief.model_dump(mode="json")])
    elif markdown:
        _print_markdown(debrief)
    else:
        print_debrief(debrief)
    return exits.FAILED if recording.status == "damaged" else exits.OK


def print_debrief(debrief: Debrief) -> None:
    """Print a debrief for people."""
    from playhead.diagnose.debrief_view import debrief_document  # noqa: PLC0415 - JSON needs no view

    text_console(pipe_width=PROSE_WIDTH).print(debrief_document(debrief), crop=False)


def _print_markdown(debrief: Debrief) -> None:
    from playhead.diagnose.debrief_view import debrief_document  # noqa: PLC0415 - as above

    click.echo(debrief_document(debrief, figures=True).markdown())
