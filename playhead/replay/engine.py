"""Mode `replay`: run a recording again with something changed, on a live model and frozen tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from playhead.agent.options import DEFAULT, TraceTo
from playhead.agent.result import RunResult
from playhead.agent.running import check_guards, open_control, open_writer, record_run, rules_of
from playhead.diagnose.diff import diff_recordings
from playhead.errors import ReplayError, RunError, UnknownModelError, UsageError
from playhead.kernel import checks
from playhead.kernel.agent_tool import prices_of
from playhead.kernel.lifecycle.threads import run_blocking
from playhead.kernel.session import RunContext
from playhead.replay.cast import Address
from playhead.replay.loading import read_reference
from playhead.replay.misses import checked_policy
from playhead.replay.overrides import Overrides, OverridesLike
from playhead.replay.plan import Plan, make_plan
from playhead.replay.redacted import Rebinding
from playhead.replay.result import ReplayResult, Verdict
from playhead.replay.stops import recorded_stops
from playhead.replay.world import ReplayWorld
from playhead.settings import load_settings
from playhead.trace.clock import SystemClock
from playhead.trace.events import ReplayDiverged
from playhead.trace.events.tools import grounded_share
from playhead.trace.recorder import Recorder, Subscriptions
from playhead.trace.recording import Recording
from playhead.trace.redaction import Redactor
from playhead.trace.run_ids import new_run_id

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from playhead.agent.agent import Agent
    from playhead.diagnose.diff_types import RunDiff
    from playhead.kernel.session import Tool
    from playhead.replay.misses import OnMissing
    from playhead.replay.serving import Answers
    from playhead.trace.line import Record
    from playhead.trace.recorder import OnRecord


async def replay(  # noqa: PLR0913 - one door, all keywords
    recording: Recording | str | Path,
    overrides: OverridesLike = None,
    *,
    on_missing: OnMissing = "strict",
    read_only: Collection[str] = (),
    agent: Agent | None = None,
    api_base: str | None = None,
    api_key: str | None = None,
    rebind: Mapping[str, str] | None = None,
    trace: TraceTo = DEFAULT,
    min_grounded: float = 0.8,
    on_record: OnRecord | None = None,
) -> ReplayResult:
    """Run a recording again with something changed: the model is live, tools and approvals answer as recorded.

    Nothing else is real: no tool's body runs, nobody is asked for approval, nothing is sent but the model's requests.
    What a tool's body spent on a model of its own is not spent again, and costs nothing here. The replay is itself
    recorded, as a run of its own with `replay_of`.

    Args:
        recording: the recording, or a reference to it.
        overrides: what to change, as `Overrides` or a dict of the same names; nothing by default.
        on_missing: what a call gets that the recording has no answer to: `strict` stops the replay there, `lenient`
            tells the model so, a function from `MissedCall` to a result simulates it, and `live` runs it, if `agent=`
            gives its code and declares it `read_only`. A dict says it tool by tool, `{"convert_time": "live"}`: then `live`
            runs a tool also when it has side effects; tools that are not named are `strict`. An answer that was recorded in
            another state of the world counts as none, but for `lenient`, which serves it as `stale`.
        read_only: names of tools that have no side effects, as the caller knows and the recording (mostly an import) does not
            say: other results are not stale after theirs. Of tools that `agent=` brings, the code's declaration holds.
        agent: the agent from code, for what a recording cannot hold: a strategy, the model object. What its tools declare
            counts instead of what was recorded, and each difference is a note; their bodies do not run.
        api_base: address of the provider of the models that the overrides name, or of the root's recorded model.
        api_key: that provider's key; of several providers each has its own in the environment.
        rebind: values for redacted places of prompts, by the name that stands there (`[redacted:NAME]`); they are kept
            out of the replay's trace.
        trace: folder of traces, in whose folder `replays` the replay's own trace is; None for none; by default the
            settings' folder.
        min_grounded: share of calls that need a recorded answer of the same state, below which the verdict is
            `inconclusive`.
        on_record: called with every record of the replay.

    Returns:
        What became of it, also when the replay was stopped or the model failed: see `stopped`.

    Raises:
        UsageError: an override or another argument is not valid; a model or its key cannot be had.
        NotReplayableError: the recording is damaged, its strategy is not registered, a prompt is redacted, or it was
            imported and lacks what a replay serves.
        TraceError: the reference names no readable trace, or the replay's own trace cannot be written as asked.
    """
    recording = read_reference(recording) if isinstance(recording, (str, Path)) else recording
    plan = make_plan(
        recording,
        Overrides.of(overrides),
        on_missing=checked_policy(on_missing, has_code=agent is not None),
        read_only=checks.listed("read_only", read_only),
        agent=agent,
        address=Address(api_base, api_key),
        rebinding=Rebinding.of(rebind),
    )
    await plan.cast.check()
    if agent is not None:
        await check_guards(agent.as_tool())
    least = _checked_share(min_grounded)
    folder = trace if trace is None or trace is DEFAULT else checks.checked_folder(trace)  # type: ignore[arg-type]
    stage = _Stage(plan, on_record)
    run, stopped = await stage.run(folder)
    own = Recording(run.trace_path or Path(f"{run.run_id}.jsonl"), tuple(stage.records), ())
    diff = diff_recordings(plan.recording, own)
    grounded = _grounded(stage.world.answers)
    return ReplayResult(
        run=run,
        recording=own,
        diff=diff,
        verdict=_verdict(recording, own, diff, stopped, _grounded_but_overridden(stage.world.answers), least),
        grounded=grounded,
        rungs=dict(stage.world.answers.rungs),
        stopped=stopped,
        notes=(*plan.notes, *stage.world.notes, *_notes_after(plan, stage.world.answers, own)),
    )


class ReplayOptions(TypedDict, total=False):
    """The options of `replay`, which says what each means."""

    on_missing: OnMissing
    read_only: Collection[str]
    agent: Agent | None
    api_base: str | None
    api_key: str | None
    rebind: Mapping[str, str] | None
    trace: TraceTo
    min_grounded: float
    on_record: OnRecord | None


def replay_sync(
    recording: Recording | str | Path, overrides: OverridesLike = None, **options: Unpack[ReplayOptions]
) -> ReplayResult:
    """Replay a recording and wait for the result; see `replay`."""
    return run_blocking(lambda: replay(recording, overrides, **options))


class _Stage:
    """One replay as it runs."""

    def __init__(self, plan: Plan, on_record: OnRecord | None) -> None:
        self.plan = plan
        self.records: list[Record] = []
        self.world = ReplayWorld(plan)
        self._subscriptions = Subscriptions()
        self._subscriptions.add(None, self.records.append)
        for kind in ("tool-call-started", "tool-call-completed"):
            self._subscriptions.add(kind, self.world.answers.note)
        self._on_record = on_record

    async def run(self, folder: TraceTo) -> tuple[RunResult, str | None]:
        """Return the run, and why it was stopped, if it was."""
        plan, model = self.plan, self.plan.cast.root_model
        header = plan.header.model_copy(update={"prices": await prices_of(model)})
        tools: dict[str, Tool] = {} if plan.agent is None else plan.agent.tools
        agent = None if plan.agent is None else plan.agent.as_tool()
        context = self._open(folder)
        try:
            result = await record_run(
                context,
                header,
                model,
                tools,
                plan.task,
                None if agent is None else agent.composition(agent.hooks()),
                replay_of=plan.recording.run_id,
                replay_mode="replay",
                overrides=plan.overrides.as_json(),
            )
        except UnknownModelError as error:
            if plan.overrides.model is not None:
                raise
            raise UnknownModelError(
                f"{error} Pass model= (--model), if the recorded one was an object of a program"
            ) from None
        except (ReplayError, RunError) as error:
            if not isinstance(error.result, RunResult):
                raise
            return error.result, f"{error.result.terminated_by}: {error}"
        return result, None

    def _open(self, folder: TraceTo) -> RunContext:
        clock, run_id = SystemClock(), new_run_id()
        settings = None if folder is None else load_settings()
        writer = None if settings is None else open_writer(folder, run_id, settings, clock, is_replay=True)
        recorder = Recorder(clock, writer, self._redactor(), (self._subscriptions,))
        self._subscriptions.add("run-started", lambda record: self._record_notes(recorder, record))
        if self._on_record is not None:
            self._subscriptions.add(None, self._on_record)
        return RunContext(
            run_id,
            recorder,
            self.world,
            on_trace_error=settings.on_trace_error if settings else "continue",
            control=None if writer is None else open_control(writer.path),
            steering=recorded_stops(self.plan.recording),
        )

    def _redactor(self) -> Redactor:
        agent = self.plan.agent
        redactor = Redactor([] if agent is None else rules_of(agent.as_tool()))
        for name, value in self.plan.rebinding.values.items():
            redactor.add_secret(value, name)
        self.plan.cast.teach(redactor)
        return redactor

    def _record_notes(self, recorder: Recorder, started: Record) -> None:
        for note in self.plan.notes:
            recorder.emit(ReplayDiverged(what=note, where="outside the loop"), started.owner)


def _grounded(answers: Answers) -> float | None:
    return grounded_share(answers.rungs, answers.stops)


def _grounded_but_overridden(answers: Answers) -> float | None:
    """Return the share among the calls that the caller did not answer himself: of those nothing is in doubt."""
    rungs = {rung: count for rung, count in answers.rungs.items() if rung != "override"}
    return grounded_share(rungs, answers.stops)


def _silent_models(own: Recording) -> list[str]:
    """Return the agents below the root whose model did not answer: what they would have said is not known."""
    ended = ((owner.owner, owner.completed) for owner in own.owners.values() if owner.owner != "root")
    return [owner for owner, completed in ended if completed is not None and completed.terminated_by == "llm_error"]


def _verdict(  # noqa: PLR0913, PLR0917 - all that it is made of
    recording: Recording, own: Recording, diff: RunDiff, stopped: str | None, grounded: float | None, least: float
) -> Verdict:
    if (
        stopped is not None
        or _silent_models(own)
        or recording.status != "closed"
        or (recording.header.imported is not None and recording.header.imported.replayability != "full")
        or (grounded is not None and grounded < least)
    ):
        return "inconclusive"
    return "same" if diff.identical else "changed"


def _notes_after(plan: Plan, answers: Answers, own: Recording) -> Iterator[str]:
    for owner in _silent_models(own):
        yield f"the model of {owner} failed, so what it would have said is not known"
    for name, count in answers.foreign.items():
        yield f"the agent {name} was entered with a task that was not recorded ({count} times): its tools answer as for others"
    for number, rule in enumerate(plan.overrides.results):
        if not answers.fitted[number]:
            yield f"the override of {rule.tool} fitted no call of the replay"
        elif rule.nth is not None and rule.nth >= answers.fitted[number]:
            yield f"the override of call {rule.nth} of {rule.tool} was not reached: {answers.fitted[number]} calls fitted"
        elif number not in answers.used:
            yield f"the override of {rule.tool} was not used: an earlier one answered every call that it fits"


def _checked_share(share: Any) -> float:  # noqa: ANN401 - checked here
    if type(share) not in (int, float) or not 0 <= share <= 1:
        raise UsageError(f"min_grounded must be a share from 0 to 1; it is {share!r}")
    return float(share)
