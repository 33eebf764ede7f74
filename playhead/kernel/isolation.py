"""`@tool(isolate=True)`: a call in a process of its own, which can be killed whatever its code does.

Threads and coroutines can only be asked to end. A process group can be killed: code that holds the interpreter's lock,
ignores SIGTERM, or waits for children of its own. The price is about 0.2 s for each call, within its time limit: a fresh
interpreter starts and imports the module of the function.

What crosses is JSON: the arguments as they are recorded, and the result as it is recorded. The function is found by its
module and name, so the module is imported again, a script as `__mp_main__`, and what it prints then is printed again.
The process has this one's environment variables, working directory, `sys.path`, standard output and error; its standard
input is empty; context variables and what the program keeps in memory do not reach it. When the call has ended, all that
is left of its process group is killed: an isolated tool cannot leave a daemon behind (on Linux not even outside its group).
"""

from __future__ import annotations

import inspect
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from playhead.errors import ToolDefinitionError
from playhead.kernel import isolated
from playhead.kernel.main_script import MAIN, require_guard
from playhead.kernel.threads import asyncio_loop, start_in_thread
from playhead.kernel.tools import Outcome
from playhead.trace.events import ErrorInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.threads import ThreadCall
    from playhead.kernel.tool_context import ToolContext
    from playhead.trace.values import JsonValue

STOP_S: Final = 0.35
"""Seconds from being stopped until the caller goes on, whether the process has ended or not."""
_MAINS: Final = ("__main__", MAIN)


@dataclass(frozen=True, slots=True)
class Home:
    """Where another process finds a function."""

    module: str
    qualname: str
    script: str | None = None
    """The file that is the main module, when the function is in it."""
    run_as: str | None = None
    """The name of the main module, when it was started with `python -m`."""

    @staticmethod
    def of(function: Callable[..., Any]) -> Home:
        """Return where the function is.

        Raises:
            ToolDefinitionError: another process would not find it.
        """
        if os.name != "posix":
            raise ToolDefinitionError("isolate=True needs POSIX: process groups and signals; Windows has neither")
        if getattr(sys, "frozen", False):
            raise ToolDefinitionError("isolate=True needs a Python interpreter; a frozen program has none to start")
        if not inspect.isfunction(function):
            raise _unreachable(function, "is no plain function, so its name leads nowhere", "wrap it in a function")
        if "<" in function.__qualname__:  # <lambda>, <locals>
            raise _unreachable(function, "is made inside of another function, or nameless", "define it with `def`")
        if function.__module__ not in _MAINS:
            return Home(function.__module__, function.__qualname__)
        return _home_in_main(function)

    def holds(self, *things: object) -> bool:
        """Return whether the name leads to one of these things."""
        found: Any = sys.modules.get(self.module)
        for name in self.qualname.split("."):
            found = getattr(found, name, None)
        return any(found is thing for thing in things)


def _home_in_main(function: Any) -> Home:  # noqa: ANN401 - a function
    main = sys.modules[function.__module__]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name != "__main__":
        return Home(function.__module__, function.__qualname__, run_as=spec.name)
    script = getattr(main, "__file__", None)
    if script is None or not Path(function.__code__.co_filename).is_file():
        raise _unreachable(function, "was typed in, so there is no file to load it from", "put it into a file")
    return Home(function.__module__, function.__qualname__, script=str(Path(script).absolute()))


def _unreachable(function: Any, why: str, fix: str) -> ToolDefinitionError:  # noqa: ANN401 - what should be a function
    name = getattr(function, "__qualname__", repr(function))
    return ToolDefinitionError(
        f"{name}: isolate=True runs it in a process of its own, which finds it by its module and name; "
        f"it {why}: {fix}, at the top of a module"
    )


