"""The child's side of a separate process: a guardian, and below it the worker that runs the code.

    this program  (writes to the guardian's standard input to end it, speaks with the worker over a socket: process.py)
    └── guardian  (session of its own; ends as the worker ended)
        └── worker    (session of its own; says its id, reads the request, runs the code, answers)
            └── …     (what the code starts)

The guardian waits for a byte on its standard input or its end, for the end of the worker, and for the end of the program that
started it. In each case it leaves no process of the worker behind: the process group gets SIGTERM, a moment later SIGKILL. On Linux
this includes processes that left the group, because orphans below the guardian become its children.

The file is run by its path, before anything else is imported, because the path of Playhead is part of the request.
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
"""Seconds that the guardian waits after SIGKILL for a process that the system cannot kill."""
LOOK_S: Final = 0.05
"""Seconds between two checks of whether worker and parent are alive; a fork of the parent may hold standard input open."""
PAUSE_S: Final = 0.005
"""Seconds between two checks for remaining processes while they are being ended."""
BY_SIGNAL: Final = 128
"""Added to the signal's number in the exit code of a guardian whose worker was killed, as in a shell."""
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36


class Channel:
    """One end of the channel between worker and parent: one JSON object per line, in both directions."""

    def __init__(self, lines: Any) -> None:  # noqa: ANN401 - the file of a socket
        self.lines = lines

    def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        self.lines.write(json.dumps(message).encode() + b"\n")
        self.lines.flush()

    def receive(self) -> dict[str, Any]:
        """Wait for a message; the sender is trusted."""
        message: dict[str, Any] = json.loads(self.lines.readline())
        return message


def guard(worker: int, parent: int) -> int | None:
    """Wait until the worker must end, end all of its processes, and return its exit code, or minus its signal."""
    code: int | None = None
    orders = select.poll()  # select.select knows no descriptors from 1024 on
    orders.register(0, select.POLLIN)

    def wait(seconds: float, over: Callable[[], bool]) -> None:
        """Wait until no child is left, `over` is true, or this time has passed."""
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
    """On Linux, kill the children of this process, including orphans; always False, so that the wait continues."""
    with suppress(OSError):
        for child in Path(f"/proc/self/task/{os.getpid()}/children").read_bytes().split():
            _send(os.kill, int(child), signal.SIGKILL)
    return _pause()


def _control_process(option: int, value: int) -> None:
    """Set a process attribute on Linux; elsewhere do nothing."""
    if sys.platform != "linux":
        return
    with suppress(ImportError, OSError, AttributeError):
        import ctypes  # noqa: PLC0415 - needed nowhere else

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def work(channel: Channel, guardian: int) -> NoReturn:
    """Run the code, answer, and end at once, without waiting for the code's threads and exit functions."""
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
        if os.getpid() == me:  # otherwise the code forked, and this is the child
            for stream in (sys.stdout, sys.stderr):
                with suppress(Exception):
                    stream.flush()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the order to end follows the answer
            channel.send({"done": done})
    except BaseException:  # noqa: BLE001 - there is no channel left to report it
        end(1)
    end(0)


def main(descriptor: int) -> None:
    """Start the worker and guard it."""
    parent = os.getppid()
    os.set_inheritable(descriptor, False)  # noqa: FBT003 - processes that the code starts must not hold it open
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if ignored, the exit codes of children would be lost
    _control_process(_PR_SET_CHILD_SUBREAPER, 1)
    guardian = os.getpid()
    worker = os.fork()
    if worker == 0:
        reader, writer = io.FileIO(descriptor), io.FileIO(descriptor, "w", closefd=False)
        work(Channel(io.BufferedRWPair(reader, writer)), guardian)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # sent to this process alone
        signal.signal(number, signal.SIG_IGN)
    code = guard(worker, parent)
    import socket  # noqa: PLC0415 - programs must not find it loaded

    held = socket.socket(fileno=descriptor)
    with suppress(OSError):  # a process that could not be killed may hold the channel open
        held.shutdown(socket.SHUT_RDWR)
    code = -signal.SIGKILL if code is None else code
    os._exit(code if code >= 0 else BY_SIGNAL - code)


if __name__ == "__main__":
    main(int(sys.argv[1]))
