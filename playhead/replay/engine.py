"""Mode `replay`: run a recording again with changes, on a live model and frozen tools."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Unpack

from anyio.lowlevel import checkpoint

from playhead.agent.options import DEFAULT, TraceTo
from playhead.agent.result import RunResult
from playhead.agent.running import check_guards, open_control, open_writer, record_run, rules_of
from playhead.compose.contexts import HOOK, POLICY
from playhead.compose.rebuilding import joined, rebuilt
from playhead.diagnose.diff import diff_recordings
from playhead.diagnose.recording import Recording
from playhead.errors import ReplayError, RunError, UnrecordedCallError, UsageError
from playhead.kernel import checks
from playhead.kernel.agent_tool import AgentTool, check_agent_call, prices_of
from playhead.kernel.execution import SEED
from playhead.kernel.guards import check_guards as check_makers
from playhead.kernel.session import Guard, Hooks, RunContext, Session, Steering, Tool, ToolContext, World
from playhead.replay.calls import facts_of, meta_tool
from playhead.replay.cast import Below, check_models
from playhead.replay.loading import read_reference
from playhead.replay.overrides import AgentOverrides, Overrides, OverridesLike, changed_tools, tools_with_strategy
from playhead.replay.plan import Plan, ReplayOptions, make_plan
from playhead.replay.serving import Answers
from playhead.replay.steered import RecordedHooks, RecordedStops
from playhead.settings import load_settings
from playhead.trace.clock import SystemClock
from playhead.trace.events import ErrorInfo, ReplayDiverged
from playhead.trace.format import new_run_id
from playhead.trace.line import Record
from playhead.trace.owners import tool_of
from playhead.trace.recorder import OnRecord, Recorder, Subscriptions
from playhead.trace.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from playhead.compose.harness import Harness
    from playhead.diagnose.diff_types import RunDiff
    from playhead.kernel.models.base import Model
    from playhead.kernel.outcome import Outcome
    from playhead.kernel.ports import Fallbacks
    from playhead.trace.header import AgentHeader
    from playhead.trace.types import FallbackInfo, ToolSpec
    from playhead.trace.values import JsonValue


@dataclass(frozen=True)
class ReplayResult:
    """The outcome of `replay`."""

    run: RunResult
    """The result of the replay's own run, also if it failed or was stopped."""
    original: Recording
    """The recorded run."""
    recording: Recording
    """The replay's own events. They are also in its trace, if it was traced."""
    conclusive: bool
    """Whether the replay can tell what the change did: it ended, on grounded results, from a whole recording."""
    grounded: float | None
    """Share of calls answered from the recording in the same state of the world, 0 to 1; None if the replay made no
    calls."""
    rungs: Mapping[str, int]
    """Number of calls by rung; see `playhead.trace.events.tools.Rung`."""
    stopped: str | None
    """The reason the replay stopped early, or None."""
    notes: tuple[str, ...]
    """Notes about the replay, one sentence each."""

    def __repr__(self) -> str:
        """Return what it came to, on one line; the fields and `print(result.diff)` have the rest."""
        said = f"verdict={self.verdict!r}, grounded={self.grounded}, stopped={self.stopped!r}"
        return f"ReplayResult(run_id={self.run.run_id!r}, {said}, tool_edits={len(self.diff.tool_sequence)})"

    @cached_property
    def diff(self) -> RunDiff:
        """The recorded run compared with the replay."""
        return diff_recordings(self.original, self.recording)

    @property
    def verdict(self) -> Literal["same", "changed", "inconclusive"]:
        """`same` or `changed`, by output, calls, turns and strategy switches; `inconclusive` if the replay cannot tell.

        `changed` does not prove that the override is the cause: a live model may answer differently each time.
        """
        return "inconclusive" if not self.conclusive else "same" if self.diff.identical else "changed"