class IsolatedCall:
    """One call in a process of its own."""

    def __init__(self, request: bytes) -> None:
        self.answer: dict[str, Any] | None = None
        """What the function returned or raised; None when its process ended before it could say so."""
        self.why = ""
        """How the process ended, when there is no answer."""
        self.killed = False
        """Whether `kill` was called."""
        self._request = request
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._stopped = False
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline: int | None = None
        """Open for orders; None before the guardian has been asked to start the worker, and after the end."""

    def run(self) -> None:
        """Start the process, and wait until nothing is left of it; in a thread."""
        try:
            with ExitStack() as stack:
                self._run(stack)
        except OSError as error:
            self.why = f"no process could be started: {error}"

    def stop(self) -> None:
        """End the process: SIGTERM, and a moment later SIGKILL; from any thread. In the child of a fork, do nothing."""
        self.order(isolated.TERMINATE)

    def kill(self) -> None:
        """End the process at once; from any thread. In the child of a fork, do nothing."""
        self.killed = True
        self.order(isolated.KILL)

    @property
    def returned(self) -> bool:
        """Whether the function returned and its result is here."""
        return self.answer is not None and bool(self.answer["ok"])

    def outcome(self) -> Outcome:
        """Return how the call ended, when its process has."""
        if self.answer is not None:
            error = self.answer["error"]
            return Outcome(
                ok=self.answer["ok"],
                result=self.answer.get("result"),
                error=None if error is None else ErrorInfo(**error),
            )
        if self.killed:
            error = ErrorInfo(type="Cancelled", message="the run ended before the call returned")
            return Outcome(ok=False, error=error, ended="cancelled")
        return Outcome.failure("ProcessDied", self.why)

    def order(self, order: bytes) -> None:
        """Send the guardian an order; from any thread."""
        if os.getpid() != self._pid:  # a forked child has the lifeline, too; the call is its parent's
            return
        with self._lock:
            self._stopped = True
            if self._lifeline is not None:
                with suppress(OSError):
                    os.write(self._lifeline, order)
            elif self._process is not None:  # its guardian, which has no child yet
                self._process.kill()

    def _run(self, stack: ExitStack) -> None:
        (their_lifeline, lifeline), (status, their_status) = _pipe(stack), _pipe(stack)
        answer, their_answer = self.channel(stack)
        theirs = (their_lifeline, their_status, their_answer)
        process = stack.enter_context(self._start(theirs))
        for descriptor in theirs:
            descriptor.close()
        stack.callback(self._end, lifeline)
        with self._lock:
            self._process = process
            if self._stopped:
                process.kill()
        ready = os.read(status.number, 1)
        with self._lock:
            if self._stopped or not ready:
                self.why = "its process could not start" if not self._stopped else "it was stopped"
                return
            self._lifeline = lifeline.number
        assert process.stdin is not None  # noqa: S101 - a pipe
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(self._request)
        self.receive(status.number, answer.number)

    def channel(self, stack: ExitStack) -> tuple[Descriptor, Descriptor]:
        """Return both ends of what the worker answers through, ours first."""
        return _pipe(stack)

    def command(self) -> tuple[list[str], dict[str, Any]]:
        """Return the program that guards the worker, without its descriptors, and how it is started."""
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001 - as multiprocessing
        return [sys.executable, *flags, "-P", isolated.__file__], {}

    def receive(self, status: int, answer: int) -> None:
        """Take the answer, and wait for the end of the process."""
        self._read(*_received(status, answer))

    def _start(self, descriptors: tuple[Descriptor, ...]) -> subprocess.Popen[bytes]:
        numbers = [descriptor.number for descriptor in descriptors]
        command, options = self.command()
        return subprocess.Popen(  # noqa: S603 - this very interpreter, and a file of ours
            [*command, *map(str, numbers)],
            stdin=subprocess.PIPE,
            pass_fds=numbers,
            start_new_session=True,
            **options,
        )

    def _end(self, lifeline: Descriptor) -> None:
        """Let the guardian go; what it guards is killed, should it still be there."""
        with self._lock:
            self._lifeline = self._process = None
        lifeline.close()

    def _read(self, status: bytes, answer: bytes) -> None:
        code = self.ended(status)
        try:
            self.answer = json.loads(answer)
        except ValueError:  # it did not come, or not to its end
            self.why = ending(code)

    def ended(self, status: bytes) -> str:
        """Return the exit code of the worker, as the guardian tells it, and see to it that nothing is left of it."""
        worker, _, code = status.decode().partition(" ")
        if not code and worker:  # somebody killed the guardian: what is left has to be killed from here
            with suppress(OSError):
                os.killpg(int(worker), signal.SIGKILL)
        self._request = b""
        return code


