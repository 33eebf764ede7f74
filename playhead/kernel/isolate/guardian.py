"""The child's side of code in a process of its own: a guardian, and below it the worker that runs the code.

    this program  (writes to the guardian's standard input to end it, speaks with the worker over a socket: process.py)
    └── guardian  (session of its own; ends as the worker ended)
        └── worker    (session of its own; says its id, reads the request, runs the code, answers)
            └── …     (what the code starts)

The guardian waits for a word or the end of its standard input, for the end of the worker, and for that of the program that started
it. In each case nothing that the worker started is left behind: its process group gets SIGTERM, a moment later SIGKILL, and on Linux
also what left the group, because orphans below the guardian become its children.

The file is run by its path, before anything else is imported: where Playhead is found is part of the request.
"""

from __future__ import annotations

import io
import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from importlib import import_module
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

GRACE_S: Final = 0.1
"""Seconds between SIGTERM and SIGKILL."""
GIVE_UP_S: Final = 1.0
"""Seconds after SIGKILL until the guardian stops waiting for a process that the system cannot kill."""
LOOK_S: Final = 0.05
"""Seconds between two looks at whether the worker and the parent live; a fork of that may hold the standard input open."""
PAUSE_S: Final = 0.005
"""Seconds between two looks at what is left, while it is being ended."""
BY_SIGNAL: Final = 128
"""The exit code of a guardian whose worker was killed is this and the signal's number, as of a shell."""
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36


class Channel:
    """One end of the line between the worker and the parent: one JSON object a line, both ways."""

    def __init__(self, lines: Any) -> None:  # noqa: ANN401 - the file of a socket
        self.lines = lines

    def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        self.lines.write(json.dumps(message).encode() + b"\n")
        self.lines.flush()

    def receive(self) -> dict[str, Any]:
        """Wait for a message that can be trusted."""
        message: dict[str, Any] = json.loads(self.lines.readline())
        return message


def guard(worker: int, parent: int) -> int | None:
    """Wait until the worker ends or has to, leave nothing of it behind, and return its exit code, or minus its signal."""
    code: int | None = None
    orders = select.poll()  # select.select knows no descriptors from 1024 on
    orders.register(0, select.POLLIN)

    def wait(seconds: float, over: Callable[[], bool]) -> None:
        """Wait until no child is left, or it is over, or so long."""
        nonlocal code
        until = time.monotonic() + seconds
        with suppress(ChildProcessError):
            while time.monotonic() < until:
                ended, status = os.waitpid(-1, os.WNOHANG)
                if ended == worker:
                    code = os.waitstatus_to_exitcode(status)
                if not ended and over():
                    return

    def send(number: signal.Signals) -> None:
        _send(os.killpg, worker, number)
        if code is None:  # it may not be in its own group yet
            _send(os.kill, worker, number)

    wait(inf, lambda: code is not None or os.getppid() != parent or bool(orders.poll(LOOK_S * 1000)))
    send(signal.SIGTERM)
    wait(GRACE_S, _pause)
    send(signal.SIGKILL)
    wait(GIVE_UP_S, _kill_children)
    return code


def _send(kill: Callable[[int, int], None], target: int, number: signal.Signals) -> None:
    with suppress(OSError):  # it has ended, or the id belongs to another process
        kill(target, number)


def _pause() -> bool:
    time.sleep(PAUSE_S)
    return False


def _kill_children() -> bool:
    """Kill the children of this process, orphans among them, on Linux; it is never over before they have ended."""
    with suppress(OSError):
        for child in Path(f"/proc/self/task/{os.getpid()}/children").read_bytes().split():
            _send(os.kill, int(child), signal.SIGKILL)
    return _pause()


def _control_process(option: int, value: int) -> None:
    """Set one of Linux's process attributes; elsewhere nothing."""
    if sys.platform != "linux":
        return
    with suppress(ImportError, OSError, AttributeError):
        import ctypes  # noqa: PLC0415 - needed nowhere else

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def work(channel: Channel, guardian: int) -> NoReturn:
    """Run the code, answer, and end at once: no thread and no exit function of the code's is waited for."""
    os.setsid()
    _control_process(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guardian:
        os._exit(1)
    end, me = os._exit, os.getpid()  # a program finds neither in `os`
    os.close(0)
    os.open(os.devnull, os.O_RDONLY)  # takes its place
    try:
        channel.send({"worker": me})
        request = channel.receive()
        sys.path[:] = request.get("path") or [str(Path(__file__).parent), *sys.path]
        done = import_module(request["work"]).serve(request, channel)
        if os.getpid() == me:  # else the code forked, and this is the other one
            for stream in (sys.stdout, sys.stderr):
                with suppress(Exception):
                    stream.flush()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the order to end comes as soon as that is sent
            channel.send({"done": done})
    except BaseException:  # noqa: BLE001 - there is no channel left to report it
        end(1)
    end(0)


def main(descriptor: int) -> None:
    """Start the worker and guard it."""
    parent = os.getppid()
    os.set_inheritable(descriptor, False)  # noqa: FBT003 - what the code starts must not hold it open
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would make children end without a trace
    _control_process(_PR_SET_CHILD_SUBREAPER, 1)
    guardian = os.getpid()
    worker = os.fork()
    if worker == 0:
        reader, writer = io.FileIO(descriptor), io.FileIO(descriptor, "w", closefd=False)
        work(Channel(io.BufferedRWPair(reader, writer)), guardian)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # sent to this process alone
        signal.signal(number, signal.SIG_IGN)
    code = guard(worker, parent)
    import socket  # noqa: PLC0415 - which no program is to find loaded

    held = socket.socket(fileno=descriptor)
    with suppress(OSError):  # what could not be killed may hold the channel open
        held.shutdown(socket.SHUT_RDWR)
    code = -signal.SIGKILL if code is None else code
    os._exit(code if code >= 0 else BY_SIGNAL - code)


if __name__ == "__main__":
    main(int(sys.argv[1]))
