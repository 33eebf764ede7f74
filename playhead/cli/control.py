"""Commands for runs of other processes: `kill`, and `approvals`, `approve` and `deny` for tool calls."""

from __future__ import annotations

import getpass
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import psutil

from playhead.cli import exits, options
from playhead.cli.output import note, tell, text_console, write_json
from playhead.cli.reading import existing_store, open_store
from playhead.compose.inbox import Inbox
from playhead.diagnose.run_summary import summarise
from playhead.diagnose.terminal import Line, fit
from playhead.errors import PlayheadError, RunEndedError, TraceError, nearest
from playhead.kernel.lifecycle.own_control import remove_leftover
from playhead.trace.blobs import run_id_of
from playhead.trace.control import FOLDER, Control

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from playhead.compose.inbox import PendingApproval
    from playhead.kernel.approval import ApprovalRequest
    from playhead.trace.store import TraceStore

ENDED: Final = ("done", "failed")
CLOSING_S: Final = 0.2
"""Seconds that a run may take between closing its trace and removing its control folder, in either order."""


def reach(path: Path, otherwise: str) -> Control:
    """Return the control folder of a running agent; `otherwise` completes the error when it is not running.

    Raises:
        RunEndedError: it has ended, or its process has.
        TraceError: its file cannot be read.
        PlayheadError: it cannot be reached from here.
    """
    run, run_id, control = summarise(path), run_id_of(path), Control.of(path)
    if control is None and run.status == "unreadable":
        what = "is no trace that can be read" if run.format is None else f"is in trace format {run.format}"
        raise TraceError(f"run {run_id} cannot be reached: {path.name} {what}")
    if run.status in ENDED:
        raise RunEndedError(f"run {run_id} has ended by {run.terminated_by}; {otherwise}")
    if control is None:
        raise PlayheadError(
            f"run {run_id} cannot be reached: it has no end, but no control folder of yours beside its trace either. "
            "Its process is gone, or it runs on another machine, as another user, or in an older Playhead"
        )
    if control.process.host != os.uname().nodename:
        raise PlayheadError(f"run {run_id} runs on the machine {control.process.host!r}; {otherwise} from here")
    if not control.held:
        gone = f"its process {control.process.pid} is gone, and the trace has no end"
        raise RunEndedError(f"run {run_id} is not running: {gone}; {otherwise}")
    return control


