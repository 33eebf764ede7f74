"""`playhead approve`: let a call that waits run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from playhead.cli import options, suggestions
from playhead.cli.inbox import answer_one

if TYPE_CHECKING:
    from pathlib import Path


@options.command(
    "approve",
    example="playhead approve latest call_0_0",
    exits={0: "the call is answered", 1: "no such call waits any more", **options.UNREADABLE},
)
@options.run_argument()
@click.argument("call", required=False, shell_complete=suggestions.waiting_calls)
@click.option("--why", metavar="TEXT", help="A reason, which the trace will hold.")
def command(*, run: str, call: str | None, why: str | None, trace_dir: Path | None, as_json: bool) -> int:
    """Let a call run that waits for an answer: exactly this call, with exactly the arguments that are shown.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file. CALL is the
    call's id or the start of one, as `playhead approvals` lists it; on a terminal it may be left out when one call alone
    waits, which is then shown, and asked about.
    """
    return answer_one(run, call, approved=True, why=why, trace_dir=trace_dir, as_json=as_json)
