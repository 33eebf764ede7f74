"""Running a recorded program again: the same function, with its tools frozen, and its model frozen or live."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections import deque
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread

from playhead.diagnose.unmade import unmade_calls
from playhead.errors import UsageError
from playhead.instrument.programs import STRATEGY, Recorded
from playhead.instrument.sealed import no_sockets
from playhead.instrument.seam import Halted
from playhead.kernel.session import GRACE_S, RunContext
from playhead.replay.loading import require_known, require_sound
from playhead.replay.program_worlds import FrozenProgram
from playhead.replay.redacted import markers_in
from playhead.replay.reproduction import Reproduction, SourceChange, changed_sources
from playhead.replay.restoring import restored_as
from playhead.trace.clock import SystemClock
from playhead.trace.events import AgentStarted, RunStarted
from playhead.trace.format import new_run_id
from playhead.trace.recorder import Recorder, Subscriptions
from playhead.trace.values import from_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from playhead.diagnose.recording import Recording
    from playhead.instrument.worlds import ProgramWorld
    from playhead.trace.line import Record

_lock: Final = threading.Lock()
_in_progress: Final = dict[Any, "asyncio.Task[Any] | None"]()
"""The programs of the shared event loop, each with its task once that runs."""
_ENDINGS: Final = (Exception, Halted, SystemExit)
"""How a program may end. `sys.exit` ends the program, not the process that runs it again."""


def arguments_of(recording: Recording, program: Recorded, given: Mapping[str, Any]) -> inspect.BoundArguments:
    """Return the arguments for a program: as recorded, but for those that are given.

    Raises:
        UsageError: an argument that JSON could not hold is not given, or the function has no such parameter.
    """
    settings: Any = recording.header.agent.strategy_settings
    signature = inspect.signature(program.function, eval_str=True)
    require_known(given, signature.parameters, f"{program.reference} has no parameter")
    missing = [name for name in settings["not_json"] if name not in given]
    if missing:
        names = ", ".join(missing)
        raise UsageError(f"{names} of {program.reference} was no JSON, and is not recorded: pass args={{…}} (--arg)")
    hidden = sorted({name for name, value in settings["arguments"].items() if name not in given and markers_in(value)})
    if hidden:
        raise UsageError(f"{', '.join(hidden)} of {program.reference} was redacted: pass args={{…}} (--arg)")
    bound = inspect.BoundArguments(signature, {})
    for name, parameter in signature.parameters.items():
        if name in given:
            bound.arguments[name] = given[name]
        elif name in settings["arguments"]:
            bound.arguments[name] = restored_as(parameter.annotation, from_json(settings["arguments"][name]))
    return bound


def checked_program(recording: Recording, program: object) -> Recorded:
    """Return the program that a recording is run again with.

    A program is known by its function or by its name: a module may be renamed, or be the script itself.

    Raises:
        UsageError: it is not a recorded function, its `compose=` cannot guard it, or the recording is not one of this program.
    """
    known = getattr(program, "recorded", program)
    if not isinstance(known, Recorded):
        raise UsageError(f"program= is a function with @playhead.recorded; it is {program!r}")
    if recording.header.agent.strategy != STRATEGY:
        raise UsageError(f"{recording.run_id} is a run of an agent, not of a program: leave out program=")
    name, was = recording.header.agent.name, str(recording.header.agent.strategy_settings["function"])
    # `agent` raises before anything runs: what a running program raises is the program's own
    if known.agent.header.name != name and known.function.__qualname__ != was.partition(":")[2]:
        fix = f"if it was renamed, @playhead.recorded(name={name!r}) says so"
        raise UsageError(f"{recording.run_id} is a run of {was}, and program= (--program) is {known.reference}; {fix}")
    return known


async def perform(
    program: Recorded, bound: inspect.BoundArguments, run: RunContext, world: ProgramWorld, about: Mapping[str, Any]
) -> None:
    """Run a program to its end, whatever it returns or raises: what it did is in the record."""
    begin = partial(program.begin, bound, lambda: run, world, about)
    if not (inspect.iscoroutinefunction(program.function) or inspect.isasyncgenfunction(program.function)):
        await anyio.to_thread.run_sync(partial(_to_its_end, begin), abandon_on_cancel=True)
        return
    if threading.current_thread() is not threading.main_thread():
        # The loop of `run_blocking` ends with this replay, and an async client cannot be used in the next one's.
        with _lock:
            loop, _in_progress[begin] = _shared_loop(os.getpid()), None
        try:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_in_shared_loop(begin), loop))
        finally:
            _in_progress.pop(begin, None)  # it may have been cancelled before its task ran
        return
    task = asyncio.ensure_future(_awaited(begin()))  # a task of its own: if the program cancels it, this one goes on
    try:
        await asyncio.wait([task])
    finally:
        task.cancel()
    with suppress(*_ENDINGS, asyncio.CancelledError):
        task.result()


def _to_its_end(begin: Callable[[], Any]) -> None:
    with suppress(*_ENDINGS, KeyboardInterrupt):
        value = begin()
        if inspect.isgenerator(value):
            deque(value, maxlen=0)


@cache
def _shared_loop(process: int) -> asyncio.AbstractEventLoop:  # noqa: ARG001 - a forked one has no thread that runs the loop
    """Return the event loop of all async programs that blocking callers replay: their clients keep connections of it."""

    def forever() -> None:
        while True:
            try:
                loop.run_forever()
            except (SystemExit, KeyboardInterrupt):  # of a task: asyncio's own runner ends everything in the loop, too
                for each in filter(None, _in_progress.values()):
                    each.cancel()

    loop = asyncio.new_event_loop()
    threading.Thread(target=forever, name="playhead-programs", daemon=True).start()
    return loop


async def _in_shared_loop(begin: Callable[[], Any]) -> None:
    _in_progress[begin] = task = asyncio.current_task()
    try:
        with suppress(*_ENDINGS, KeyboardInterrupt, asyncio.CancelledError):
            await _awaited(begin())
        # Where no other program runs, the tasks that are left are of programs that have ended. asyncio's own runner cancels them, too.
        left = asyncio.all_tasks() - {task} if len(_in_progress) == 1 else set()
        for each in left:
            each.cancel()
        if left:
            await asyncio.wait(left, timeout=GRACE_S)
    finally:
        _in_progress.pop(begin, None)


async def _awaited(value: Any) -> None:  # noqa: ANN401 - a coroutine or an async generator
    if not inspect.isasyncgen(value):
        await value
    else:
        async for _ in value:
            pass


def changed_programs(recording: Recording, records: Iterable[Record]) -> tuple[SourceChange, ...]:
    """Return the recorded functions among these records whose code is known and is not that of the recording."""
    started = ((each.owner, each.event) for each in records if each.owner in recording.owners)
    now = {owner: event.agent.sources for owner, event in started if isinstance(event, (RunStarted, AgentStarted))}
    return tuple(each for each in changed_sources(recording, now) if (each.kind, each.change) == ("program", "code"))


async def reproduce_program(
    recording: Recording, program: object, args: Mapping[str, Any] | None = None, *, sealed: bool = False
) -> Reproduction:
    """Run a recorded program again with model, tools and facts frozen, and compare what it does strand by strand.

    Raises:
        UsageError: the program or an argument is missing or not valid.
        NotReplayableError: the recording is damaged.
    """
    require_sound(recording)
    known = checked_program(recording, program)
    bound = arguments_of(recording, known, args or {})
    world, subscriptions = FrozenProgram(recording), Subscriptions()
    subscriptions.add(None, world.hear)
    recorder = Recorder(SystemClock(), subscriptions=(subscriptions,))
    run = RunContext(new_run_id(), recorder, world)
    records: list[Record] = []
    subscriptions.add(None, records.append)
    with no_sockets(world.stop, sealed=sealed):
        await perform(known, bound, run, world, {"replay_of": recording.run_id, "replay_mode": "reproduce"})
    judged = world.judged()
    return Reproduction(
        run_id=recording.run_id,
        identical=not (judged.divergences or judged.ambiguous),
        events=world.compared,
        divergences=judged.divergences,
        status=recording.status,
        cut_short=world.is_open,
        redacted=recording.header.redacted
        or any(markers_in([each.expected, each.actual]) for each in judged.divergences),
        changed_sources=changed_programs(recording, records),
        ambiguous=judged.ambiguous,
        notes=tuple(dict.fromkeys((*judged.notes, *unmade_calls(recording.records), *unmade_calls(records)))),
    )
