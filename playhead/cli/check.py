"""`playhead check`: is a trace what was written?"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from playhead.cli import exits, options
from playhead.cli.output import text_console, write_json
from playhead.diagnose.terminal import Line
from playhead.errors import UsageError
from playhead.trace.blobs import run_id_of
from playhead.trace.integrity import Check, check_trace
from playhead.trace.store import SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import Console

VERDICTS: Final = {
    "ok": "closed, whole and unchanged",
    "open": "sound so far, but the run has no end: it is still running, or was killed",
    "truncated": "the last line is torn; everything before it is sound",
    "lost-events": "some events could not be written; the run says so itself",
    "missing-blob": "a large value that belongs to it is missing or changed",
    "erased": "the others are what was written",
    "damaged": "this is not what was written",
    "other-run": "it holds another run than the one that its name says",
    "other-head": "it does not end in the head that was given",
}
SHOWN: Final = 20
"""Problems that are printed; `--json` has more."""


@options.command(
    "check",
    example="playhead check latest",
    exits={0: "closed, whole and unchanged", 1: "anything else", **options.UNREADABLE},
)
@options.run_argument()
@click.option("--head", metavar="HASH", help="The hash of the last event, kept elsewhere: the trace has to end in it.")
def command(*, run: str, head: str | None, trace_dir: Path | None, as_json: bool) -> int:
    """Verify that a trace is whole and unchanged: every line's chained hash, the order, the large values, the end.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    Cutting off whole lines at the end, or hashing a changed file anew from its start, shows only against a head that
    was kept elsewhere. Exits 1 when anything is wrong, and when the run has no end.
    """
    if head is not None and not re.fullmatch("[0-9a-f]{64}", head):
        raise UsageError("--head takes the 64 lower-case hex digits that `playhead check` prints as head")
    path = options.open_store(trace_dir).resolve(run)
    by_id = not run.endswith(SUFFIXES)  # a file that is named by its path may have any name
    checked = check_trace(path, head, run_id_of(path) if by_id else None)
    if as_json:
        write_json([check_as_json(checked)])
    else:
        print_check(text_console(), checked)
    return exits.OK if checked.ok else exits.FAILED


def check_as_json(checked: Check) -> dict[str, Any]:
    """Return the outcome as JSON."""
    return {**asdict(checked), "path": str(checked.path), "ok": checked.ok}


def print_check(console: Console, checked: Check) -> None:
    """Print the verdict, what is wrong, and the head to keep."""
    console.print(
        *verdict_lines(checked),
        Line(("file  ", "dim"), str(checked.path), whole=True),
        Line(("head  ", "dim"), checked.head or "none", whole=True),
        crop=False,
    )


def verdict_lines(checked: Check) -> Iterator[Line]:
    """Yield the verdict and what is wrong."""
    style = "bold green" if checked.ok else "bold red"
    erased = f"{checked.erased} {'line' if checked.erased == 1 else 'lines'} erased, " if checked.erased else ""
    yield Line((f"{checked.verdict}: ", style), f"{checked.events} events, {erased}{VERDICTS[checked.verdict]}")
    shown, rest = checked.problems[:SHOWN], checked.problems[SHOWN:]
    for problem in shown:
        yield Line(("!! ", "bold red"), str(problem))
    if len(rest) > 1:
        more = sum(problem.count for problem in rest[:-1])
        yield Line(f"… and {more:,} more problems; --json names more of them")
    for problem in rest[-1:]:  # the last one says where the reading ended
        yield Line(("!! ", "bold red"), str(problem), whole=True)