def user() -> str:
    """Return the name of the user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an id without a name, as in containers
        return f"user {os.getuid()}"


# --- kill -------------------------------------------------------------------------------------------------------------


@options.command("kill")
@options.run_argument()
@click.option("--why", metavar="TEXT", help="The reason, recorded in the trace.")
@click.option("--grace", type=click.FloatRange(min=0), default=1.0, help="Seconds the run may take to stop.")
@click.option("--process", "kills", is_flag=True, help="Then kill its process (SIGKILL), with all other runs in it.")
def kill(  # noqa: PLR0913 - the options
    *, run: str, why: str | None, grace: float, kills: bool, trace_dir: Path | None, as_json: bool
) -> int:
    """Stop a running agent from another process, on this machine and as the same user.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    The run is asked to stop: it cancels what it awaits, closes its trace, and returns its partial result; its process
    continues. Code that never releases the interpreter cannot be stopped so: then this exits 1, and --process kills the
    whole process (SIGKILL) after naming the other runs in it; their traces then have no end. Only the process that started
    the run is ever killed.

    Example:
      playhead kill latest --why "it writes to the wrong table"

    Exit codes:
      0  the run has ended
      1  it had ended before, or is still running
      2  the command line is wrong
      3  there is no such run, or its file cannot be read
    """
    path, began = open_store(trace_dir).resolve(run), time.monotonic()
    control = reach(path, "nothing to kill")
    with suppress(FileNotFoundError):  # it has just ended
        control.request_kill(why or f"`playhead kill` by {user()}")
    is_over = _is_over(path, control, grace)
    others = [] if is_over else runs_beside(control)
    is_killed = kills and not is_over and _kill_process_of(path, control, others, grace)
    found = summarise(path)
    is_closed = found.status in ENDED
    how = "killed" if is_killed else "closed" if is_closed else "vanished" if is_over or kills else "asked"
    outcome = {
        "run_id": control.run_id,
        "how": how,
        "terminated_by": found.terminated_by if is_closed else None,
        "seconds": round(time.monotonic() - began, 3),
        "pid": control.process.pid,
        "also": [each.run_id for each in others],
        "trace_path": str(path),
    }
    tell(outcome, *_kill_rows(outcome), as_json=as_json)
    return exits.FAILED if how == "asked" else exits.OK


def _kill_rows(outcome: dict[str, Any]) -> Iterator[Line]:
    """Yield how the run ended, and what ended with it."""
    how, pid, ended_by = outcome["how"], outcome["pid"], outcome["terminated_by"]
    what = {
        "closed": f"closed by itself, terminated_by {ended_by}; its process was left alone",
        "vanished": "its process ended it; the trace has no end, and `playhead check` says what of it is sound",
        "killed": f"its process {pid} was killed (SIGKILL), and `playhead check` says how its trace ends",
        "asked": f"it has not stopped; --process kills its whole process {pid} (SIGKILL)",
    }[how]
    word = ("still running: ", "bold yellow") if how == "asked" else ("ended: ", "bold green")
    yield Line(word, f"{outcome['run_id']}, {outcome['seconds']:.2f} s after it was asked: {what}", whole=True)
    if outcome["also"]:
        with_it = "also ended" if how == "killed" else "it runs these too, and they would end with it"
        yield Line((f"{with_it}: ", "bold red"), ", ".join(outcome["also"]), whole=True)


def _kill_process_of(path: Path, control: Control, others: list[Control], grace_s: float) -> bool:
    """Kill the process of a run; return False if the run ended meanwhile.

    Raises:
        PlayheadError: it is not killed, because it may be another process.
    """
    if others:
        names = ", ".join(each.run_id for each in others)
        note(f"killing its process {control.process.pid}, and with it the other runs in it: {names}")
    why_not = kill_process(control)
    if why_not is None:
        for each in (control, *others):
            remove_leftover(each.folder)
        return True
    if _is_over(path, control, 0):
        return False
    raise PlayheadError(
        f"run {control.run_id} was asked to end and has not within {grace_s:g} s; its process is not killed: {why_not}"
    )


def _is_over(path: Path, control: Control, grace_s: float) -> bool:
    """Wait until the run has closed its trace, or its process has let go of it; False when it is late."""

    def closed() -> bool:
        return summarise(path).status in ENDED

    if not wait(lambda: closed() or not control.held, grace_s):
        return False
    wait(lambda: closed() and not control.held, CLOSING_S)  # its control folder goes last
    return True


# --- tool calls awaiting approval -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Waiting:
    """A tool call awaiting approval, and its run."""

    control: Control
    pending: PendingApproval

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"run_id": self.control.run_id, "call": reference(self.pending), **self.pending.model_dump()}

    def lines(self) -> Iterator[str]:
        """Yield what is shown of it, each line safe."""
        seconds = max(time.time_ns() // 1000 - self.pending.asked_us, 0) / 1e6
        yield f"run {self.control.run_id}  call {fit(reference(self.pending), 500)}  asked {seconds:.0f} s ago"
        yield from self.pending.lines()


def reference(call: PendingApproval | ApprovalRequest) -> str:
    """Return how a call is named on the command line: a sub-agent's may have the id of another agent's."""
    return call.call_id if call.owner == "root" else f"{call.owner}/{call.call_id}"


def waiting_calls(store: TraceStore, run: str | None) -> list[Waiting]:
    """Return the calls awaiting approval, of a run or of all running agents. Raises like `reach`."""
    if run is not None:
        controls = [reach(store.resolve(run), "nothing waits")]
    else:
        controls = [control for control in Control.all_in(store.folder) if control.held]
    return [Waiting(control, pending) for control in controls for pending in Inbox(control).pending()]


@options.command("approvals")
@options.run_argument(required=False)
def approvals(*, run: str | None, trace_dir: Path | None, as_json: bool) -> int:
    """List tool calls awaiting approval by another process, of RUN or of all your running agents.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    An agent asks this way with `playhead run --approve inbox`, or `approver=file_inbox()` in Python. Answer with
    `playhead approve` or `playhead deny`.

    Example:
      playhead approvals

    Exit codes:
      0  all is well
      1  the run has ended
      2  the command line is wrong
      3  there is no such run, or its file cannot be read
    """
    calls = waiting_calls(existing_store(trace_dir), run)
    if as_json:
        write_json(each.as_json() for each in calls)
    elif calls:
        text_console().out("\n\n".join("\n".join(each.lines()) for each in calls), highlight=False)
    else:
        note("no call waits for an answer")
    return exits.OK


@options.suggesting
def _complete_calls(context: click.Context) -> Iterable[tuple[str, str]]:
    """Suggest the calls of the run that await approval."""
    store = open_store(context.params.get("trace_dir"), context)
    return [(reference(each.pending), each.pending.tool) for each in waiting_calls(store, context.params.get("run"))]


_call_argument: Final = click.argument("call", shell_complete=_complete_calls)


@options.command("approve")
@options.run_argument()
@_call_argument
@click.option("--why", metavar="TEXT", help="A reason, recorded in the trace.")
def approve(*, run: str, call: str, why: str | None, trace_dir: Path | None, as_json: bool) -> int:
    """Approve a tool call: exactly this call, with exactly the arguments that are shown.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file. CALL is the
    call's id or the start of one, as `playhead approvals` lists it.

    Example:
      playhead approve latest call_0_0

    Exit codes:
      0  the call is answered
      1  no such call awaits approval
      2  the command line is wrong
      3  there is no such run, or its file cannot be read
    """
    return _answer(_meant(waiting_calls(open_store(trace_dir), run), call), approved=True, why=why, as_json=as_json)


@options.command("deny")
@options.run_argument()
@_call_argument
@click.option("--why", metavar="TEXT", required=True, help="The reason, which the model is given.")
def deny(*, run: str, call: str, why: str, trace_dir: Path | None, as_json: bool) -> int:
    """Deny a tool call: it does not run, the model is given the reason, and the run continues.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file. CALL is the
    call's id or the start of one, as `playhead approvals` lists it.

    Example:
      playhead deny latest call_0_0 --why "the amount is too high"

    Exit codes:
      0  the call is answered
      1  no such call awaits approval
      2  the command line is wrong
      3  there is no such run, or its file cannot be read
    """
    return _answer(_meant(waiting_calls(open_store(trace_dir), run), call), approved=False, why=why, as_json=as_json)


def _meant(calls: list[Waiting], name: str) -> Waiting:
    """Return the call of this name, or the only one whose name begins so."""
    named = [(each, (reference(each.pending), each.pending.call_id)) for each in calls]
    found = [each for each, (known, _) in named if known == name]
    found = found or [each for each, known in named if any(one.startswith(name) for one in known)]
    if not found:
        hint = nearest(name, [reference(each.pending) for each in calls])
        raise PlayheadError(f"no call {name!r} waits: it has been answered, given up, or never asked.{hint}")
    if len(found) > 1:
        names = ", ".join(reference(each.pending) for each in found)
        raise PlayheadError(f"{len(found)} calls wait that {name!r} may mean; name one: {names}")
    return found[0]


def _answer(waiting: Waiting, *, approved: bool, why: str | None, as_json: bool) -> int:
    """Answer a call, and show exactly what was answered."""
    if not Inbox(waiting.control).answer(waiting.pending, approved=approved, why=why, by=user()):
        raise PlayheadError(f"the call {reference(waiting.pending)} waits no more: it has been answered, or given up")
    if as_json:
        write_json([{**waiting.as_json(), "approved": approved, "answer": why}])
    else:
        said = f"{'approved' if approved else 'denied'}; the run goes on as soon as it has read this"
        text_console().out("\n".join([*waiting.lines(), said]), highlight=False)
    return exits.OK


CLOCK_S: Final = 1.5
"""Seconds by which the system's word for when a process began may be wrong: it counts from a boot in whole seconds."""
GONE_S: Final = 5.0
"""Seconds that the system may take to end a killed process."""
RELEASE_S: Final = 1.0
"""Seconds that its files may take to be closed after that."""
POLL_S: Final = 0.02


