"""Mode `resume`: continue an interrupted run from its trace.

Everything recorded is served: model answers, tool results, facts, approvals and the effects of hooks. Where the
recording ends, the run continues with the live model and tools. The result is a new run that names the one it continues
and holds the events of both.
"""

from __future__ import annotations

import errno
import json
import logging
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from playhead.agent.agent import Agent, carry_on
from playhead.agent.options import DEFAULT, Default, TraceTo
from playhead.agent.running import Beginning, redactor_of
from playhead.diagnose.recording import Recording, read_recording
from playhead.errors import PlayheadError, UsageError
from playhead.kernel import checks
from playhead.kernel.lifecycle.signals import listening
from playhead.kernel.lifecycle.threads import Waiting, run_blocking
from playhead.replay.frozen import FrozenWorld
from playhead.replay.loading import read_reference, require_known, require_repeatable, require_sound
from playhead.replay.prefix import NotHappened, Prefix, caught_up, prefix_of, resolve
from playhead.replay.prefix_world import PrefixFollower, PrefixWorld
from playhead.replay.redacted import ANSWERS, Rebinding, markers_in, require_whole
from playhead.replay.reproduction import run_frozen
from playhead.replay.steered import RecordedStops
from playhead.trace.format import new_run_id
from playhead.trace.line import Record
from playhead.trace.reader import scan
from playhead.trace.store import TraceStore, ends_of
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from playhead.agent.result import RunResult
    from playhead.replay.overrides import ResultOverride
    from playhead.trace.recorder import OnRecord
    from playhead.trace.types import Content


log = logging.getLogger("playhead")


class ResumeOptions(TypedDict, total=False):
    """The options of `resume`, documented there."""

    unresolved: Mapping[str, ResultOverride | NotHappened] | None
    rebind: Mapping[str, str] | None
    again: bool
    trace: TraceTo
    trace_dir: str | Path | None
    run_id: str | None
    on_record: OnRecord | None


async def resume(agent: Agent, ref: Recording | str | Path, **options: Unpack[ResumeOptions]) -> RunResult:
    """Resume a run that died or was ended from outside, with the live model and tools.

    No answered request is sent again, and no call with a result runs a second time. Before anything is live, the code
    must reproduce the recorded events exactly; if it does not, nothing is run. Unanswered requests and unfinished
    read-only calls are made again. An unfinished call that may have a side effect is never repeated automatically: the
    caller must say how it ended.

    Killswitches count the tokens, calls and failures of the interrupted run; time limits start again. Hooks are called
    only for new events; their earlier effects are repeated from the recording.

    Args:
        agent: the agent from code, with the same model and tools as in the recording. Only limits may differ.
        ref: the recording of the interrupted run, or a reference to it.
        unresolved: the outcomes of unfinished calls with side effects, by call id: `ResultOverride(tool, result=…)`,
            `ResultOverride(tool, error="…")`, or `DID_NOT_HAPPEN`, which runs the call.
        rebind: values for redacted text, by placeholder name (`[redacted:NAME]`), so that the live model does not get
            placeholders.
        again: allow resuming a run that was already resumed.
        trace: the folder for the new run's trace; None disables tracing; the default is the recording's folder.
        trace_dir: the folder in which to look up `ref`; by default the folder in the settings.
        run_id: the new run's id; by default a new ULID.
        on_record: a function called with every record of the new run, including served ones.

    Returns:
        The result of the whole run; its tokens and turns include both parts.

    Raises:
        UnresolvedCallError: a call with a side effect is unfinished and not in `unresolved`. Nothing was run.
        DivergedError: the code behaves differently from the recording. Nothing was run.
        NotReplayableError: the recording is damaged, imported, complete, itself a replay, or redacted in text that a
            live model needs.
        UsageError: the run is still running or was already resumed, or an argument is not valid.
        TraceError: the reference does not name a readable trace.
        RunError: the run failed, as for `Agent.run`.
    """
    return await _resume(agent, ref, None, options)


def resume_sync(agent: Agent, ref: Recording | str | Path, **options: Unpack[ResumeOptions]) -> RunResult:
    """Resume an interrupted run and block until the result; see `resume`."""
    waiting = Waiting()
    with listening():
        return run_blocking(lambda: _resume(agent, ref, waiting, options), waiting)


