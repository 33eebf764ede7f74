"""Code in a process of its own, which can be killed whatever it does: this program's side.

Threads and coroutines can only be asked to end. A process group can be killed: code that holds the interpreter's lock,
ignores SIGTERM, or waits for children of its own. A call costs a fresh interpreter, within its time limit.

Two sockets lead to it: one to its guardian, for orders and for how it ended; one to the worker, for a request, for calls of
tools with their answers, and for what came of it: bounded lines of JSON, which may be hostile, and nothing else. When the
call has ended, all that is left of its process group is killed (on Linux also what left the group): it cannot leave a daemon
behind.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack, suppress
from math import inf
from typing import TYPE_CHECKING, Any, Final

import anyio

from playhead.kernel.isolate import guardian
from playhead.kernel.lifecycle.threads import loop_scheduler, start_in_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playhead.kernel.lifecycle.threads import ThreadCall
    from playhead.kernel.session import ToolContext

    Message = dict[str, Any]

STOP_S: Final = 0.35
"""Seconds from being stopped until the caller goes on, whether the process has ended or not."""


class WorkerProcess:
    """One process of its own, from its start until nothing is left of it."""

    def __init__(self, request: Message, *, sealed: bool = False, longest_line: int = 1 << 40) -> None:
        """Make it; `sealed`: without an environment, this program's path and its output, in an empty folder."""
        self.done: Message | None = None
        """What the worker says came of the request; None when its process ended before it could say so."""
        self.why = ""
        """How the process ended, when it did not say what came of it."""
        self.answers: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        """What the worker's calls returned; None when it is over."""
        self._request = request
        self._sealed = sealed
        self._longest_line = longest_line
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._stopped = False
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        """For orders; None before the guardian has a worker."""

    def run(self, on_call: Callable[[Message], object]) -> None:
        """Start the process, and wait until nothing is left of it; in a thread. Each call that it makes has to be answered."""
        try:
            with ExitStack() as stack:
                self._run(stack, on_call)
        except OSError as error:
            self.why = f"no process could be started: {error}"

    def kill(self, order: bytes = guardian.KILL) -> None:
        """End the process, at once or by another order; from any thread. In the child of a fork, do nothing."""
        if os.getpid() != self._pid:  # a forked child has the socket, too; the call is its parent's
            return
        self.answers.put(None)
        with self._lock:
            self._stopped = True
            if self._control is not None:
                with suppress(OSError):
                    self._control.send(order)
            elif self._process is not None:  # its guardian, whose worker has no request yet
                self._process.kill()

    def _run(self, stack: ExitStack, on_call: Callable[[Message], object]) -> None:
        control, their_control = map(stack.enter_context, socket.socketpair())
        channel, their_channel = map(stack.enter_context, socket.socketpair())
        process = stack.enter_context(self._start(stack, their_control, their_channel))
        their_control.close()
        their_channel.close()
        stack.callback(self.kill)
        with self._lock:
            self._process = process
            if self._stopped:
                process.kill()
        worker = control.recv(32)
        with self._lock:
            if self._stopped or not worker:
                self.why = "it was stopped" if self._stopped else "its process could not start"
                return
            self._control = control
        self._talk(channel, on_call)
        self.kill()  # should it still be there
        status = bytearray(worker)
        with suppress(ConnectionError):  # the guardian has ended without reading that
            while part := control.recv(64):
                status += part
        pid, _, code = status.decode().partition(" ")
        if not code:  # somebody killed the guardian: what is left has to be killed from here
            with suppress(OSError):
                os.killpg(int(pid), signal.SIGKILL)
        if self.done is None:
            self.why = self.why or _ending(code)

    def _start(self, stack: ExitStack, *sockets: socket.socket) -> subprocess.Popen[bytes]:
        options: dict[str, Any] = {}
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001 - as multiprocessing
        flags = [*flags, "-P"]
        if self._sealed:
            flags = ["-I", "-S", "-X", "utf8"]
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="playhead-", ignore_cleanup_errors=True))
            options = {"env": {}, "cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        numbers = [each.fileno() for each in sockets]
        return subprocess.Popen(  # noqa: S603 - this very interpreter, and a file of ours
            [sys.executable, *flags, guardian.__file__, *map(str, numbers)],
            stdin=subprocess.DEVNULL,
            pass_fds=numbers,
            start_new_session=True,
            **options,
        )

    def _talk(self, channel: socket.socket, on_call: Callable[[Message], object]) -> None:
        """Send the request, and hear the worker until it says what came of it, ends, or has to be ended."""
        with suppress(OSError), channel.makefile("rwb") as lines:
            talk = guardian.Channel(lines)
            talk.send(self._request)
            while (line := lines.readline(self._longest_line + 1)).endswith(b"\n"):
                message = _read(line)
                if message is None:
                    self.why = "it sent something that is no message"
                    return
                if "done" in message:
                    self.done = message["done"]
                    return
                on_call(message)
                answer = self.answers.get()
                if answer is None:
                    self.why = "it was stopped"
                    return
                talk.send(answer)
            if len(line) > self._longest_line:
                self.why = f"it sent a message of more than {self._longest_line:,} bytes"


def _read(line: bytes) -> Message | None:
    """Return a message of the worker's: a call, or what came of the request; None for anything else."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    is_call = isinstance(message.get("call"), str) and isinstance(message.get("arguments"), dict)
    return message if isinstance(message.get("done"), dict) or (is_call and "done" not in message) else None


def _ending(code: str) -> str:
    """Return how a process ended, in words, from its exit code as its guardian tells it."""
    if not code or code == "None":
        return "its process was killed together with its guardian"
    number = -int(code)
    if number <= 0:
        return f"its process ended with exit code {code} before it returned"
    return f"its process was killed by signal {number} ({_NAMES.get(number, 'a real-time signal')})"


_NAMES: Final = {each.value: each.name for each in signal.Signals}


async def run_worker(
    worker: WorkerProcess,
    context: ToolContext,
    time_s: float,
    answer: Callable[[str, dict[str, Any]], Awaitable[Message]],
) -> bool:
    """Run code in a process of its own and return whether it ended within its time; what came of it is in `worker.done`.

    When this returns or raises, the process has ended, and all that it started; should it withstand SIGKILL, the call counts
    as abandoned.

    Args:
        worker: the process, not started.
        context: the call that this is the body of.
        time_s: seconds that it may take; those in which it waits for a call do not count.
        answer: runs a call of the worker's: takes the name of the tool and the arguments.
    """
    in_loop = loop_scheduler()
    said, heard = anyio.create_memory_object_stream["Message | None"](inf)
    key, calls = f"{context.owner}/{context.call_id}", context.session.run.isolated

    def hear(message: Message | None) -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # nobody waits any more
            said.send_nowait(message)

    def tell(message: Message | None) -> None:
        with suppress(RuntimeError):  # the loop has ended
            in_loop(lambda: hear(message))

    def run() -> None:
        try:
            worker.run(tell)
        finally:
            calls.pop(key, None)
            tell(None)

    calls[key] = worker.kill
    running = start_in_thread(
        run, lambda _: context.report_late(worker.done is not None and worker.done.get("ok", True))
    )
    with said, heard:
        try:
            in_time = await _serve(worker, heard, time_s, answer)
            await (running.wait() if in_time else _stop(worker, running))
        except GeneratorExit:  # of a caller that is thrown away: it cannot await any more
            worker.kill()
            raise
        except BaseException:
            await _stop(worker, running)
            raise
        finally:
            if running.abandoned:
                worker.kill()
                context.session.toolset.abandoned.add(context.call_id)
    if running.error is not None:
        raise running.error
    return in_time


async def _serve(worker: WorkerProcess, heard: Any, time_s: float, answer: Any) -> bool:  # noqa: ANN401 - a stream, a function
    """Answer the worker's calls until it ends; False when its time is used up first."""
    while True:
        began = anyio.current_time()
        with anyio.move_on_after(time_s) as scope:
            message = await heard.receive()
        if scope.cancelled_caught:
            return False
        if message is None:
            return True
        time_s -= anyio.current_time() - began
        worker.answers.put(await answer(message["call"], message["arguments"]))


async def _stop(worker: WorkerProcess, running: ThreadCall) -> None:
    """End the process of a call, and wait a moment for its end."""
    worker.kill(guardian.TERMINATE)
    with anyio.CancelScope(shield=True), anyio.move_on_after(STOP_S):
        await running.wait()
