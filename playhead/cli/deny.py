"""`playhead deny`: do not let a call that waits run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from playhead.cli import options, suggestions
from playhead.cli.inbox import answer_one

if TYPE_CHECKING:
    from pathlib import Path


@options.command(
    "deny",
    example='playhead deny latest call_0_0 --why "the amount is too high"',
    exits={0: "the call is answered", 1: "no such call waits any more", **options.UNREADABLE},
)
@options.run_argument()
@click.argument("call", required=False, shell_complete=suggestions.waiting_calls)
@click.option("--why", metavar="TEXT", required=True, help="The reason, which the model is told.")
def command(*, run: str, call: str | None, why: str, trace_dir: Path | None, as_json: bool) -> int:
    """Refuse a call that waits for approval: it does not run, the model is told why, and the run goes on.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file. CALL is the
    call's id or the start of one, as `playhead approvals` lists it; it may be left out when one call alone waits.
    """
    return answer_one(run, call, approved=False, why=why, trace_dir=trace_dir, as_json=as_json)
