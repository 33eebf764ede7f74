"""Recordings that can be replayed: `load_recording("latest").replay(system_prompt="Be brief.")`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from playhead.diagnose import recording as diagnose
from playhead.kernel.lifecycle.threads import run_blocking
from playhead.replay.decisions import DecideOptions, Decision, decide
from playhead.replay.engine import ReplayResult, replay
from playhead.replay.forking import Answer, fork
from playhead.replay.loading import read_reference, require_known
from playhead.replay.overrides import Changes
from playhead.replay.plan import ReplayOptions
from playhead.replay.program_replay import replay_program
from playhead.replay.programs import reproduce_program
from playhead.replay.reproduction import Reproduction, reproduce
from playhead.replay.resume_run import ResumeOptions, resume, resume_sync

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from playhead.agent.agent import Agent
    from playhead.agent.result import RunResult
    from playhead.kernel.models.base import Model


class ReproduceOptions(TypedDict, total=False):
    """The options of `reproduce`."""

    agent: Agent | None
    """The recorded agent, to take its tools and strategy from code."""
    program: Callable[..., Any] | None
    """The recorded function, for a recording of one."""
    args: Mapping[str, Any] | None
    """Arguments of the function by name, in place of the recorded ones."""
    sealed: bool
    """With `program=`: stop when this process connects a socket."""


class Again(ReplayOptions, Changes, total=False):
    """The fields of `Overrides` and of `ReplayOptions` as keyword arguments."""


class Recording(diagnose.Recording):
    """A loaded trace that can be replayed, reproduced or resumed. Each method is async; its `…_sync` variant blocks."""

    async def replay(self, **changes: Unpack[Again]) -> ReplayResult:
        """Run the recording again with changes: the model is live, tools and approvals answer from the recording.

        Raises:
            UsageError: an override or option is unknown or has an invalid value.
            NotReplayableError, UnrecordedCallError, StaleResultError: see `playhead.replay.replay`.
        """
        overrides, options = split(changes)
        if options.get("program") is None:
            return await replay(self, overrides, **options)
        return await replay_program(self, overrides, **options)

    def replay_sync(self, **changes: Unpack[Again]) -> ReplayResult:
        """Replay the recording and block until the result."""
        return run_blocking(lambda: self.replay(**changes))

    async def fork(
        self, at: int, *, answer: Answer | None = None, edit: Mapping[int, str] | None = None, **changes: Unpack[Again]
    ) -> ReplayResult:
        """Run the recording again with everything before turn `at` frozen, then as `replay`: see `playhead.replay.fork`.

        Args:
            at: the first turn that is not frozen, from 0.
            answer: what the model answers to the first request of this turn, instead of being asked.
            edit: new texts of messages that stand before this turn, by the message's id.
            changes: overrides and options, as for `replay`.

        Raises:
            UsageError: the run has no such turn, or an argument is not valid.
            NotReplayableError: see `playhead.replay.fork`.
        """
        overrides, options = split(changes)
        return await fork(self, at, overrides, answer=answer, edit=edit, **options)

    def fork_sync(
        self, at: int, *, answer: Answer | None = None, edit: Mapping[int, str] | None = None, **changes: Unpack[Again]
    ) -> ReplayResult:
        """Fork the recording and block until the result."""
        return run_blocking(lambda: self.fork(at, answer=answer, edit=edit, **changes))

    async def decide(
        self, at: int, models: Sequence[str | Model], **options: Unpack[DecideOptions]
    ) -> tuple[Decision, ...]:
        """Ask models the recorded request of turn `at`, and return what each would have done: see `playhead.replay.decide`."""
        return await decide(self, at, models, **options)

    def decide_sync(
        self, at: int, models: Sequence[str | Model], **options: Unpack[DecideOptions]
    ) -> tuple[Decision, ...]:
        """Ask models the recorded request of a turn, and block until they have answered."""
        return run_blocking(lambda: self.decide(at, models, **options))

    async def reproduce(self, **options: Unpack[ReproduceOptions]) -> Reproduction:
        """Run the recording again with everything frozen and compare every event: see `playhead.replay.reproduce`.

        Raises:
            UsageError: an option is missing or not valid.
            NotReplayableError: see `playhead.replay.reproduce`.
        """
        require_known(options, ReproduceOptions.__annotations__, "reproduce has no option")
        if (program := options.get("program")) is None:
            return await reproduce(self, agent=options.get("agent"))
        return await reproduce_program(self, program, options.get("args"), sealed=options.get("sealed", False))

    def reproduce_sync(self, **options: Unpack[ReproduceOptions]) -> Reproduction:
        """Reproduce the recording and block until the outcome."""
        return run_blocking(lambda: self.reproduce(**options))

    async def resume(self, agent: Agent, **options: Unpack[ResumeOptions]) -> RunResult:
        """Resume an interrupted run with the live model and tools: see `playhead.replay.resume`."""
        return await resume(agent, self, **options)

    def resume_sync(self, agent: Agent, **options: Unpack[ResumeOptions]) -> RunResult:
        """Resume an interrupted run and block until the result."""
        return resume_sync(agent, self, **options)


def load_recording(reference: str | Path, trace_dir: str | Path | None = None) -> Recording:
    """Load a recording by a run id or its unique prefix, `latest`, `latest~2`, or a path.

    A damaged file loads too: `Recording.status` and `Recording.problems` describe the damage, and replays refuse it.

    Raises:
        TraceNotFoundError, AmbiguousRunError, RunIdError: no run matches, several match, or the id is not valid.
        NotATraceError, TraceFormatError: the file cannot be read as a trace.
    """
    read = read_reference(reference, trace_dir)
    return Recording(read.path, read.records, read.problems)


def split(changes: Again) -> tuple[dict[str, Any], Any]:
    """Return the overrides and the options among keyword arguments. Unknown names count as overrides, which report them."""
    options = {name: value for name, value in changes.items() if name in ReplayOptions.__annotations__}
    return {name: value for name, value in changes.items() if name not in options}, options