class Descriptor:
    """One end of a pipe, closed exactly once: its number may by then be another file's."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._open = True

    def close(self) -> None:
        """Close it, if it is open."""
        if self._open:
            self._open = False
            os.close(self.number)


def _pipe(stack: ExitStack) -> tuple[Descriptor, Descriptor]:
    reader, writer = map(Descriptor, os.pipe())
    stack.callback(reader.close)
    stack.callback(writer.close)
    return reader, writer


def _received(status: int, answer: int) -> tuple[bytes, bytes]:
    """Read both pipes until the guardian has closed its own: then all that the worker wrote is in the other."""
    parts: dict[int, list[bytes]] = {status: [], answer: []}
    with selectors.DefaultSelector() as selector:
        for descriptor in parts:
            os.set_blocking(descriptor, False)
            selector.register(descriptor, selectors.EVENT_READ)
        while status in selector.get_map():
            for key, _ in selector.select():
                part = os.read(key.fd, 1 << 20)
                parts[key.fd].append(part)
                if not part:
                    selector.unregister(key.fd)
    with suppress(BlockingIOError):
        while part := os.read(answer, 1 << 20):
            parts[answer].append(part)
    return b"".join(parts[status]), b"".join(parts[answer])


def ending(code: str) -> str:
    """Return how a process ended, in words, from its exit code as its guardian tells it."""
    if not code or code == "None":
        return "its process was killed together with its guardian"
    number = -int(code)
    if number <= 0:
        return f"its process ended with exit code {code} before the function returned"
    try:
        return f"its process was killed by signal {number} ({signal.Signals(number).name})"
    except ValueError:  # a real-time signal has no name
        return f"its process was killed by signal {number}"


async def run_isolated(
    home: Home, arguments: dict[str, JsonValue], context: ToolContext, timeout_s: float | None
) -> Outcome | None:
    """Run a function in a process of its own, and return its outcome when the process has ended; None at the limit.

    When the limit is reached or the caller is cancelled, the process is ended before this returns or raises; should it
    withstand SIGKILL, the call counts as abandoned.
    """
    require_guard()
    call = IsolatedCall(_request(home, arguments))
    key, calls = f"{context.owner}/{context.call_id}", context.session.run.isolated

    def run() -> None:
        try:
            call.run()
        finally:
            calls.pop(key, None)

    calls[key] = call.kill
    running = start_in_thread(run, lambda _: context.report_late(call.returned))
    try:
        if not await _ended(call, running, timeout_s):
            return None
    finally:
        if running.abandoned:
            call.kill()
            context.session.abandoned.add(context.call_id)
    if running.error is not None:
        raise running.error
    return call.outcome()


async def _ended(call: IsolatedCall, running: ThreadCall, timeout_s: float | None) -> bool:
    """Return whether the call ended within the time; else, and when cancelled, end it first."""
    try:
        with anyio.move_on_after(timeout_s):
            await running.ended()
            return True
        await stop_process(call, running)
    except GeneratorExit:  # of a caller that is thrown away: it cannot await any more
        call.kill()
        raise
    except BaseException:
        await stop_process(call, running)
        raise
    return False


async def stop_process(call: IsolatedCall, running: ThreadCall) -> None:
    """End the process of a call, and wait a moment for its end."""
    call.stop()
    with anyio.CancelScope(shield=True), anyio.move_on_after(STOP_S):
        await running.wait()


def _request(home: Home, arguments: dict[str, JsonValue]) -> bytes:
    request = {
        "home": asdict(home),
        "arguments": arguments,
        "argv": getattr(sys, "argv", [""]),
        "path": [os.fspath(entry) for entry in sys.path if isinstance(entry, (str, os.PathLike))],
        "backend": "trio" if asyncio_loop() is None else "asyncio",
    }
    return json.dumps(request).encode()
