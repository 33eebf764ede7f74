"""`playhead approvals`: the calls that wait for approval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.cli import exits, options
from playhead.cli.inbox import waiting_calls
from playhead.cli.output import note, text_console, write_json

if TYPE_CHECKING:
    from pathlib import Path


@options.command("approvals", example="playhead approvals", exits={1: "the run has ended", **options.UNREADABLE})
@options.run_argument(required=False)
def command(*, run: str | None, trace_dir: Path | None, as_json: bool) -> int:
    """List the calls that wait for an answer of another process, of RUN or of all your runs that go on.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    They are those of runs that ask this way: `playhead run --approve inbox`, or `approver=file_inbox()` in Python.
    Answer them with `playhead approve` or `playhead deny`.
    """
    calls = waiting_calls(options.open_store(trace_dir), run)
    if as_json:
        write_json(each.as_json() for each in calls)
    elif calls:
        text_console().out("\n\n".join("\n".join(each.lines()) for each in calls), highlight=False)
    else:
        note("no call waits for an answer")
    return exits.OK