async def replay(
    recording: Recording | str | Path, overrides: OverridesLike = None, **options: Unpack[ReplayOptions]
) -> ReplayResult:
    """Run a recording again with changes: the model is live, tools and approvals answer from the recording.

    Nothing else is real: no tool body runs, no approver is called, and only model requests are sent. Model requests
    that a tool's body made are not repeated and cost nothing. The replay is recorded as a new run whose `replay_of`
    names the original.

    Args:
        recording: the recording, or a reference to it.
        overrides: the changes, as `Overrides` or a dict of its fields; by default none.
        on_missing: how to answer a call without a recorded result. `strict` stops the replay; `lenient` tells the model
            that there is no recording; a function from `MissedCall` to a result, or a model (also as `provider/model`),
            simulates the call; `live` runs the
            tool, if `agent=` provides its code and declares it `read_only`. A dict sets this per tool, such as
            `{"convert_time": "live"}`: there, `live` also runs tools with side effects, and unnamed tools are `strict`.
            A result recorded in another state of the world counts as missing, except that `lenient` serves it as
            `stale`.
        read_only: names of tools without side effects that the recording (usually an import) does not declare
            read-only. Their calls do not make other results stale. For tools from `agent=` the code's declaration
            applies.
        agent: the agent from code, for parts that a recording cannot hold, such as a custom strategy or model object.
            Its tool declarations replace the recorded ones, and each difference becomes a note. Tool bodies do not run.
        api_base: the provider address for the models named in the overrides, or for the root's recorded model.
        rebind: values for redacted parts of prompts, by placeholder name (`[redacted:NAME]`). They are kept out of the
            replay's trace.
        trace: the folder of traces; the replay's own trace is written to its subfolder `replays`. None disables
            tracing; the default is the folder in the settings.
        min_grounded: the minimum share of calls that must have a recorded answer from the same state. Below it, the
            verdict is `inconclusive`.
        on_record: a function called with every record of the replay.
        program: the recorded function, for a recording of one: the same function runs again. Its model is that of its own
            clients, with the overrides applied to its requests.
        args: arguments of the function by name, in place of the recorded ones.
        sealed: with `program=`: stop when this process connects a socket that is not that of a wrapped client's request.
        group: a name for replays that belong together: `playhead list --replays --tag group=NAME` finds them.

    Returns:
        The outcome, also if the replay was stopped or the model failed: see `stopped`.

    Raises:
        UsageError: an override or another argument is not valid, or a model, its key or the strategy is not available.
        NotReplayableError: the recording is damaged, a prompt is redacted, or an imported run lacks required data.
        TraceError: the reference does not name a readable trace, or the replay's own trace cannot be created.
    """
    if options.get("program") is not None:
        raise UsageError("program= is for load_recording(…).replay(program=…)")
    recording = read_reference(recording) if isinstance(recording, (str, Path)) else recording
    plan = make_plan(recording, Overrides.of(overrides), options)
    return await run_plan(plan, options, ReplayWorld(plan))


async def run_plan(plan: Plan, options: ReplayOptions, world: ReplayWorld) -> ReplayResult:
    """Run a plan in a world, and return the outcome."""
    parts = None if plan.agent is None else plan.agent.as_tool()
    min_grounded = options.get("min_grounded", 0.8)
    await _check(plan, parts, min_grounded)
    redactor = Redactor([] if parts is None else rules_of(parts), detects=plan.recording.header.redaction is None)
    plan.rebinding.teach(redactor)
    plan.cast.teach(redactor)
    answers, records = world.answers, list[Record]()
    heard = [answers.note, records.append, world.hear, *filter(None, [options.get("on_record")])]
    run = open_replay(world, options.get("trace", DEFAULT), heard, redactor, RecordedStops(plan.recording), plan.notes)
    result, stopped = await _recorded_run(run, plan, parts, world, options.get("group"))
    stopped = world.stopped(stopped)
    own = Recording(result.trace_path or Path(f"{run.run_id}.jsonl"), tuple(records), ())
    silent = tuple(_silent_models(own))
    is_sure = stopped is None and not plan.doubtful and not silent and answers.suffice(min_grounded)
    notes = (*plan.notes, *world.notes, *silent, *notes_on_results(plan.overrides, answers))
    return ReplayResult(result, plan.recording, own, is_sure, answers.grounded(), dict(answers.rungs), stopped, notes)


async def _check(plan: Plan, parts: AgentTool | None, min_grounded: float) -> None:
    """Check models, hooks and killswitches before anything is recorded or sent."""
    await check_models(plan.cast.models())
    if (hooks := plan.overrides.hooks) is not None:
        specs = plan.past.specs
        hooks.check(plan.header, specs.get("root", {}))
        await check_makers(hooks.guards(), plan.cast.models(), {name for each in specs.values() for name in each})
    if parts is not None:
        await check_guards(parts)
    if type(min_grounded) not in (int, float) or not 0 <= min_grounded <= 1:
        raise UsageError(f"min_grounded must be a share from 0 to 1; it is {min_grounded!r}")


async def _recorded_run(
    run: RunContext, plan: Plan, parts: AgentTool | None, world: ReplayWorld, group: str | None
) -> tuple[RunResult, str | None]:
    """Run and record the root agent; return its result, and why a failed or stopped run ended."""
    tools, composed = ({}, None) if parts is None else (parts.tools, parts.composition(parts.hooks()))
    about: dict[str, Any] = {"replay_of": plan.recording.run_id, "replay_mode": world.mode, "overrides": world.changes}
    header, model = await world.header(), plan.cast.root_model
    try:
        return await record_run(run, header, model, tools, plan.task, composed, replay_group=group, **about), None
    except (ReplayError, RunError) as error:
        if not isinstance(error.result, RunResult):
            raise
        return error.result, f"{error.result.terminated_by}: {error}"


