"""This program's side of code in a separate process, which can always be killed.

Threads and coroutines can only be asked to end. A process group can be killed, even if its code holds the interpreter's
lock, ignores SIGTERM, or waits for its own children. Each call starts a fresh interpreter, within its time limit.

A byte to its guardian ends the process. A socket to the worker carries the request, tool calls with their answers, and the
result, as bounded lines of JSON, which may be hostile. After the call, the rest of its process group is killed (on Linux also
processes that left the group), so it cannot leave a daemon behind.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio

from playhead.kernel.isolate import guardian
from playhead.kernel.lifecycle.bodies import run_body

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playhead.kernel.session import ToolContext

    Message = dict[str, Any]

STOP_S: Final = 0.35
"""Seconds after the order to end the process until the caller continues, even if the process has not ended."""


class WorkerProcess:
    """A separate process, from its start until nothing is left of it. All methods but `kill` block, so call them in a thread."""

    def __init__(self, *, sealed: bool = False, longest_line: int = 1 << 40) -> None:
        """Create it; `sealed` means in an empty folder, without environment, this program's path, and its output."""
        self.done: Message | None = None
        """The worker's result; None if its process ended without one."""
        self.why = ""
        """How the process ended, if it gave no result."""
        self.waits = False
        """Whether the worker waits for the answer to a call."""
        self._sealed = sealed
        self._longest_line = longest_line
        self._maker = os.getpid()
        self._held = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self._worker = 0
        """The worker's process id; 0 before the worker has sent it."""
        self._stopped = False

    def ask(self, message: Message) -> Message | None:
        """Send a message, and return the next call to answer; the first message starts the process.

        None when the process and all that it started have ended.
        """
        call, self.waits = None, False
        try:
            if self._process is None:
                self._start()
            if self._worker and not self._stopped:
                call = self._exchange(message)
            self.waits = call is not None and not self._stopped
        except OSError as error:
            if self._process is None:  # otherwise it has ended
                self.why = f"no process could be started: {error}"
        finally:
            if not self.waits:
                self.end()
        return call if self.waits else None

    def kill(self) -> None:
        """Order the end of the process, from any thread. In the child of a fork, do nothing, because the call belongs to its parent."""
        if os.getpid() != self._maker:
            return
        self._stopped = True
        if self._process is None:
            return
        with suppress(OSError, ValueError):  # it has ended
            if self._worker:
                assert self._process.stdin is not None  # noqa: S101 - as it was started
                self._process.stdin.write(b".")
            else:  # the guardian, because its worker has no request yet
                self._process.kill()

    def end(self) -> None:
        """Order the end of the process, and wait until nothing is left of it."""
        self.waits = False
        self.kill()
        with suppress(OSError), self._held:
            pass
        if self._process is None:
            return
        code = self._process.returncode
        if self.done is None:
            self.why = self.why or _ending(code)
        if code < 0 and self._worker:  # the guardian was killed, so the rest is killed from here
            with suppress(OSError):
                os.killpg(self._worker, signal.SIGKILL)

    def _start(self) -> None:
        channel, theirs = map(self._held.enter_context, socket.socketpair())
        options: dict[str, Any] = {}
        flags = [*subprocess._args_from_interpreter_flags(), "-P"]  # type: ignore[attr-defined]  # noqa: SLF001 - as multiprocessing
        if self._sealed:
            flags = ["-I", "-S", "-X", "utf8"]
            folder = tempfile.TemporaryDirectory(prefix="playhead-", ignore_cleanup_errors=True)
            options = {"env": {}, "cwd": self._held.enter_context(folder)}
            options |= dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
        with theirs:
            process = subprocess.Popen(  # noqa: S603 - this very interpreter, and a file of ours
                [sys.executable, *flags, guardian.__file__, str(theirs.fileno())],
                bufsize=0,
                stdin=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                **options,
            )
        self._process = self._held.enter_context(process)
        if self._stopped:
            process.kill()
        self._channel = guardian.Channel(self._held.enter_context(channel.makefile("rwb")))
        with suppress(ValueError):  # it has ended
            self._worker = self._channel.receive()["worker"]

    def _exchange(self, message: Message) -> Message | None:
        """Send a message, and receive the worker's reply: a call, or the result."""
        self._channel.send(message)
        line = self._channel.lines.readline(self._longest_line + 1)
        received = _read(line)
        if received is None and (line.endswith(b"\n") or len(line) > self._longest_line):
            self.why = f"it sent something that is no message of at most {self._longest_line:,} bytes"
        self.done = None if received is None else received.get("done")
        return received if self.done is None else None


def _read(line: bytes) -> Message | None:
    """Return the worker's message if it is a call or a result; None for anything else."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or not line.endswith(b"\n"):
        return None
    is_call = isinstance(message.get("call"), str) and isinstance(message.get("arguments"), dict)
    return message if isinstance(message.get("done"), dict) or (is_call and "done" not in message) else None


def _ending(code: int) -> str:
    """Return how a process ended, in words, from the exit code of its guardian."""
    if code < 0:
        return "its process was killed together with its guardian"
    if code <= guardian.BY_SIGNAL:
        return f"its process ended with exit code {code} before it returned"
    number = code - guardian.BY_SIGNAL
    return f"its process was killed by signal {number} ({signal.strsignal(number)})"


async def run_worker(
    worker: WorkerProcess,
    message: Message,
    context: ToolContext,
    time_s: float,
    answer: Callable[[str, dict[str, Any]], Awaitable[Message]],
) -> bool:
    """Run code in a separate process and return whether it ended within its time; the result is in `worker.done`.

    When this returns or raises, the process and all that it started have ended; if one survives SIGKILL, the call counts
    as abandoned.

    Args:
        worker: the process, not started.
        message: the first message, with the request.
        context: the call whose body this is.
        time_s: the time limit in seconds, without the time in which the worker waits for calls.
        answer: runs a call of the worker's: takes the name of the tool and the arguments.
    """
    in_flight, owner = context.session.run.in_flight, context.owner
    beside = partial(
        run_body,
        on_late=lambda _: context.report_late(worker.done is not None and worker.done.get("ok", True)),
        on_left=context.give_up,
        stop=worker.kill,
        grace_s=STOP_S,
    )
    with in_flight.lock:
        in_flight.open[owner, "process", context.call_id] = worker.kill
    try:
        while True:
            began = time.monotonic()
            ended = await beside(partial(worker.ask, message), timeout_s=time_s)
            if ended is None:
                return False
            if ended.error is not None:
                raise ended.error
            if ended.value is None:
                return True
            time_s -= time.monotonic() - began
            message = await answer(ended.value["call"], ended.value["arguments"])
    except GeneratorExit:  # the caller's coroutine is destroyed, and cannot await
        worker.waits = False
        worker.kill()
        raise
    finally:
        if worker.waits:
            with anyio.CancelScope(shield=True):
                await beside(worker.end, timeout_s=0.0)
        with in_flight.lock:
            in_flight.open.pop((owner, "process", context.call_id), None)
