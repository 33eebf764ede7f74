"""Mode `replay` for a recorded program: its model is live and changed on the wire, its tools answer from the recording."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from playhead.agent.options import DEFAULT
from playhead.agent.result import RunResult
from playhead.diagnose.recording import Recording
from playhead.diagnose.unmade import unmade_calls
from playhead.errors import ReplayError, UnrecordedCallError, UsageError
from playhead.instrument.calls import AgentBody
from playhead.instrument.programs import STRATEGY, Recorded
from playhead.instrument.sealed import no_sockets
from playhead.instrument.worlds import Act, Body, ProgramAgain
from playhead.kernel.agent_tool import AgentTool
from playhead.kernel.execution import SEED
from playhead.replay.calls import facts_of, meta_tool, read_past
from playhead.replay.engine import ReplayResult, ReplayTool, notes_on_results, open_replay
from playhead.replay.loading import require_known, require_sound
from playhead.replay.missing import checked_policies
from playhead.replay.overrides import AgentOverrides, Overrides, OverridesLike, changed_prompt
from playhead.replay.programs import arguments_of, changed_programs, checked_program, perform
from playhead.replay.restoring import returned, served
from playhead.replay.serving import Answers
from playhead.replay.strands import strands_of
from playhead.replay.wire_changes import changed, first_prompt, system_of
from playhead.trace.events import AgentStarted, ErrorInfo, LlmFailed, LlmRequested, RunCompleted
from playhead.trace.owners import is_within, tool_of
from playhead.trace.values import JsonValue, from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from playhead.importing.wire import WireRequest
    from playhead.instrument.transports import Served
    from playhead.kernel.outcome import Outcome
    from playhead.kernel.session import Tool, ToolContext
    from playhead.trace.line import Record

OPTIONS: Final = frozenset({"program", "args", "sealed", "on_missing", "trace", "min_grounded", "on_record", "group"})
"""The options of `replay` that a program can have."""


async def replay_program(
    recording: Recording,
    overrides: OverridesLike,
    program: object,
    **options: Any,  # noqa: ANN401 - of `ReplayOptions`
) -> ReplayResult:
    """Run a recorded program again: see `playhead.replay.replay`; the model is that of the program's own clients.

    Raises:
        UsageError: an override or option is not valid, or does not reach a program.
        NotReplayableError: the recording is damaged.
    """
    require_known(options, OPTIONS, "no option of a program's replay is called")
    require_sound(recording)
    known, changes = checked_program(recording, program), Overrides.of(overrides)
    world = ReplayedProgram(recording, changes, checked_policies(options.get("on_missing", "strict"), has_code=True))
    args = options.get("args") or {}
    bound = arguments_of(recording, known, {**_task(recording, known, changes), **args})
    records: list[Record] = []
    heard = [world.answers.note, records.append, *filter(None, [options.get("on_record")])]
    run = open_replay(world, options.get("trace", DEFAULT), heard)
    stated = changes.as_json() | ({"args": to_json(dict(args))} if args else {})
    about: dict[str, Any] = {"replay_of": recording.run_id, "replay_mode": "replay", "overrides": stated}
    about["replay_group"] = options.get("group")
    with no_sockets(world.stop, sealed=options.get("sealed", False)):
        await perform(known, bound, run, world, about)
    run.recorder.seal()
    path = None if run.recorder.writer is None else run.recorder.writer.path
    own = Recording(path or Path(f"{run.run_id}.jsonl"), tuple(records), ())
    result = _result(own, path, complete=path is not None and run.recorder.complete)
    unmade = dict.fromkeys(unmade_calls(recording.records) + unmade_calls(records))
    doubts = dict.fromkeys([*world.doubts, *world.unused(), *_failed(recording, own)])
    why = None if world.stopped is None else f"replay_stopped: {world.stopped}"
    answers, is_whole = world.answers, why is None and not doubts and recording.status == "closed"
    code = (f"the program changed since the recording: {each}" for each in changed_programs(recording, records))
    notes = (*doubts, *code, *world.notes(), *notes_on_results(changes, answers), *unmade)
    is_sure = is_whole and answers.suffice(options.get("min_grounded", 0.8))
    return ReplayResult(result, recording, own, is_sure, answers.grounded(), dict(answers.rungs), why, notes)


class ReplayedProgram(ProgramAgain):
    """Answers a program's calls and facts from its recording, and applies overrides to its requests."""

    returned = staticmethod(returned)

    def __init__(self, recording: Recording, changes: Overrides, on_missing: Any) -> None:  # noqa: ANN401 - checked
        super().__init__()
        self.doubts: list[str] = []
        """Why nothing can be concluded."""
        self._changes = _checked_changes(recording, changes)
        self._past = read_past(recording)
        self.answers = Answers(recording, self._past, on_missing, changes.of_calls)
        self._facts = strands_of(recording, {"fact"})
        self._servers = strands_of(recording, {"request"})
        self._asked = facts_of(recording)
        self._agents = set[str]()
        """The agents that were entered."""
        self._alike = _answered_differently(recording)
        self._prompts = {name: first_prompt(owner) for name, owner in recording.owners.items()}
        self._other_prompts = self._requests = self._served = 0
        self._reached: set[tuple[str, str]] = set()
        """The overrides that a request got: the agent's name, empty for the root, and the field."""
        self._unmet_tools = {*changes.tools, *(name for each in changes.agents.values() for name in each.tools)}

    def changed(self, owner: str, wire: WireRequest) -> WireRequest:
        """Return a request with the overrides of its agent."""
        name = "" if owner == "root" else tool_of(owner)
        changes = self._changes.agents.get(name, AgentOverrides()) if name else self._changes
        model, prompt, parameters = changes.model, None, changes.merged_parameters or None
        if name and model is None and not changes.model_fields_set:
            name, model = "", self._changes.model
        if changes.system_prompt is not None:
            said = system_of(wire)
            if said == self._prompts.get(self.answers.source_of(owner)):
                prompt = changed_prompt(changes.system_prompt, said or "")
            else:
                self._other_prompts += 1
        self._requests += 1
        given = {"system_prompt": prompt, "model": model, "merged_parameters": parameters}
        self._reached |= {(name, field) for field, value in given.items() if value is not None}
        self._unmet_tools -= {spec.name for spec in wire.tools}
        if prompt is None and model is None and parameters is None and not changes.tools:
            return wire
        return changed(wire, system_prompt=prompt, model=model, parameters=parameters, tools=changes.tools)  # type: ignore[arg-type]

    def check(self, body: Body, context: ToolContext) -> ErrorInfo | Outcome | None:
        """Expect a call, so that `outcome` can serve its answer; return why it cannot run, or None."""
        own: Any = SimpleNamespace(spec=body.spec, check=lambda *_: None, run=lambda _, given: body.run(given))
        with self._lock:
            return self.answers.check(body.spec, body.arguments, context, own)

    async def outcome(self, body: Body, context: ToolContext) -> Outcome:
        """Return the recorded outcome of a call, or what `on_missing` says; a recorded function is entered."""
        try:
            with self._lock:
                serving = self.answers.decided(context.owner, context.call_id)
                self._doubt(f"{body.spec.name} was called", body.act)
                if body.spec.kind != "agent" or (serving is not None and serving.is_made_up):
                    return await self.answers.answer(context.owner, context.call_id)
            if isinstance(body, AgentBody):
                self._agents.add(context.child_owner)
            return await body.run(context)
        except ReplayError as error:
            self.stop(error)

    def tools_for(self, owner: str, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Return the recorded results of an agent's tools; a program brings its own."""
        if not any(is_within(owner, each) for each in self._agents):
            return tools
        return {
            name: meta_tool(each.spec, each) if each.spec.kind == "meta" else ReplayTool(self, each.spec, each)
            for name, each in tools.items()
        }

    async def enter(self, given: Tool | None, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Run an agent below an agent, on its live model."""
        assert isinstance(given, AgentTool)  # noqa: S101 - as code has it
        return await given.run(arguments, context)

    def answer(self, act: Act) -> Served | None:
        """Let a request to a model be sent; what goes to anything else gets its recorded answer, unless it may be sent `live`.

        It may do anything, so nothing else is sent: a request that was not recorded stops the replay.
        """
        if act.name != "http" or self.answers.on_missing.get("http") == "live":
            return None
        with self._lock:
            strands = self._servers.get(self.answers.source_of(act.owner))
            found = None if strands is None else strands.take_any(act)
            self._served += found is not None
        if found is None or not found.entry.is_known:
            fix = "make it in a tool, or send it again with on_missing={'http': 'live'} (--on-missing http=live)"
            sent = act.key.partition(" ")[2]
            why = "which was not recorded so, and a replay asks nothing but models"
            self.stop(UnrecordedCallError(f"{act.owner} sends {sent}, {why}: {fix}"))
        self._doubt("a request was made", act)
        return served(found.entry)

    def value(self, act: Act, answer: Callable[[], Any]) -> Any:  # noqa: ANN401 - JSON
        """Return the recorded answer to a question; nothing is asked again."""
        with self._lock:
            strands = self._facts.get(self.answers.source_of(act.owner))
            found = None if strands is None else strands.take_any(act)
        if found is None:
            self.stop(UnrecordedCallError(f"{act.owner} asks for the fact {act.name!r}, which was not recorded for it"))
        if found.rival is not None:
            self.doubts.append(f"several threads or tasks asked for {act.name}, and nothing says which answer is whose")
        return from_json(found.entry.answer.value)  # type: ignore[union-attr]

    async def fact(self, owner: str, name: str, key: str, answer: Callable[[], Any]) -> JsonValue:
        """Return the recorded decision about a call, or answer to a question of an agent."""
        if name == SEED:
            return answer()
        answers = self.answers.facts_for(self._asked, owner, name, key)
        if not answers:
            what = f"{name} of {key}" if name == "approval" else f"the fact {name!r}"
            self.stop(UnrecordedCallError(f"{owner} asks for {what}, which was not recorded for it"))
        return answers[0] if name == "approval" else answers.popleft()

    def unused(self) -> Iterator[str]:
        """Yield the overrides that no request got, so that nothing is known of their effect."""
        for name, each in (("", self._changes), *self._changes.agents.items()):
            for field in ("system_prompt", "model", "merged_parameters"):
                if getattr(each, field) not in (None, {}) and (name, field) not in self._reached:
                    what = f"{f'agents.{name}.' if name else ''}{field.removeprefix('merged_')}"
                    made = f"the replay made {self._requests} requests through clients from playhead.wrap"
                    yield f"the override of {what} was not used: {made}, and none got it (functions inside: agents=)"
        if self._unmet_tools:
            yield f"tools: no request offered {', '.join(sorted(self._unmet_tools))}, so nothing of it was changed"

    def notes(self) -> Iterator[str]:
        """Yield what a reader of the result should know."""
        if self._served:
            yield f"{self._served} requests that are in no known model's format got their recorded answers, and were not sent"
        if self._other_prompts:
            yield f"{self._other_prompts} requests have another system prompt than their agent's first one, and kept it"

    def _doubt(self, what: str, act: Act) -> None:
        if (self.answers.source_of(act.owner), act.name, act.key) in self._alike:
            why = "with equal arguments by several threads or tasks, and answered differently"
            self.doubts.append(f"{what} {why}: nothing says which answer is whose")


def _result(own: Recording, path: Path | None, *, complete: bool) -> RunResult:
    """Return the result of the run, from its last event."""
    ending = own.ending or RunCompleted(status="failed", terminated_by="error", terminated_source="program")
    fields = {name: getattr(ending, name) for name in RunResult.model_fields if name in type(ending).model_fields}
    fields["strategy_used"] = own.header.agent.strategy
    return RunResult(**fields, run_id=own.run_id, trace_path=path, trace_complete=complete, steps=())


def _failed(recording: Recording, own: Recording) -> Iterator[str]:
    """Yield a doubt if requests failed that had not failed in the recording: the model's answers to them are not known."""
    was = _failures(recording)
    if more := [each for key, each in _failures(own).items() if key not in was]:
        error = more[0].error
        yield f"{len(more)} live requests failed, the first with {error.type}: {error.message}"


def _failures(one: Recording) -> dict[tuple[str, int], LlmFailed]:
    """Return the requests whose last attempt failed, by owner and number."""
    owners = one.owners.items()
    last = {(name, each.requested.request): each.outcome for name, owner in owners for each in owner.exchanges}
    return {key: each for key, each in last.items() if isinstance(each, LlmFailed) and not each.cancelled}


def _task(recording: Recording, program: Recorded, changes: Overrides) -> Mapping[str, Any]:
    """Return an overridden task as the argument that held the recorded task."""
    if changes.task is None:
        return {}
    settings: Any = recording.header.agent.strategy_settings
    names = [name for name, value in settings["arguments"].items() if value == recording.header.task]
    if len(names) != 1:
        raise UsageError(f"task: no argument of {program.reference} is the task; give arguments with args= (--arg)")
    return {names[0]: changes.task}


def _checked_changes(recording: Recording, changes: Overrides) -> Overrides:
    """Return the overrides, if all of them can reach the requests of a program.

    Raises:
        UsageError: an override does not reach a program.
    """
    for name in ("max_iterations", "strategy", "hooks"):
        if getattr(changes, name) is not None:
            raise UsageError(f"{name} does not reach a program, whose loop is its own; compose= takes killswitches")
    programs = {
        tool_of(name)
        for name, owner in recording.owners.items()
        if isinstance(owner.started, AgentStarted) and owner.started.agent.strategy == STRATEGY
    }
    require_known(changes.agents, programs, "agents: the program enters no recorded function")
    asked = [each.event for each in recording.records if isinstance(each.event, LlmRequested)]
    known = {each.model.partition("/")[0] for each in asked}
    for model in filter(None, (changes.model, *(each.model for each in changes.agents.values()))):
        provider = model.partition("/")[0] if isinstance(model, str) and "/" in model else None
        if not isinstance(model, str) or (provider is not None and provider not in known):
            asks = f"the program asks its own clients, of {', '.join(sorted(known)) or 'no known provider'}"
            raise UsageError(f"model: {asks}; it cannot ask {model!r} with them. Name a model of theirs")
    return changes


def _answered_differently(recording: Recording) -> set[tuple[str, str, str]]:
    """Return the calls and requests, by owner, name and key, that several strands made and that were answered differently."""
    found: dict[tuple[str, str, str], set[tuple[int, str]]] = defaultdict(set)
    for owner, strands in strands_of(recording, {"call", "request"}).items():
        for entry in strands.entries:
            found[owner, entry.name, entry.key].add((entry.strand, entry.outcome()))
    return {
        key for key, each in found.items() if len({strand for strand, _ in each}) > 1 < len({what for _, what in each})
    }
