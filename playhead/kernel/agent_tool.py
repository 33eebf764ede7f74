"""An agent as a tool of another agent. It also runs in replays, where only its ports are frozen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from playhead.errors import ReplayError, TraceWriteError
from playhead.kernel.describe import describe
from playhead.kernel.guards import Composition
from playhead.kernel.outcome import Outcome
from playhead.trace.events import AgentCompleted, AgentStarted, ErrorInfo
from playhead.trace.format import UNACCEPTED
from playhead.trace.header import AgentHeader, SourceInfo
from playhead.trace.parameters import fingerprint
from playhead.trace.types import ToolSpec
from playhead.trace.values import as_text, from_json, repair_json, scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from playhead.kernel.approval import Approver
    from playhead.kernel.execution import Execution
    from playhead.kernel.guards import GuardMaker
    from playhead.kernel.lifecycle.termination import Termination
    from playhead.kernel.models.base import Model
    from playhead.kernel.session import Hooks, Session, Tool, ToolContext
    from playhead.trace.redaction import RedactText
    from playhead.trace.types import Content, Prices
    from playhead.trace.values import JsonValue

MAX_DEPTH: Final = 3
"""The maximum nesting of agents below the root."""
SCHEMA = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "What to do, with everything needed to do it."}},
    "required": ["task"],
    "additionalProperties": False,
}


_ELSEWHERE = {"address", "prices", "fallbacks"}
"""Header fields that depend on the machine."""


@dataclass(eq=False, kw_only=True)
class AgentTool:
    """Runs an agent in the same trace, under the call's owner."""

    header: AgentHeader = field(kw_only=False)
    model: Model = field(kw_only=False)
    tools: dict[str, Tool] = field(kw_only=False)
    description: str = ""
    """The tool's description for the calling agent; by default it names the agent."""
    read_only: bool | None = None
    """Whether it may run in parallel with other calls; None means if all of its own tools may."""
    approver: Approver | None = None
    redact: tuple[RedactText, ...] | None = ()
    """The functions of `Agent(redact=…)`; None means that credentials are not detected either."""
    hooks: Callable[[], Hooks | None] = lambda: None
    """Returns its hooks; called when the agent runs, so that hooks may be added until then."""
    guards: Callable[[], tuple[GuardMaker, ...]] = tuple
    """The same for its killswitches."""
    fallbacks: Sequence[Model] = ()
    composed: Callable[[], tuple[SourceInfo, ...]] | None = None
    """Returns the current fingerprints of hooks and killswitches; None if the header holds everything."""

    def __post_init__(self) -> None:
        harmless = all(tool.spec.read_only or tool.spec.kind == "meta" for tool in self.tools.values())
        self._sources: tuple[object, tuple[SourceInfo, ...]] | None = None
        self.spec = ToolSpec(
            name=self.header.name,
            description=self.description or f"Hand a task to the agent {self.header.name}.",
            parameters=SCHEMA,
            read_only=harmless if self.read_only is None else self.read_only,
            kind="agent",
        )

    @property
    def models(self) -> tuple[Model, ...]:
        """The model and its fallbacks, in order."""
        return (self.model, *self.fallbacks)

    def hooks_below(self, above: Hooks | None) -> Hooks | None:
        """Return the hooks for a run of this agent below another: those that it inherits, and its own."""
        return self.hooks() if above is None else above.below(self.hooks())

    def declared(self, hooks: Hooks | None) -> AgentHeader:
        """Return the header for the agent's current declaration, with the hooks of its run."""
        if self.composed is None and hooks is None:
            return self.header
        infos = (*(() if hooks is None else hooks.info()), *(each.info() for each in self.guards()))
        return self.header.model_copy(update={"hooks": infos, "sources": self.sources()})

    def composition(self, hooks: Hooks | None) -> Composition:
        """Return the composition of a run with these hooks."""
        return Composition(hooks, [each.make for each in self.guards()], self.fallbacks)

    def sources(self) -> tuple[SourceInfo, ...]:
        """Return the fingerprints of the code that a recording stands for; without the code, the recorded ones."""
        if self.composed is None:
            return self.header.sources
        state = (self.hooks(), self.guards())
        if self._sources is None or self._sources[0] != state:
            found = tuple(each for each in _sources(self) if each.fingerprint != "" or each.values)
            self._sources = state, found
        return self._sources[1]

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | None:
        """Return the error of invalid arguments or of too deep nesting, or None."""
        return check_agent_call(self.spec.name, arguments, context)

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Run the agent and return its output, or why it has none."""
        from playhead.kernel.execution import as_run_error  # noqa: PLC0415 - only for runs

        _, execution = await self.enter(scrub(from_json(arguments["task"])), context)
        if _ends_the_whole_run(execution.error):
            raise execution.error
        if execution.termination.failed:
            message = execution.state.error or execution.termination.reason
            if execution.error is not None:
                message = describe(as_run_error(execution.error))
            return Outcome.failure("AgentFailed", f"{self.spec.name} failed: {message}")
        return _outcome_of(self.spec.name, execution.termination, execution.state.output)

    async def enter(self, task: Content, context: ToolContext) -> tuple[Session, Execution]:
        """Run the agent under the call's owner; return its session, and how it ended."""
        from playhead.kernel.lifecycle.supervision import Supervisor  # noqa: PLC0415 - only for runs
        from playhead.kernel.session_setup import open_session  # noqa: PLC0415 - the same

        parent = context.session
        hooks = self.hooks_below(parent.gate.hooks)
        header = self.declared(hooks).model_copy(update=await priced(self.header, self.model, self.fallbacks))
        session = open_session(
            parent.run,
            header,
            self.model,
            self.tools,
            owner=context.child_owner,
            parent=parent,
            approver=self.approver,
            composed=self.composition(hooks),
        )
        started = AgentStarted(agent=header, task=task, parent=parent.owner, call_id=context.call_id)
        supervisor = Supervisor(session, lambda reached: AgentCompleted(**reached.ending_fields()))
        return session, await supervisor.run(task, started)