async def _resume(
    agent: Agent, ref: Recording | str | Path, waiting: Waiting | None, options: ResumeOptions
) -> RunResult:
    """Validate everything before the run is live, then continue the run."""
    require_known(options, ResumeOptions.__annotations__, "resume has no option")
    recording = ref if isinstance(ref, Recording) else read_reference(ref, options.get("trace_dir"))
    run_id = checks.checked_id(options.get("run_id") or new_run_id())
    if run_id == recording.run_id:
        raise UsageError(f"run_id: {run_id} is the run that died; the one that continues it has an id of its own")
    trace = options.get("trace", DEFAULT)
    folder = recording.path.parent if isinstance(trace, Default) else trace
    folder = None if folder is None else checks.checked_folder(folder)
    require_repeatable(recording, "only that program can go on with it")
    with claimed(recording, again=options.get("again", False)):
        recording = read_recording(recording.path)  # the run may have continued until it was locked
        require_sound(recording)
        prefix = prefix_of(recording)
        rebinding = Rebinding.of(options.get("rebind"))
        task = _whole_task(prefix, rebinding)
        prefix = resolve(prefix, options.get("unresolved"))
        await _rehearse(agent, prefix, task, rebinding)
        world = PrefixWorld(prefix, rebinding)
        heard = filter(None, [world.follower, options.get("on_record")])
        stops = RecordedStops(prefix.recording)
        joined = None if recording.header.telemetry is None else recording.header.telemetry.trace_id
        secrets = tuple(rebinding.values.items())
        beginning = Beginning(world, folder, recording.run_id, secrets, tuple(heard), stops, joined)
        return await carry_on(agent, task, beginning, run_id, waiting)


async def _rehearse(agent: Agent, prefix: Prefix, task: Content, rebinding: Rebinding) -> None:
    """Run the recorded part once with nothing live, and require the same events.

    Raises:
        DivergedError: an event differs.
    """
    follower, redactor = PrefixFollower(prefix), redactor_of(agent.as_tool())
    rebinding.teach(redactor)
    world = FrozenWorld(prefix.recording, tools_from_code=True)
    await run_frozen(world, agent, follower, task, redactor)
    follower.require_same(complete=True)


def _whole_task(prefix: Prefix, rebinding: Rebinding) -> Content:
    """Return the task. Refuse a recording that would send redacted text to a live model.

    Raises:
        NotReplayableError: `rebind` has no value for a redacted place.
        UsageError: `rebind` names a placeholder that does not occur.
    """
    task = prefix.recording.header.task
    given: Any = to_json(task)
    texts = dict(_served_texts(prefix))
    rebinding.require_known({marker for value in (given, *texts.values()) for marker in markers_in(value)})
    whole = {"task": rebinding.restored(given), **{name: rebinding.restored(text) for name, text in texts.items()}}
    require_whole(whole, other="run the task anew: a run cannot go on from what nobody has any more")
    return checks.checked_task(rebinding.restored(given))


def _served_texts(prefix: Prefix) -> Iterator[tuple[str, Any]]:
    """Yield the recorded texts that a live model will see."""
    for record in prefix.recording.records:
        if isinstance(record.event, ANSWERS):
            yield f"line {prefix.lines[record.seq]}", record.event.model_dump(mode="json", exclude={"before"})


@contextmanager
def claimed(recording: Recording, *, again: bool) -> Iterator[None]:
    """Lock an interrupted run, so that no other process resumes it at the same time.

    Raises:
        UsageError: the run is still running or was already resumed.
    """
    with _held(recording):
        if not again:
            require_first(recording)
        yield


def _held(recording: Recording) -> AbstractContextManager[object]:
    run = recording.path.with_name(f"{recording.run_id}.jsonl")  # a copy under any name is still this run
    try:
        from playhead.kernel.lifecycle.own_control import OwnControl  # noqa: PLC0415 - for POSIX

        return closing(OwnControl.create(run))
    except ImportError:  # Windows locks files differently
        return nullcontext()
    except OSError as error:
        if error.errno in (errno.EBUSY, errno.EEXIST):
            why = "is not dead: a process of this machine runs it, or resumes it. See: playhead kill"
            raise UsageError(f"{recording.run_id} {why} {recording.run_id}") from None
        log.warning("whether anybody else resumes %s cannot be told: %s", recording.run_id, error.strerror or error)
        return nullcontext()


def require_first(recording: Recording) -> None:
    """Refuse to resume a run a second time, or from a copy that was made before the run ended.

    Raises:
        UsageError: a trace in the same folder shows that this is the case.
    """
    for path in TraceStore(recording.path.parent).paths():
        header = {} if path == recording.path else _header_of(path)
        why, is_copy = None, header.get("run_id") == recording.run_id
        if header.get("resumed_from") == recording.run_id and _was_live(path):
            why = f"{recording.run_id} has been resumed already, by {path.name}: resume that one if it died"
        elif is_copy and sum(isinstance(item, Record) for item in scan(path)) > len(recording.records):
            why = f"{recording.path.name} is not all of {recording.run_id}: {path.name} has more lines of it"
        if why is not None:
            raise UsageError(f"{why}. To do a second time what was done, pass again=True (--again)")


def _was_live(path: Path) -> bool:
    """Return whether a resumed run became live, or cannot be read."""
    try:
        found = read_recording(path)
    except PlayheadError:
        return True
    return caught_up(found) or (found.ending is not None and found.ending.terminated_by != "replay_stopped")


def _header_of(path: Path) -> dict[str, Any]:
    """Return the first line of a trace as an object; empty if it cannot be read."""
    with suppress(Exception):  # a file may hold anything, and each compression format raises its own errors
        return dict(json.loads(ends_of(path)[0])["data"])
    return {}
