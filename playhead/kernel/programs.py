"""A program that a model wrote, run in a process of its own. The tools are its only door, and the host holds it.

What the child says is hostile: lines of JSON, bounded in length; a call goes through the session's own tool port, like any
other; everything that is no such line ends the process.
"""

from __future__ import annotations

import json
import os
import queue
import selectors
import socket
import subprocess
import sys
import tempfile
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from playhead.kernel import isolated
from playhead.kernel.isolation import Descriptor, IsolatedCall, ending, stop_process
from playhead.kernel.threads import loop_scheduler, start_in_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import ExitStack

    from playhead.kernel.tool_context import ToolContext

WORKER: Final = Path(__file__).with_name("program_worker.py")
"""Run by its path, never imported: it needs nothing of what this program has loaded."""
LONGEST_LINE: Final = 8 << 20
"""Bytes of one message; a longer one ends the process."""


class ProgramCall(IsolatedCall):
    """One program in a process of its own, which asks for tools while it runs."""

    def __init__(self, request: bytes, ask: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
        """Make it; `ask` runs a tool for the program, or returns None when the program is over."""
        super().__init__(request)
        self.result: dict[str, Any] | None = None
        """What came of it; None when its process ended before it could say so."""
        self._ask = ask
        self._folder = ""
        self._buffer = bytearray()
        self._over = False

    def run(self) -> None:
        """Run the program in an empty folder, and wait until nothing is left of it; in a thread."""
        with tempfile.TemporaryDirectory(prefix="playhead-", ignore_cleanup_errors=True) as self._folder:
            super().run()

    def channel(self, stack: ExitStack) -> tuple[Descriptor, Descriptor]:
        """Return both ends of a socket: it goes both ways."""
        ours, theirs = (Descriptor(each.detach()) for each in socket.socketpair())
        stack.callback(ours.close)
        stack.callback(theirs.close)
        return ours, theirs

    def command(self) -> tuple[list[str], dict[str, Any]]:
        """Return an interpreter without an environment, without this program's path, and without its output."""
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        command = [sys.executable, "-I", "-S", "-X", "utf8", str(WORKER)]
        return command, {"env": {}, "cwd": self._folder, **quiet}

    def receive(self, status: int, answer: int) -> None:
        """Serve the program until its process has ended."""
        parts: list[bytes] = []
        with selectors.DefaultSelector() as selector:
            for descriptor in (status, answer):
                os.set_blocking(descriptor, False)
                selector.register(descriptor, selectors.EVENT_READ)
            while status in selector.get_map():
                for key, _ in selector.select():
                    part = _part(key.fd)
                    if not part:
                        selector.unregister(key.fd)
                    elif key.fd == status:
                        parts.append(part)
                    else:
                        self._take(part, answer)
        while part := _part(answer):
            self._take(part, None)
        code = self.ended(b"".join(parts))
        if self.result is None and not self.why:
            self.why = ending(code)

    def _take(self, part: bytes, channel: int | None) -> None:
        """Read what the program says; once it is over, nothing any more."""
        if self._over:
            return
        begin = len(self._buffer)
        self._buffer += part
        while not self._over and (end := self._buffer.find(b"\n", begin)) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            begin = 0
            self._say(line, channel)
        if len(self._buffer) > LONGEST_LINE:
            self._finish(f"it sent a message of more than {LONGEST_LINE:,} bytes")

    def _say(self, line: bytes, channel: int | None) -> None:
        message = _read(line)
        if message is None:
            self._finish("it sent something that is no message")
        elif isinstance(done := message.get("done"), dict):
            self.result = done
            self._finish("")
        elif channel is not None:  # its process runs
            answer = self._ask(message)
            if answer is None:
                self._finish("it was stopped")
            else:
                _send(channel, answer)

    def _finish(self, why: str) -> None:
        self._over, self.why = True, why
        self._buffer.clear()
        self.order(isolated.KILL)


def _read(line: bytes) -> dict[str, Any] | None:
    """Return a message of the program's: a call, or its end; None for anything else."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    is_call = isinstance(message.get("call"), str) and isinstance(message.get("arguments"), dict)
    return message if is_call or isinstance(message.get("done"), dict) else None


def _part(descriptor: int) -> bytes:
    """Return what there is to read; empty at the end, and when there is nothing."""
    try:
        return os.read(descriptor, 1 << 18)
    except (BlockingIOError, ConnectionError):
        return b""


def _send(channel: int, answer: dict[str, Any]) -> None:
    """Send an answer, for as long as its process lives: it may never read it."""
    left = memoryview(json.dumps(answer).encode() + b"\n")
    os.set_blocking(channel, True)
    with suppress(OSError):
        while left:
            left = left[os.write(channel, left) :]
    os.set_blocking(channel, False)


class _Inbox:
    """Messages from the thread that holds the process, for the event loop."""

    def __init__(self) -> None:
        self._in_loop = loop_scheduler()
        self._messages: deque[dict[str, Any] | None] = deque()
        self._arrived = anyio.Event()

    def put(self, message: dict[str, Any] | None) -> None:
        """Leave a message; from any thread."""

        def put() -> None:
            self._messages.append(message)
            self._arrived.set()

        with suppress(RuntimeError):  # the loop has ended
            self._in_loop(put)

    async def get(self) -> dict[str, Any] | None:
        """Wait for the next message; None when the process has ended."""
        while not self._messages:
            await self._arrived.wait()
            self._arrived = anyio.Event()
        return self._messages.popleft()


async def run_program(
    request: dict[str, Any],
    answer: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]],
    context: ToolContext,
    time_s: float,
) -> dict[str, Any]:
    """Run a program and return what it says came of it, or `{"error": …}` when it did not get to its end.

    Its process, and all that it started, is gone when this returns or raises.

    Args:
        request: what the worker is told.
        answer: runs a tool: takes its name and the arguments.
        context: the call that this is the body of.
        time_s: seconds that the program itself may take; those in which a tool runs do not count.
    """
    inbox, answers = _Inbox(), queue.SimpleQueue[dict[str, Any] | None]()

    def ask(message: dict[str, Any]) -> dict[str, Any] | None:
        inbox.put(message)
        return answers.get()

    call = ProgramCall(json.dumps(request).encode(), ask)
    key, calls = f"{context.owner}/{context.call_id}", context.session.run.isolated

    def kill() -> None:
        call.kill()
        answers.put(None)

    def run() -> None:
        try:
            call.run()
        finally:
            calls.pop(key, None)
            inbox.put(None)

    calls[key] = kill
    running = start_in_thread(run, lambda _: context.report_late(ok=call.result is not None))
    try:
        in_time = await _serve(inbox, answers, answer, time_s)
        if not in_time:
            await _end(call, running, kill)
    except GeneratorExit:  # of a caller that is thrown away: it cannot await any more
        kill()
        raise
    except BaseException:
        await _end(call, running, kill)
        raise
    finally:
        if running.abandoned:
            kill()
            context.session.abandoned.add(context.call_id)
    if running.error is not None:
        raise running.error
    if not in_time:
        return {"error": f"it ran for more than {time_s:g} s and was ended"}
    return call.result if call.result is not None else {"error": f"it did not get to its end: {call.why}"}


async def _serve(
    inbox: _Inbox,
    answers: queue.SimpleQueue[dict[str, Any] | None],
    answer: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]],
    time_s: float,
) -> bool:
    """Run tools for the program until it ends; False when its time is used up first."""
    while True:
        began = anyio.current_time()
        with anyio.move_on_after(time_s) as scope:
            message = await inbox.get()
        if scope.cancelled_caught:
            return False
        if message is None:
            return True
        time_s -= anyio.current_time() - began
        answers.put(await answer(message["call"], message["arguments"]))


async def _end(call: ProgramCall, running: Any, kill: Callable[[], None]) -> None:  # noqa: ANN401 - a call in a thread
    kill()
    await stop_process(call, running)