def _outcome_of(name: str, ended: Termination, output: JsonValue) -> Outcome:
    """Return the output as the result of the call; if the answer was not accepted, the call has failed."""
    if ended.reason not in UNACCEPTED:
        return Outcome(ok=True, result=repair_json(output))
    why = ended.reason if ended.because is None else f"{ended.reason}: {ended.because}"
    return Outcome.failure("NotAccepted", f"the answer of {name} was not accepted ({why}); it was: {as_text(output)}")


def check_agent_call(name: str, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | None:
    """Return the problem with a call of an agent, such as too deep nesting, or None."""
    if set(arguments) != {"task"} or not isinstance(from_json(arguments["task"]), str):
        return ErrorInfo(type="InvalidArguments", message=f"{name} takes one argument: task, a string")
    if context.session.depth >= MAX_DEPTH:
        return ErrorInfo(type="TooDeep", message=f"agents are nested {MAX_DEPTH} deep already")
    return None


async def priced(header: AgentHeader, model: Model, fallbacks: Sequence[Model]) -> dict[str, Any]:
    """Return the header's fields for the current prices of its models."""
    update: dict[str, Any] = {"prices": await prices_of(model)}
    if fallbacks:
        known = [await prices_of(each) for each in fallbacks]
        infos = zip(header.fallbacks, known, strict=True)
        update["fallbacks"] = tuple(info.model_copy(update={"prices": prices}) for info, prices in infos)
    return update


async def prices_of(model: Model) -> Prices | None:
    """Return a model's token prices, or None if they are unknown; never raises, because adapters may be third-party code."""
    try:
        return await model.prices()
    except Exception:  # noqa: BLE001 - the first request will report and record the error
        return None


def _ends_the_whole_run(error: BaseException | None) -> TypeGuard[BaseException]:
    """Return whether the error concerns more than this agent: a cancellation, a lost event, a diverged replay."""
    return isinstance(error, (ReplayError, TraceWriteError)) or (error is not None and not isinstance(error, Exception))


def _sources(agent: AgentTool) -> Iterator[SourceInfo]:
    from playhead.kernel.sources import source_info  # noqa: PLC0415 - only for agents

    for name, tool in agent.tools.items():
        if tool.spec.kind == "agent":
            yield _declaration(name, tool)  # type: ignore[arg-type]
        elif tool.spec.kind == "function":
            yield source_info("tool", name, getattr(tool, "function", tool))
    if agent.approver is not None:
        yield source_info("approver", "approver", agent.approver)
    for model in agent.models:
        yield source_info("model", model.name, type(model))
    for place, rule in enumerate(agent.redact or ()):
        yield source_info("redactor", str(place), rule)
    yield from () if agent.composed is None else agent.composed()


def _declaration(name: str, agent: AgentTool) -> SourceInfo:
    """Return a fingerprint of a sub-agent's whole declaration; None if a part is unknown."""
    header = agent.declared(agent.hooks())
    if any(each.fingerprint is None for each in header.sources):
        return SourceInfo(kind="agent", name=name)
    parts: list[Any] = [
        header.model_dump(mode="json", exclude=_ELSEWHERE),
        to_json(header.request_parameters),
        [each.model for each in header.fallbacks],
        [each.spec.model_dump(mode="json") for each in (agent, *agent.tools.values())],
    ]
    return SourceInfo(kind="agent", name=name, fingerprint="", values=fingerprint(parts))
