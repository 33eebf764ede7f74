"""`playhead kill`: end a run that goes on in another process."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Literal

import click

from playhead.cli import exits, options, processes
from playhead.cli.output import text_console, write_json
from playhead.cli.reaching import ending_of, reach, user
from playhead.diagnose.terminal import Line
from playhead.errors import PlayheadError, UsageError
from playhead.trace.control import Control

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

POLL_S: Final = 0.02
"""Seconds between two looks at whether the run has ended."""
CLOSING_S: Final = 0.2
"""Seconds that a run may take to close its trace after it has removed its control folder."""


@dataclass(frozen=True, slots=True)
class Kill:
    """What became of a run that was to end."""

    run_id: str
    how: Literal["closed", "vanished", "killed", "asked"]
    """`closed`: it ended itself and its trace is whole; `vanished`: it is over, and its trace has no end; `killed`: its
    process got SIGKILL; `asked`: it goes on still."""
    terminated_by: str | None
    """The reason code of its end, when it closed its trace."""
    seconds: float
    """From the request to the end."""
    pid: int
    """Its process."""
    also: tuple[str, ...]
    """Other runs of this folder that were ended with its process."""


@options.command(
    "kill",
    example='playhead kill latest --why "it writes to the wrong table"',
    exits={0: "the run is over", 1: "it was over before, or it goes on", **options.UNREADABLE},
)
@options.run_argument()
@click.option("--why", metavar="TEXT", help="The reason, which the trace will hold.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the run may take to end itself before its process is killed.",
)
@click.option("--ask-only", is_flag=True, help="Never kill the process: only ask, and wait as long.")
def command(  # noqa: PLR0913 - the options
    *, run: str, why: str | None, grace: float, ask_only: bool, trace_dir: Path | None, as_json: bool
) -> int:
    """End a run that goes on in another process of yours on this machine.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    The run is asked first: it ends what it awaits, closes its trace, and returns what it has reached. If it has not within
    the grace (code that never lets go of the interpreter cannot), its whole process is killed (SIGKILL), with every other
    run in it; its trace then has no end. Only the very process that began the run is ever killed.
    """
    path = options.open_store(trace_dir).resolve(run)
    outcome = end(path, reach(path, "nothing to kill"), why or f"`playhead kill` by {user()}", grace, ask_only=ask_only)
    if as_json:
        write_json([{**asdict(outcome), "trace_path": str(path)}])
    else:
        print_kill(text_console(), outcome)
    return exits.FAILED if outcome.how == "asked" else exits.OK


def end(path: Path, control: Control, why: str, grace_s: float, *, ask_only: bool) -> Kill:
    """Ask the run to end, and kill its process when it does not.

    Raises:
        PlayheadError: it goes on, and its process is not killed, for it may be another one.
    """
    if control.process.pid == os.getpid():
        raise UsageError(f"run {control.run_id} runs in this very process; end it with its own means")
    began = time.monotonic()

    def outcome(how: Literal["closed", "vanished", "killed", "asked"], *also: str) -> Kill:
        ending = ending_of(path)
        how = "closed" if ending and how != "killed" else how
        by = ending.terminated_by if ending else None
        return Kill(control.run_id, how, by, round(time.monotonic() - began, 3), control.process.pid, also)

    try:
        control.request_kill(why)
    except FileNotFoundError:  # it has just ended
        return outcome("vanished")
    if _is_over(path, control, began + grace_s):
        return outcome("vanished")
    if ask_only:
        return outcome("asked")
    others = [each for each in runs_beside(control) if each.held]
    doubt = processes.kill(control)
    if doubt is None:
        if not processes.wait_until_gone(control):
            raise PlayheadError(
                f"the process {control.process.pid} got SIGKILL and is not gone yet; the system holds it"
            )
        for each in (control, *others):
            each.remove_leftover()
        return outcome("killed", *(each.run_id for each in others))
    if _is_over(path, control, time.monotonic()):
        return outcome("vanished")
    raise PlayheadError(
        f"run {control.run_id} was asked to end and has not within {grace_s:g} s; its process is not killed: {doubt}"
    )


def runs_beside(control: Control) -> list[Control]:
    """Return the other runs of the same process in this folder."""
    return [
        each
        for each in Control.all_in(control.trace_path.parent)
        if each.run_id != control.run_id
        and (each.process.pid, each.process.host) == (control.process.pid, control.process.host)
    ]


def print_kill(console: Console, outcome: Kill) -> None:
    """Print how the run ended, and what ended with it."""
    killed = f"its process {outcome.pid} was killed (SIGKILL)"
    how = {
        "closed": f"closed by itself, terminated_by {outcome.terminated_by}",
        "vanished": "its process ended it; the trace has no end, and `playhead check` says what of it is sound",
        "killed": f"{killed}; the trace is closed, terminated_by {outcome.terminated_by}"
        if outcome.terminated_by
        else f"{killed}; the trace ends open, and `playhead check` says so",
        "asked": "it was asked to end and goes on; without --ask-only its process would be killed now",
    }[outcome.how]
    word = ("goes on: ", "bold yellow") if outcome.how == "asked" else ("ended: ", "bold green")
    console.print(
        Line(word, f"{outcome.run_id}, {outcome.seconds:.2f} s after it was asked: {how}", whole=True), crop=False
    )
    if outcome.how == "closed" and not processes.ends_soon(outcome.pid):
        console.print(Line(("", ""), f"its process {outcome.pid} goes on", whole=True), crop=False)
    if outcome.also:
        also = ", ".join(outcome.also)
        console.print(
            Line(("also ", "bold red"), f"ended, for they ran in the same process: {also}", whole=True), crop=False
        )


def _is_over(path: Path, control: Control, late: float) -> bool:
    """Wait until the run has closed its trace, or its process has let go of it; False when it is late."""
    while ending_of(path) is None:
        if not control.held:
            time.sleep(CLOSING_S)
            return True
        if time.monotonic() >= late:
            return False
        time.sleep(POLL_S)
    return True
