"""Mode `resume`: continue a run that died, from its trace.

Everything that was recorded is served: answers of models, results of tools, facts, approvals, what hooks did. Where the
recording ends the run goes on with the real model and the real tools. It is a run of its own, which names the one that it
continues, and holds all that happened in both.
"""

from __future__ import annotations

import errno
import json
import logging
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from playhead.agent.agent import carry_on
from playhead.agent.options import DEFAULT, Default
from playhead.agent.running import Beginning, redactor_of
from playhead.errors import PlayheadError, UsageError, nearest
from playhead.kernel import checks
from playhead.kernel.lifecycle.signals import listening
from playhead.kernel.lifecycle.threads import Waiting, run_blocking
from playhead.kernel.strategies.base import strategy_of
from playhead.replay.frozen import FrozenWorld
from playhead.replay.guards import RecordedStops
from playhead.replay.loading import read_reference, require_own, require_sound
from playhead.replay.prefix import Prefix, caught_up, prefix_of, resolve
from playhead.replay.prefix_world import PrefixFollower, PrefixWorld
from playhead.replay.redacted import ANSWERS, Rebinding, markers_in, require_whole
from playhead.replay.reproduction import run_frozen
from playhead.trace.format import new_run_id
from playhead.trace.line import Record
from playhead.trace.reader import scan
from playhead.trace.recording import Recording, read_recording
from playhead.trace.store import TraceStore, ends_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from playhead.agent.agent import Agent
    from playhead.agent.options import TraceTo
    from playhead.agent.result import RunResult
    from playhead.replay.overrides import ResultOverride
    from playhead.replay.prefix import NotHappened
    from playhead.trace.recorder import OnRecord
    from playhead.trace.types import Content


log = logging.getLogger("playhead")


class ResumeOptions(TypedDict, total=False):
    """The options of `resume`, which says what each means."""

    unresolved: Mapping[str, ResultOverride | NotHappened] | None
    rebind: Mapping[str, str] | None
    again: bool
    trace: TraceTo
    trace_dir: str | Path | None
    run_id: str | None
    on_record: OnRecord | None


async def resume(agent: Agent, ref: Recording | str | Path, **options: Unpack[ResumeOptions]) -> RunResult:
    """Go on with a run that died, or was ended from outside, with the real model and the real tools.

    Nothing that was answered is asked again, and no call that has a result runs a second time. Before anything is live the
    code has to do again, event by event, what was recorded; if it does something else nothing happens at all. Requests and
    read-only calls that were under way are made again. A call that may have a side effect and was under way is never
    repeated by itself: the caller has to say what became of it.

    What the dead run spent, called and failed counts for killswitches; their times begin anew. Hooks are asked from the
    point of death on, what they did before that is done again without them.

    Args:
        agent: the agent from code, with its model and tools: the same as then. Only limits may be others.
        ref: the recording of the dead run, or a reference to it.
        unresolved: what became of calls with side effects that were under way, by the id of the call:
            `ResultOverride(tool, result=…)`, `ResultOverride(tool, error="…")`, or `DID_NOT_HAPPEN`, and it runs.
        rebind: values for redacted places, by the name that stands there (`[redacted:NAME]`): a live model must not be
            sent a text with holes in it.
        again: resume a run that has been resumed already.
        trace: folder of the new run's trace; None for none; by default the folder of the recording.
        trace_dir: folder in which `ref` is looked for; by default the settings' folder.
        run_id: the new run's id, a new ULID by default.
        on_record: called with every record of the new run, the served ones too.

    Returns:
        What the whole run reached; its tokens and turns are those of both parts.

    Raises:
        UnresolvedCallError: a call with a side effect was under way and `unresolved` says nothing of it. Nothing was run.
        DivergedError: the code does something else than was recorded. Nothing was run.
        NotReplayableError: the recording is damaged, imported, over, of a replay, or redacted where a live model has to read it.
        UsageError: the run still goes on or has been resumed already; or an argument is not valid.
        TraceError: the reference names no readable trace.
        RunError: the run failed, as `Agent.run` says.
    """
    return await _resume(agent, ref, None, options)


def resume_sync(agent: Agent, ref: Recording | str | Path, **options: Unpack[ResumeOptions]) -> RunResult:
    """Go on with a run that died and wait for the result; see `resume`."""
    waiting = Waiting()
    with listening():
        return run_blocking(lambda: _resume(agent, ref, waiting, options), waiting)


async def _resume(
    agent: Agent, ref: Recording | str | Path, waiting: Waiting | None, options: ResumeOptions
) -> RunResult:
    """Check everything that can be checked before the run is live, and continue it."""
    for name in options:
        if name not in ResumeOptions.__annotations__:
            raise UsageError(f"resume has no option {name!r}.{nearest(name, ResumeOptions.__annotations__)}")
    recording = ref if isinstance(ref, Recording) else read_reference(ref, options.get("trace_dir"))
    run_id = checks.checked_id(options.get("run_id") or new_run_id())
    if run_id == recording.run_id:
        raise UsageError(f"run_id: {run_id} is the run that died; the one that continues it has an id of its own")
    trace = options.get("trace", DEFAULT)
    folder = recording.path.parent if isinstance(trace, Default) else trace
    folder = None if folder is None else checks.checked_folder(folder)
    require_sound(recording)
    require_own(recording, "only that program can go on with it")
    strategy_of(recording.header.agent)  # which refuses one that is not registered
    with claimed(recording, again=options.get("again", False)):
        recording = read_recording(recording.path)  # it may have gone on until it was held
        require_sound(recording)
        prefix = prefix_of(recording)
        rebinding = Rebinding.of(options.get("rebind"))
        task = _whole_task(prefix, rebinding)
        prefix = resolve(prefix, options.get("unresolved"))
        secrets = tuple(rebinding.values.items())
        await _rehearse(agent, prefix, task, secrets)
        world = PrefixWorld(prefix, rebinding)
        heard = filter(None, [world.follower, options.get("on_record")])
        stops = RecordedStops(prefix.recording)
        joined = None if recording.header.telemetry is None else recording.header.telemetry.trace_id
        beginning = Beginning(world, folder, recording.run_id, secrets, tuple(heard), stops, joined)
        return await carry_on(agent, task, beginning, run_id, waiting)


