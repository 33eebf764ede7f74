"""Where a recorded program is now: the scope and the strand of this thread or task.

A *scope* is the program's side of one session: the run's, a nested recorded function's, or that of a tool's body. A *strand* is
a thread or task in it. One strand does the same things in the same order in each run; the order in which strands take turns
varies. So replays serve, and compare, strand by strand.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from playhead.instrument.seam import EXITS, Halted, wires
from playhead.instrument.sent import SentMessages
from playhead.instrument.worlds import CANCELLED
from playhead.kernel.lifecycle.signals import require_own_process
from playhead.kernel.tools import direct_calls, elsewhere
from playhead.trace.events import FactRecorded

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from playhead.instrument.sent import Sent
    from playhead.instrument.worlds import ProgramWorld
    from playhead.kernel.session import Session
    from playhead.kernel.tools import FunctionTool
    from playhead.trace.types import ToolCall


@dataclass(eq=False, slots=True)
class Strand:
    """One thread or task in a scope."""

    scope: Scope
    number: int
    """In order of first use, from 0."""
    place: tuple[int, object]
    """The thread and the task."""
    sent: Sent | None = None
    """Its last request."""
    said: object = None
    """What its event says besides numbers, if that holds no secret: an equal event is not searched again."""


_strand: Final[ContextVar[Strand | None]] = ContextVar("playhead-strand", default=None)


class Scope:
    """The program's side of a session: its strands, its requests, and the model's calls that it has not made yet."""

    def __init__(self, session: Session, world: ProgramWorld) -> None:
        self.session = session
        self.world = world
        self.lock = threading.RLock()
        self.sent = SentMessages(session)
        """The messages that requests send."""
        self.requests = 0
        """The requests so far."""
        self.retries: dict[tuple[int, str], int] = {}
        """The number of the latest request of a strand with these bytes."""
        self.pending: list[tuple[int, int, ToolCall]] = []
        """The model's calls that the program has not made yet: the strand that has the answer, the request, the call."""
        self.call_ids: set[str] = set()
        """The ids of the calls so far."""
        self._tasks: WeakSet[asyncio.Future[Any]] = WeakSet()
        self.over = False
        """Whether the function has returned."""
        self._strands = 0

    def strand(self) -> Strand:
        """Return the strand of this thread or task; the first time, a new one."""
        found, place = _strand.get(), _place()
        if found is None or found.scope is not self or found.place != place:
            with self.lock:
                found = Strand(self, self._strands, place)
                self._strands += 1
            _strand.set(found)
            if found.number and isinstance(place[1], asyncio.Future):
                self._tasks.add(place[1])
                place[1].add_done_callback(partial(self._note_end, found.number))
        return found

    def _note_end(self, strand: int, task: asyncio.Future[Any]) -> None:
        """Record that a task was cancelled: nothing else shows where it ended."""
        if task.cancelled() and not self.session.ended:
            self.session.emit(FactRecorded(name=CANCELLED, value=strand))

    def exit(self) -> BaseException | None:
        """Return what a task raised that ends its event loop, and with it the function."""
        raised = (each.exception() for each in self._tasks if each.done() and not each.cancelled())
        return next((each for each in raised if isinstance(each, EXITS)), None)

    def stay(self, strand: Strand) -> None:
        """Continue a strand in this thread or task: a generator is one strand, wherever its steps run."""
        strand.place = _place()
        _strand.set(strand)

    def is_over(self, what: str) -> bool:
        """Return whether the function has returned; if it has, warn that `what`, a thread's act, is not recorded."""
        for notice in (self.world.notice, *elsewhere) if self.over else ():
            notice(what)
        return self.over

    def require_running(self) -> None:
        """Unwind the program if its run has ended.

        Raises:
            Halted: the run has ended.
        UsageError: this is a process that the program has forked; if Halted ended a worker, `multiprocessing` would wait for ever.
        """
        if self.session.ended:
            require_own_process()
            raise Halted(f"{self.session.owner} of run {self.session.run.run_id} has ended")


@contextmanager
def entered(
    scope: Scope | None,
    port: object,
    direct: Callable[[FunctionTool, tuple[Any, ...], dict[str, Any]], Any],
) -> Iterator[None]:
    """Make a scope the current one inside this block, and in the threads and tasks that inherit its context.

    None leaves the program: the bodies of an agent's tools are not the program's own code.
    """
    was = wires.set(port), direct_calls.set(direct), _scope.set(scope), _strand.set(None)
    try:
        yield
    finally:
        wires.reset(was[0])
        direct_calls.reset(was[1])
        _scope.reset(was[2])
        _strand.reset(was[3])


def uncounted(tool: FunctionTool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 - the function's own
    """Call a tool as the function that it is, where it is not the program's own call."""
    return tool.function(*args, **kwargs)


_scope: Final[ContextVar[Scope | None]] = ContextVar("playhead-scope", default=None)


def current_scope() -> Scope | None:
    """Return the scope of this thread or task; None outside recorded programs, and where the program has returned."""
    found = _scope.get()
    return None if found is not None and found.is_over("a call of a tool, an agent or a fact") else found


def tasks_of(scope: Scope) -> set[asyncio.Task[Any]]:
    """Return the tasks of this event loop that have not ended and have a scope's context; before Python 3.12, all tasks."""
    tasks = asyncio.all_tasks()
    return {each for each in tasks if not hasattr(each, "get_context") or each.get_context().get(_scope) is scope}


def _place() -> tuple[int, object]:
    loop = asyncio._get_running_loop()  # noqa: SLF001 - `get_running_loop` raises without a loop, which is ten times slower
    return threading.get_ident(), loop and asyncio.current_task(loop)


def step(scope: Scope, coroutine: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - what the coroutine returns
    """Run a coroutine of the kernel, which must not wait for anything, without an event loop; return its value.

    Raises:
        Halted: it failed, or would have to wait, because the run has ended.
    """
    try:
        coroutine.send(None)
    except StopIteration as returned:
        return returned.value
    except Exception:
        scope.require_running()
        raise
    coroutine.close()
    scope.require_running()
    raise RuntimeError("a port of a recorded program has to wait, and a blocking call cannot")
