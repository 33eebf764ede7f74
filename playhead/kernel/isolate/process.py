"""Code in a process of its own, which can always be killed: this program's side.

Threads and coroutines can only be asked to end. A process group can be killed: code that holds the interpreter's lock,
ignores SIGTERM, or waits for children of its own. A call costs a fresh interpreter, within its time limit.

A word to its guardian ends it. A socket leads to the worker, for a request, for calls of tools with their answers, and for what
came of it: bounded lines of JSON, which may be hostile, and nothing else. When the call has ended, all that is left of its
process group is killed (on Linux also what left the group): it cannot leave a daemon behind.
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
"""Seconds after which the caller continues once the process was stopped, even if it has not ended."""


class WorkerProcess:
    """One process of its own, from its start until nothing is left of it. All but `kill` blocks, and belongs into a thread."""

    def __init__(self, *, sealed: bool = False, longest_line: int = 1 << 40) -> None:
        """Make it; `sealed`: without an environment, this program's path and its output, in an empty folder."""
        self.done: Message | None = None
        """What the worker says came of the request; None when its process ended before it could say so."""
        self.why = ""
        """How the process ended, when it did not say what came of it."""
        self.waits = False
        """Whether it waits for the answer to a call."""
        self._sealed = sealed
        self._longest_line = longest_line
        self._maker = os.getpid()
        self._held = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self._worker = 0
        """The worker's id; 0 before it has said it."""
        self._stopped = False

    def ask(self, message: Message) -> Message | None:
        """Send a message, the first of which starts the process, and return the next call that has to be answered.

        None when nothing is left of the process.
        """
        call, self.waits = None, False
        try:
            if self._process is None:
                self._start()
            if self._worker and not self._stopped:
                call = self._exchange(message)
            self.waits = call is not None and not self._stopped
        except OSError as error:
            if self._process is None:  # else it has ended
                self.why = f"no process could be started: {error}"
        finally:
            if not self.waits:
                self.end()
        return call if self.waits else None

    def kill(self) -> None:
        """Order the end of the process; from any thread. In the child of a fork, do nothing: the call is its parent's."""
        if os.getpid() != self._maker:
            return
        self._stopped = True
        if self._process is None:
            return
        with suppress(OSError, ValueError):  # it has ended
            if self._worker:
                assert self._process.stdin is not None  # noqa: S101 - as it was started
                self._process.stdin.write(b".")
            else:  # its guardian, whose worker has no request yet
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
        if code < 0 and self._worker:  # the guardian was killed: what is left has to be killed from here
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
        """Send a message, and hear what the worker says to it: a call, or what came of the request."""
        self._channel.send(message)
        line = self._channel.lines.readline(self._longest_line + 1)
        said = _read(line)
        if said is None and (line.endswith(b"\n") or len(line) > self._longest_line):
            self.why = f"it sent something that is no message of at most {self._longest_line:,} bytes"
        self.done = None if said is None else said.get("done")
        return said if self.done is None else None


def _read(line: bytes) -> Message | None:
    """Return a message of the worker's: a call, or what came of the request; None for anything else."""
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
    """Run code in a process of its own and return whether it ended within its time; what came of it is in `worker.done`.

    When this returns or raises, the process has ended, and all that it started; should it withstand SIGKILL, the call counts
    as abandoned.

    Args:
        worker: the process, not started.
        message: the first one, which says what it is to do.
        context: the call that this is the body of.
        time_s: seconds that it may take; those in which it waits for a call do not count.
        answer: runs a call of the worker's: takes the name of the tool and the arguments.
    """
    in_flight, owner = context.session.run.in_flight, context.owner
    beside = partial(
        run_body,
        is_async=False,
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
    except GeneratorExit:  # of a caller that is thrown away: it cannot await any more
        worker.waits = False
        worker.kill()
        raise
    finally:
        if worker.waits:
            with anyio.CancelScope(shield=True):
                await beside(worker.end, timeout_s=0.0)
        with in_flight.lock:
            in_flight.open.pop((owner, "process", context.call_id), None)