def open_replay(  # noqa: PLR0913, PLR0917 - what a run is made of
    world: World,
    trace: TraceTo,
    heard: Sequence[OnRecord],
    redactor: Redactor | None = None,
    steering: Steering | None = None,
    notes: Sequence[str] = (),
) -> RunContext:
    """Open the run of a replay, in the subfolder `replays` of a folder of traces. Its trace begins with the notes.

    Raises:
        UsageError: the folder is not valid.
        TraceWriteError: the trace cannot be created.
    """
    folder = trace if trace is None or trace is DEFAULT else checks.checked_folder(trace)  # type: ignore[arg-type]
    clock, run_id, settings = SystemClock(), new_run_id(), None if folder is None else load_settings()
    writer = None if settings is None else open_writer(folder, run_id, settings, clock, is_replay=True)
    subscriptions = Subscriptions()
    recorder = Recorder(clock, writer, redactor, (subscriptions,))

    def record_notes(started: Record) -> None:
        for note in notes:
            recorder.emit(ReplayDiverged(what=note, where="outside the loop"), started.owner)

    for each in heard:
        subscriptions.add(None, each)
    subscriptions.add("run-started", record_notes)
    return RunContext(
        run_id,
        recorder,
        world,
        on_trace_error=settings.on_trace_error if settings else "continue",
        control=None if writer is None or steering is None else open_control(writer.path),
        steering=steering,
    )


def _silent_models(own: Recording) -> Iterator[str]:
    """Yield a note on each sub-agent whose model did not answer, so that its answer is unknown."""
    for name, owner in own.owners.items():
        if name != "root" and owner.completed is not None and owner.completed.terminated_by == "llm_error":
            yield f"the model of {name} failed, so what it would have said is not known"


def notes_on_results(overrides: Overrides, answers: Answers) -> Iterator[str]:
    """Yield what is to know of the answers that a replay's calls got."""
    for name, count in answers.foreign.items():
        yield f"the agent {name} was entered with a task that was not recorded ({count} times): its tools answer as for others"
    for name, count in answers.simulated.items():
        yield f"{name} simulated {count} calls, whose tokens and cost are not counted"
    for number, rule in enumerate(overrides.of_calls):
        if number not in answers.used:
            which = rule.tool if rule.nth is None else f"call {rule.nth} of {rule.tool}"
            fitted, hint = answers.fitted[number], answers.unknown.get(number, "")
            yield f"the override of {which} was not used: it fitted {fitted} calls of the replay{hint and f'.{hint}'}"