async def _rehearse(agent: Agent, prefix: Prefix, task: Content, secrets: Iterable[tuple[str, str]]) -> None:
    """Run the recorded part once with nothing live, and require that it comes out the same.

    Raises:
        DivergedError: it does not.
    """
    follower, redactor = PrefixFollower(prefix), redactor_of(agent.as_tool())
    for name, value in secrets:
        redactor.add_secret(value, name)
    world = FrozenWorld(prefix.recording, tools_from_code=True)
    await run_frozen(world, agent, follower, task, redactor)
    follower.require_same(complete=True)


def _whole_task(prefix: Prefix, rebinding: Rebinding) -> Content:
    """Return the task; refuse a recording that would have a live model read redacted places.

    Raises:
        NotReplayableError: there are some that `rebind` gives no value for.
        UsageError: `rebind` names what stands nowhere.
    """
    task = prefix.recording.header.task
    given: Any = task if isinstance(task, str) else [part.model_dump(mode="json") for part in task]
    texts = dict(_served_texts(prefix))
    rebinding.require_known({marker for value in (given, *texts.values()) for marker in markers_in(value)})
    whole = {"task": rebinding.restored(given), **{name: rebinding.restored(text) for name, text in texts.items()}}
    require_whole(whole, other="run the task anew: a run cannot go on from what nobody has any more")
    return checks.checked_task(rebinding.restored(given))


def _served_texts(prefix: Prefix) -> Iterator[tuple[str, Any]]:
    """Yield what a live model will read of the recording."""
    for record in prefix.recording.records:
        if isinstance(record.event, ANSWERS):
            yield f"line {prefix.lines[record.seq]}", record.event.model_dump(mode="json", exclude={"before"})


@contextmanager
def claimed(recording: Recording, *, again: bool) -> Iterator[None]:
    """Hold a dead run, so that nobody else resumes it at the same time.

    Raises:
        UsageError: it is not dead, or has been resumed already.
    """
    release = _hold(recording)
    try:
        if not again:
            require_first(recording)
        yield
    finally:
        release()


def _hold(recording: Recording) -> Callable[[], None]:
    run = recording.path.with_name(f"{recording.run_id}.jsonl")  # whatever a copy is called, it is this run
    try:
        from playhead.kernel.lifecycle.own_control import OwnControl  # noqa: PLC0415 - for POSIX

        return OwnControl.create(run).close
    except ImportError:  # Windows, where files are locked otherwise
        return lambda: None
    except OSError as error:
        if error.errno in (errno.EBUSY, errno.EEXIST):
            raise UsageError(
                f"{recording.run_id} is not dead: a process of this machine runs it, or resumes it, at this moment. "
                f"See: playhead kill {recording.run_id}"
            ) from None
        log.warning("whether anybody else resumes %s cannot be told: %s", recording.run_id, error.strerror or error)
        return lambda: None


def require_first(recording: Recording) -> None:
    """Refuse to resume a run a second time, or from a copy that was made before the run was over.

    Raises:
        UsageError: the traces beside it say so.
    """
    for path in TraceStore(recording.path.parent).paths():
        if path == recording.path:
            continue
        header = _header_of(path)
        if header.get("resumed_from") == recording.run_id and _was_live(path):
            raise UsageError(
                f"{recording.run_id} has been resumed already, by {path.name}, and what that one did would be done a second "
                f"time. Resume that one if it died. {AGAIN}"
            )
        is_copy = header.get("run_id") == recording.run_id
        more = sum(isinstance(item, Record) for item in scan(path)) - len(recording.records) if is_copy else 0
        if more > 0:
            raise UsageError(
                f"{recording.path.name} is not all of {recording.run_id}: {path.name} is the same run, with {more:,} more lines. "
                f"What they tell of would be done a second time; resume that one. {AGAIN}"
            )


AGAIN: Final = "To resume this one all the same, pass again=True (--again)"


def _was_live(path: Path) -> bool:
    """Return whether a resumption went on from where the dead run stopped, or cannot be read."""
    try:
        found = read_recording(path)
    except PlayheadError:
        return True
    return caught_up(found) or (found.ending is not None and found.ending.terminated_by != "replay_stopped")


def _header_of(path: Path) -> dict[str, Any]:
    """Return what the first line of a trace says; nothing when it says nothing that can be read."""
    with suppress(Exception):  # a file may hold anything, and each way of compression has its own errors
        return dict(json.loads(ends_of(path)[0])["data"])
    return {}
