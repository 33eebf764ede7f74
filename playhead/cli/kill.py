"""`playhead kill`: stop a run of another process, and the process itself only when that is asked for."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Literal

import click

from playhead.cli import exits, options, processes
from playhead.cli.output import note, text_console, write_json
from playhead.cli.reaching import ending_of, reach, user
from playhead.diagnose.terminal import Line
from playhead.errors import PlayheadError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from playhead.trace.control import Control

POLL_S: Final = 0.02
"""Seconds between two looks at whether the run has ended."""
CLOSING_S: Final = 0.2
"""Seconds that a run may take between closing its trace and removing its control folder, in whatever order."""


@dataclass(frozen=True, slots=True)
class Kill:
    """What became of a run that was to end."""

    run_id: str
    how: Literal["closed", "vanished", "killed", "asked"]
    """`closed`: it ended itself and its trace is whole; `vanished`: it is over, and its trace has no end; `killed`: its
    process got SIGKILL; `asked`: it is still running."""
    terminated_by: str | None
    """The reason code of its end, when it closed its trace."""
    seconds: float
    """From the request to the end."""
    pid: int
    """Its process."""
    also: tuple[str, ...]
    """Other runs of its process, in whatever folder: with `killed` they were ended too."""


@options.command(
    "kill",
    example='playhead kill latest --why "it writes to the wrong table"',
    exits={0: "the run is over", 1: "it was over before, or is still running", **options.UNREADABLE},
)
@options.run_argument()
@click.option("--why", metavar="TEXT", help="The reason, which the trace will hold.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the run may take to end itself.",
)
@click.option(
    "--process",
    "kills",
    is_flag=True,
    help="If it has not by then, kill its process (SIGKILL), with all other runs in it.",
)
def command(  # noqa: PLR0913 - the options
    *, run: str, why: str | None, grace: float, kills: bool, trace_dir: Path | None, as_json: bool
) -> int:
    """Stop a run of another process of yours on this machine.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    The run is asked to stop: it ends what it awaits, closes its trace, and returns what it has reached; its process lives
    on. Code that never lets go of the interpreter cannot be stopped so: then this exits 1, and --process kills the whole
    process (SIGKILL) after naming the other runs in it; the traces then have no end. Only the very process that began the
    run is ever killed.
    """
    path = options.open_store(trace_dir).resolve(run)
    outcome = end(path, reach(path, "nothing to kill"), why or f"`playhead kill` by {user()}", grace, kills=kills)
    if as_json:
        write_json([{**asdict(outcome), "trace_path": str(path)}])
    else:
        print_kill(text_console(), outcome)
    return exits.FAILED if outcome.how == "asked" else exits.OK


def end(path: Path, control: Control, why: str, grace_s: float, *, kills: bool) -> Kill:
    """Ask the run to end; `kills` ends its process when it does not.

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
    others = processes.runs_beside(control)
    names = tuple(each.run_id for each in others)
    if not kills:
        return outcome("asked", *names)
    doubt = processes.kill(control, lambda: _name_others(control, names))
    if doubt is None:
        if not processes.wait_until_gone(control):
            raise PlayheadError(
                f"the process {control.process.pid} got SIGKILL and is not gone yet; the system holds it"
            )
        for each in (control, *others):
            each.remove_leftover()
        return outcome("killed", *names)
    if _is_over(path, control, time.monotonic()):
        return outcome("vanished")
    raise PlayheadError(
        f"run {control.run_id} was asked to end and has not within {grace_s:g} s; its process is not killed: {doubt}"
    )


def _name_others(control: Control, names: tuple[str, ...]) -> None:
    if names:
        note(f"its process {control.process.pid} is killed now, and with it the other runs in it: {', '.join(names)}")


def print_kill(console: Console, outcome: Kill) -> None:
    """Print how the run ended, and what ended with it."""
    killed = f"its process {outcome.pid} was killed (SIGKILL)"
    how = {
        "closed": f"closed by itself, terminated_by {outcome.terminated_by}; its process was left alone",
        "vanished": "its process ended it; the trace has no end, and `playhead check` says what of it is sound",
        "killed": f"{killed}; the trace is closed, terminated_by {outcome.terminated_by}"
        if outcome.terminated_by
        else f"{killed}; the trace ends open, and `playhead check` says so",
        "asked": f"it has not stopped; --process kills its whole process {outcome.pid} (SIGKILL)",
    }[outcome.how]
    word = ("still running: ", "bold yellow") if outcome.how == "asked" else ("ended: ", "bold green")
    console.print(
        Line(word, f"{outcome.run_id}, {outcome.seconds:.2f} s after it was asked: {how}", whole=True), crop=False
    )
    if outcome.also:
        what = "also ended" if outcome.how == "killed" else "it runs these too, and they would end with it"
        console.print(Line((f"{what}: ", "bold red"), ", ".join(outcome.also), whole=True), crop=False)


def _is_over(path: Path, control: Control, late: float) -> bool:
    """Wait until the run has closed its trace, or its process has let go of it; False when it is late."""
    while ending_of(path) is None:
        if not control.held:
            time.sleep(CLOSING_S)
            return True
        if time.monotonic() >= late:
            return False
        time.sleep(POLL_S)
    processes.wait(lambda: not control.held, CLOSING_S)  # its control folder goes last
    return True