class ReplayWorld(World):
    """Serves a recording to one replay."""

    mode: ClassVar[str] = "replay"
    """The mode that the run's header states."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.changes = plan.overrides.as_json()
        """The changes that the run's header states."""
        self._facts = facts_of(plan.recording)
        self._has_code = plan.agent is not None
        self.notes: list[str] = []
        """Notes made during the replay."""
        self.answers = Answers(plan.recording, plan.past, plan.on_missing, plan.overrides.of_calls)

    async def header(self) -> AgentHeader:
        """Return the root's header."""
        return self._plan.header.model_copy(update={"prices": await prices_of(self._plan.cast.root_model)})

    def hear(self, record: Record) -> None:
        """Take each record of the run."""

    def stopped(self, why: str | None) -> str | None:
        """Return why the replay stopped, once it has ended; None if it did not. `why` is what the run says."""
        return why

    def fallbacks_for(self, owner: str, infos: Sequence[FallbackInfo], models: Sequence[Model]) -> Fallbacks:
        """Return no fallbacks: a replay tests the model that it names, and stops if that model does not answer."""
        return []

    def tools_for(self, owner: str, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Return this owner's tools: agents are entered, built-in tools run, all others answer from the recording."""
        restored = self._plan.rebinding.restored_model
        return {spec.name: self._tool(restored(spec), tools.get(spec.name)) for spec in self.offered(owner, tools)}

    def offered(self, owner: str, tools: Mapping[str, Tool]) -> list[ToolSpec]:
        """Return the specifications of an agent's tools after the overrides."""
        own = tool_of(owner)
        changes = self._plan.overrides.agents.get(own, AgentOverrides()) if own else self._plan.overrides
        specs = self.specs(owner, tools)
        if changes.strategy is not None:
            specs = tools_with_strategy(self._plan.cast.header_of(own), changes.strategy, specs)
        return changed_tools(changes, specs)

    def given(self, owner: str) -> Harness | None:
        """Return the hooks and killswitches that the overrides give an agent."""
        return self._plan.overrides.hooks if owner == "root" else None

    def hooks_for(self, session: Session, hooks: Hooks | None) -> Hooks | None:
        """Return the overrides' hooks, or the code's if code was given; otherwise the recorded emissions, and the policies."""
        given = self.given(session.owner)
        if given is not None or self._has_code:
            return hooks if given is None else given.hooks()
        known = [self._plan.recording.owners[name] for name in self.answers.places.of(session.owner).sources[:1]]
        recorded = next((each for each in map(RecordedHooks, known) if not each.idle), None)
        return joined(recorded, rebuilt(session.header.hooks).hooks())

    def guards_for(self, session: Session, makers: Sequence[Callable[[Session], Guard]]) -> tuple[Guard, ...]:
        """Return the overrides' killswitches, or the code's if code was given; otherwise those recorded as data."""
        given = self.given(session.owner)
        if given is not None or not self._has_code:
            makers = [each.make for each in (given or rebuilt(session.header.hooks)).guards()]
        return super().guards_for(session, makers)

    async def fact(self, owner: str, name: str, key: str, answer: Callable[[], Any]) -> JsonValue:
        """Return the recorded answer to the same question or approval. Nothing is asked again.

        Raises:
            UnrecordedCallError: the recording has no answer to it.
        """
        of_hooks = name in (HOOK, POLICY)
        if name == SEED or (of_hooks and self.given(owner) is not None):  # seeds are in the recording or come from code
            return await super().fact(owner, name, key, answer)
        answers = self.answers.facts_for(self._facts, owner, name, key)
        if not answers and of_hooks and self._has_code:
            return await super().fact(owner, name, key, answer)  # it only observes what the replay did
        if not answers:
            why = "pass agent=, whose code looks at the answers" if name == POLICY else "a replay asks nobody"
            raise UnrecordedCallError(f"{owner} asks for the fact {name!r}, which was not recorded for it: {why}")
        return answers.popleft()

    def specs(self, owner: str, tools: Mapping[str, Tool]) -> list[ToolSpec]:
        """Return the specifications of an agent's tools: from code if given, otherwise as recorded."""
        return [each.spec for each in tools.values()] if self._has_code else self.answers.places.tools(owner)

    async def enter(self, given: Tool | None, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Run an agent's loop on its live model and its recorded tool results."""
        code = given if isinstance(given, AgentTool) else None
        recorded = self.answers.places.header(context.child_owner) if code is None else code.header
        assert recorded is not None  # noqa: S101 - `decided` has seen to it
        tools = {} if code is None else code.tools
        has_tools = any(spec.kind != "meta" for spec in self.specs(context.child_owner, tools))
        below = Below(self._plan.rebinding.restored_model(recorded), None if code is None else code.model)
        header, model = self._plan.cast.agent(below, has_tools=has_tools)
        composed: dict[str, Any] = {} if code is None else {"hooks": code.hooks, "guards": code.guards}
        return await AgentTool(header, model, tools, **composed).run(arguments, context)

    def _tool(self, spec: ToolSpec, given: Tool | None) -> Tool:
        return meta_tool(spec, given) if spec.kind == "meta" else ReplayTool(self, spec, given)


class Serving(Protocol):
    """A world that answers calls from a recording, and enters agents."""

    answers: Answers

    async def enter(self, given: Tool | None, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Run an agent's loop on its live model and its recorded tool results."""


class ReplayTool:
    """A tool of the recorded run. A function only answers from the recording; an agent is entered with a live model."""

    def __init__(self, world: Serving, spec: ToolSpec, given: Tool | None) -> None:
        self.spec = spec
        self._world = world
        self._given = given

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | Outcome | None:
        """Validate the call: with the code if given, otherwise as recorded."""
        if self.spec.kind == "agent":
            problem = check_agent_call(self.spec.name, arguments, context)
            if problem is not None:
                return problem
        return self._world.answers.check(self.spec, arguments, context, self._given)

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Return the chosen answer, or enter the agent."""
        if self.spec.kind == "agent":
            serving = self._world.answers.decided(context.owner, context.call_id)
            if serving is not None and not serving.is_made_up:
                return await self._world.enter(self._given, arguments, context)
        outcome = await self._world.answers.answer(context.owner, context.call_id)
        await checkpoint()  # so that calls which the kernel lets run beside each other are seen to
        return outcome
