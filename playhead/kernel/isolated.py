"""The child's side of an isolated call: a guardian, and below it the process that runs the tool.

    this program  (session of its own; the pipes of the other end: kernel/isolation.py)
    └── worker    (session of its own; runs the function)
        └── …     (what the function starts)

The guardian waits for the worker's end, for an order, and for the end of the program that started it, which closes the
lifeline however it dies. In each case nothing that the worker started is left behind: its process group is killed, and on
Linux also what left the group, because orphans below the guardian become its children.

The file is run by its path, before anything else is imported: where Playhead is found is part of the request.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

READY: Final = b"r"
"""Said by the guardian before it reads the request; until then it has no child, and may be killed itself."""
TERMINATE: Final = b"t"
"""The order to end the worker by SIGTERM, and what is left `GRACE_S` later by SIGKILL."""
KILL: Final = b"k"
"""The order to kill at once. The end of the lifeline is the same."""
GRACE_S: Final = 0.1
"""Seconds between SIGTERM and SIGKILL."""
GIVE_UP_S: Final = 1.0
"""Seconds after SIGKILL until the guardian stops waiting: what the system cannot kill is nobody's to wait for."""
LOOK_S: Final = 0.5
"""Seconds between two looks at whether the parent lives; a fork of it may hold the lifeline open."""
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36


class Guardian:
    """Waits until the worker ends or has to, and leaves nothing of it behind."""

    def __init__(self, worker: int, lifeline: int, parent: int) -> None:
        self._worker = worker
        self._lifeline = lifeline
        self._parent = parent
        self._code: int | None = None
        """The worker's exit code, or minus the signal that ended it; None while it runs."""
        self._childless = False
        self._poll = select.poll()  # select.select knows no descriptors from 1024 on
        self._wake = _wake_on_signals()
        self._poll.register(lifeline, select.POLLIN)
        self._poll.register(self._wake, select.POLLIN)

    def watch(self) -> int | None:
        """Return how the worker ended, when all that it started has ended, too."""
        kill_at = inf
        while not self._over(kill_at):
            if not self._wait(min(LOOK_S, kill_at - time.monotonic())):
                continue
            if os.read(self._lifeline, 1) != TERMINATE:
                break
            self._signal(signal.SIGTERM)
            kill_at = time.monotonic() + GRACE_S
        self._kill()
        return self._code

    def _over(self, kill_at: float) -> bool:
        self._reap()
        if self._childless or time.monotonic() >= kill_at or os.getppid() != self._parent:
            return True
        return self._code is not None and kill_at == inf

    def _wait(self, seconds: float) -> bool:
        """Wait for a signal or an order; return whether there is an order."""
        ready = dict(self._poll.poll(max(0.0, seconds) * 1000))
        if self._wake in ready:
            os.read(self._wake, 1024)
        return self._lifeline in ready

    def _kill(self) -> None:
        give_up_at = time.monotonic() + GIVE_UP_S
        self._poll.unregister(self._lifeline)
        self._signal(signal.SIGKILL)
        self._reap()
        while not self._childless and time.monotonic() < give_up_at:
            for child in _children():
                _send(os.kill, child, signal.SIGKILL)
            self._wait(0.01)
            self._reap()

    def _signal(self, number: signal.Signals) -> None:
        _send(os.killpg, self._worker, number)
        if self._code is None:  # it may not be in its own group yet
            _send(os.kill, self._worker, number)

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._worker:
                    self._code = os.waitstatus_to_exitcode(ended[1])
            return
        self._childless = True


def _wake_on_signals() -> int:
    """Return what can be read from when a child has ended; and go on when somebody wants to end this process alone."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return reader


def _send(kill: Any, target: int, number: signal.Signals) -> None:  # noqa: ANN401 - os.kill or os.killpg
    with suppress(OSError):  # it has ended, or has become somebody else's
        kill(target, number)


def _children() -> list[int]:
    """Return the children of this process; on Linux only."""
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/self/task/{os.getpid()}/children").read_bytes().split()]
    return []


def _control_process(option: int, value: int) -> None:
    """Set one of Linux's process attributes; elsewhere nothing."""
    if sys.platform != "linux":
        return
    with suppress(ImportError, OSError, AttributeError):
        import ctypes  # noqa: PLC0415 - needed nowhere else

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


# --- the worker ----------------------------------------------------------------------------------------------------------


def leave_with(guardian: int) -> None:
    """Lead a session of its own, and end when the guardian does."""
    os.setsid()
    _control_process(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guardian:
        os._exit(1)


def work(request: bytes, answer: int, guardian: int) -> NoReturn:
    """Run the tool, answer, and end at once: no thread and no exit function of the tool's is waited for."""
    leave_with(guardian)
    me = os.getpid()
    reply = _reply(request)
    if os.getpid() != me:  # the function forked, and this is the other one
        os._exit(0)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    _write(answer, json.dumps(reply).encode())
    os._exit(0)


def _reply(request: bytes) -> dict[str, Any]:
    try:
        asked = json.loads(request)
        sys.argv, sys.path[:] = asked["argv"], asked["path"]
        found = _function(asked)
    except BaseException as error:  # noqa: BLE001 - a module of the user's may raise anything
        problem = f"the module of the tool cannot be loaded in its process: {type(error).__name__}: {error}"
        return {"ok": False, "error": {"type": "IsolationFailed", "message": problem}}
    from playhead.kernel.tools import FunctionTool, tool  # noqa: PLC0415 - found by the path of the request

    made = found if isinstance(found, FunctionTool) else tool(name="tool")(found)
    outcome = made.run_here(asked["arguments"], asked["backend"])
    why = None if outcome.error is None else {"type": outcome.error.type, "message": outcome.error.message}
    return {"ok": outcome.ok, "result": outcome.result, "error": why}


def _function(asked: dict[str, Any]) -> Any:  # noqa: ANN401 - a function, or a tool
    from importlib import import_module  # noqa: PLC0415 - not for the guardian

    home = asked["home"]
    if home["script"] or home["run_as"]:
        from playhead.kernel.main_script import run_again  # noqa: PLC0415 - found by the path of the request

        found: Any = run_again(home["script"], home["run_as"])
    else:
        found = import_module(home["module"])
    for name in home["qualname"].split("."):
        found = getattr(found, name)
    return found


# --- both ----------------------------------------------------------------------------------------------------------------


def main(lifeline: int, status: int, answer: int, work: Callable[[bytes, int, int], NoReturn] = work) -> None:
    """Read the request, start the worker, which does the `work`, and guard it."""
    parent = os.getppid()
    for descriptor in (lifeline, status, answer):
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - what the tool starts must not hold them open
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would make children end without a trace
    _control_process(_PR_SET_CHILD_SUBREAPER, 1)
    _tell(status, READY)
    request = _read_all(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    guardian = os.getpid()
    worker = os.fork()
    if worker == 0:
        os.close(lifeline)
        os.close(status)
        work(request, answer, guardian)
    os.close(answer)
    _tell(status, b"%d " % worker)
    code = Guardian(worker, lifeline, parent).watch()
    _tell(status, str(code).encode())
    os._exit(0)


def _tell(status: int, what: bytes) -> None:
    with suppress(OSError):  # nobody is there any more; the lifeline says so, too
        os.write(status, what)


def _read_all(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
