"""A recording that can be run again: `load_recording("latest").replay(system_prompt="Be brief.")`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.replay.engine import replay, replay_sync
from playhead.replay.loading import read_reference
from playhead.replay.overrides import Changes
from playhead.replay.plan import ReplayOptions
from playhead.replay.reproduction import Reproduction, reproduce, reproduce_sync
from playhead.replay.resume_run import ResumeOptions, resume, resume_sync
from playhead.trace import recording as trace

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Unpack

    from playhead.agent.agent import Agent
    from playhead.agent.result import RunResult
    from playhead.replay.engine import ReplayResult


class Again(ReplayOptions, Changes, total=False):
    """What a replay changes, as `Overrides` says it, and how it is done, as `ReplayOptions` does."""


class Recording(trace.Recording):
    """A trace that has been read, and the ways to run it again. Each is awaited; its twin `…_sync` waits for the result."""

    async def replay(self, **changes: Unpack[Again]) -> ReplayResult:
        """Run it again with something changed: the model is live, tools and approvals answer as recorded.

        Raises:
            UsageError: there is no such change or option, or a value is not valid.
            NotReplayableError, UnrecordedCallError, StaleResultError: see `playhead.replay.replay`.
        """
        overrides, options = _split(changes)
        return await replay(self, overrides, **options)

    def replay_sync(self, **changes: Unpack[Again]) -> ReplayResult:
        """Replay it and wait for the result."""
        overrides, options = _split(changes)
        return replay_sync(self, overrides, **options)

    async def reproduce(self, *, agent: Agent | None = None) -> Reproduction:
        """Run it again with model, tools and facts frozen, and compare every event: see `playhead.replay.reproduce`."""
        return await reproduce(self, agent=agent)

    def reproduce_sync(self, *, agent: Agent | None = None) -> Reproduction:
        """Reproduce it and wait for the outcome."""
        return reproduce_sync(self, agent=agent)

    async def resume(self, agent: Agent, **options: Unpack[ResumeOptions]) -> RunResult:
        """Go on with a run that died, with the real model and tools: see `playhead.replay.resume`."""
        return await resume(agent, self, **options)

    def resume_sync(self, agent: Agent, **options: Unpack[ResumeOptions]) -> RunResult:
        """Go on with a run that died, and wait for the result."""
        return resume_sync(agent, self, **options)


def load_recording(reference: str | Path, trace_dir: str | Path | None = None) -> Recording:
    """Return the recording that a reference means: a run id or its unique prefix, `latest`, `latest~2`, or a path.

    A damaged file loads too: `Recording.status` and `Recording.problems` say what is wrong, and replays refuse it.

    Raises:
        TraceNotFoundError, AmbiguousRunError, RunIdError: no run, or more than one, or no possible id.
        NotATraceError, TraceFormatError: the file cannot be read as a trace.
    """
    read = read_reference(reference, trace_dir)
    return Recording(read.path, read.records, read.problems)


def _split(changes: Again) -> tuple[dict[str, Any], Any]:
    """Return what is changed, and how it is done; a name that is neither counts as a change, whose error names the nearest."""
    options = {name: value for name, value in changes.items() if name in ReplayOptions.__annotations__}
    return {name: value for name, value in changes.items() if name not in options}, options