def kill_process(control: Control) -> str | None:  # noqa: PLR0911 - a list of doubts
    """Send SIGKILL to the process that runs a run, and wait for its end; or return why it may be another process.

    It has to be of this machine, to have begun before the control folder was made, and to hold the folder's file open,
    which is locked as long as that process lives.

    Raises:
        PlayheadError: it does not end.
    """
    pid = control.process.pid
    if control.process.host != os.uname().nodename:
        return f"it runs on the machine {control.process.host!r}"
    if pid <= 1 or pid == os.getpid():
        return f"its process is {pid}, which is never killed from here"
    try:
        process = psutil.Process(pid)  # which knows its start too, and never signals another one of this id
        if not control.held:
            return f"the process {pid} is gone"
        if process.create_time() > control.process.created_us / 1e6 + CLOCK_S:
            return f"the process {pid} is another: it began after the run"
        if not any(_same(each.path, control.process_file) for each in process.open_files()):
            return f"the process {pid} may be another: it does not hold the run's control folder"
        process.kill()
    except psutil.NoSuchProcess:
        return f"the process {pid} is gone"
    except psutil.Error as error:
        return f"the process {pid} cannot be reached: {type(error).__name__}"
    if not wait(lambda: has_ended(pid), GONE_S):
        raise PlayheadError(f"the process {pid} got SIGKILL and is not gone yet; the system holds it")
    wait(lambda: not control.held, RELEASE_S)  # its threads end one by one; a fork of it may keep the lock
    return None


def runs_beside(control: Control) -> list[Control]:
    """Return the other runs of the same process, in any folder: it holds a file of each one's control folder open."""
    try:
        files = [Path(each.path) for each in psutil.Process(control.process.pid).open_files()]
    except psutil.Error:
        return []
    name = control.process_file.name
    folders = {file.parent for file in files if file.name == name and file.parts[-3:-2] == (FOLDER,)}
    found = [Control.of(folder.parent.parent / f"{folder.name}.jsonl") for folder in sorted(folders)]
    return [each for each in found if each is not None and not _same(str(each.process_file), control.process_file)]


def wait(over: Callable[[], bool], seconds: float) -> bool:
    """Wait until something is over; False when it takes longer."""
    late = time.monotonic() + seconds
    while not over():
        if time.monotonic() >= late:
            return False
        time.sleep(POLL_S)
    return True


def has_ended(pid: int) -> bool:
    """Return whether there is no such process any more."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _same(path: str, other: Path) -> bool:
    try:
        return Path(path).samefile(other)
    except OSError:
        return False
