"""A frozen world: every owner gets its recorded answers, and nothing real runs."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from anyio.lowlevel import checkpoint

from playhead import errors
from playhead.compose.rebuilding import joined, rebuilt
from playhead.errors import ModelError, NotReplayableError, PlayheadError, RecordingEndedError, UnrecordedCallError
from playhead.kernel.agent_tool import AgentTool, check_agent_call
from playhead.kernel.outcome import Outcome
from playhead.kernel.session import Guard, Hooks, Session, Tool, ToolContext, World
from playhead.replay.calls import facts_of, meta_tool
from playhead.replay.matching import describe_miss
from playhead.replay.steered import Races, RecordedHooks, recorded_guards
from playhead.trace.events import ApprovalRequested, ErrorInfo, EventBase, KillswitchFired, LlmFailed, LlmResponded
from playhead.trace.owners import is_within
from playhead.trace.types import Completion, FallbackInfo, Prices, Request, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from playhead.diagnose.recording import OwnerRecording, RecordedCall, Recording
    from playhead.kernel.models.base import Model
    from playhead.kernel.ports import Fallbacks
    from playhead.trace.header import AgentHeader, SourceInfo
    from playhead.trace.values import JsonValue


class FrozenWorld(World):
    """Serves a recording. With `tools_from_code`, agents have the tools of their code; otherwise the recorded ones."""

    def __init__(self, recording: Recording, *, tools_from_code: bool) -> None:
        self.recording = recording
        self.is_open = recording.status in ("open", "truncated")
        """Whether the recording may end before the run does."""
        self.after_end: list[str] = []
        """Owners that made a request after the end of the recording."""
        self._tools_from_code = tools_from_code
        self._facts = facts_of(recording)
        calls = ((name, call) for name, owner in recording.owners.items() for call in owner.calls.values())
        self.calls = {(name, call.iteration, call.started.position): call for name, call in calls}
        """The recorded calls, by owner, turn and place."""
        asked = ((record.owner, record.event) for record in recording.records)
        self.approvals = {(name, each.call_id) for name, each in asked if isinstance(each, ApprovalRequested)}
        """The calls of which approval was requested, by owner and id."""
        self.races = Races(recording)
        self.inside: dict[str, list[EventBase]] = defaultdict(list)
        """The spending and the fired killswitches inside each call that is served as a whole."""
        for name, scope in self.races.inside.items():
            events = (record.event for record in recording.owners[name].records)
            spent = (LlmResponded, LlmFailed, KillswitchFired)
            self.inside[scope] += [each for each in events if isinstance(each, spent)]
        self.hooks: dict[str, Hooks | None] = {}
        """The hooks of the code, by owner; they are not called."""
        self.sources: dict[str, tuple[SourceInfo, ...]] = {}
        """The fingerprints of the code of agents, by owner."""

    def model_for(self, owner: str, model: Model) -> Model:
        """Return the recorded answers of this owner."""
        return self.answers_of(owner, model.name)

    def fallbacks_for(self, owner: str, infos: Sequence[FallbackInfo], models: Sequence[Model]) -> Fallbacks:
        """Return the recorded answers of this owner's fallback models, under their names."""
        return [(info, self.answers_of(owner, info.model)) for info in infos]

    def answers_of(self, owner: str, name: str) -> FrozenModel:
        """Return the recorded answers of an owner, as a model of this name."""
        return FrozenModel(self, self.of(owner), name)

    def tools_for(self, owner: str, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Return this owner's tools: agents are entered, built-in tools run, all others answer from the recording."""
        given = [tool.spec for tool in tools.values()]
        specs = given if self._tools_from_code else list(self.of(owner).own_tools.values())
        return {spec.name: self._tool(spec, tools.get(spec.name)) for spec in specs}

    def hooks_for(self, session: Session, hooks: Hooks | None) -> Hooks | None:
        """Return stand-ins that repeat the recorded effects of this owner's hooks, and its policies."""
        recorded = self.recording.owners.get(session.owner)
        if recorded is None:
            return None
        hooks = RecordedHooks(recorded)
        return joined(None if hooks.idle else hooks, rebuilt(session.header.hooks).hooks())

    def guards_for(self, session: Session, makers: Sequence[Callable[[Session], Guard]]) -> tuple[Guard, ...]:
        """Return guards that repeat the recorded effects of this owner's killswitches."""
        recorded = self.recording.owners.get(session.owner)
        return () if recorded is None else recorded_guards(session, recorded, self.inside)

    async def fact(self, owner: str, name: str, key: str, answer: Callable[[], Any]) -> JsonValue:
        """Return the next recorded answer to this question."""
        answers = self._facts[owner, name, key]
        if not answers:
            raise self.unanswered(owner, f"{owner} asked for the fact {name!r} once more than it is recorded")
        return answers.popleft()

    async def sleep(self, seconds: float) -> None:
        """Return at once, because recorded waits need no time."""

    def of(self, owner: str) -> OwnerRecording:
        """Return an owner's recording."""
        found = self.recording.owners.get(owner)
        if found is None:
            raise self.unanswered(owner, f"{owner} is entered, which the recording does not hold")
        return found

    def declared(self, context: ToolContext, agent: AgentTool, then: AgentHeader) -> AgentHeader:
        """Return the header of an agent from code, with its hooks, and note differences of its code."""
        hooks = self.hooks[context.child_owner] = agent.hooks_below(self.hooks.get(context.owner))
        header = agent.declared(hooks)
        self.sources[context.child_owner] = header.sources
        return as_declared(header, then)

    def enters(self, owner: str) -> bool:
        """Return whether an agent runs again; if not, it is served as a whole."""
        return owner in self.recording.owners and owner not in self.races.inside

    def ended(self, owner: str, message: str) -> RecordingEndedError:
        """Return the error for an answer after the end of the recording."""
        self.after_end.append(owner)
        return RecordingEndedError(message)

    def unanswered(self, owner: str, message: str) -> PlayheadError:
        """Return the error for a missing answer: the recording ends before it, or the run differs."""
        if self.is_open or any(is_within(owner, each) for each in self.races.until):
            return self.ended(owner, f"{message}: the recording ends before that")
        return UnrecordedCallError(message)

    def _tool(self, spec: ToolSpec, given: Tool | None) -> Tool:
        return meta_tool(spec, given) if spec.kind == "meta" else FrozenTool(self, spec, given)


def as_declared(header: AgentHeader, then: AgentHeader) -> AgentHeader:
    """Return an agent's header as code declares it now; what is of the place where it ran, and no declaration, is as recorded."""
    prices = {(each.model, each.address): each.prices for each in then.fallbacks}
    known = ((each, prices.get((each.model, each.address))) for each in header.fallbacks)
    fallbacks = tuple(each.model_copy(update={"prices": price}) for each, price in known)
    return header.model_copy(update={"prices": then.prices, "address": then.address, "fallbacks": fallbacks})


class FrozenModel:
    """Gives the recorded answers of one owner, each to the request of its number."""

    def __init__(self, world: FrozenWorld, recorded: OwnerRecording, name: str) -> None:
        self.name = name
        self._world = world
        self._owner = recorded.owner
        self._exchanges = {(each.requested.request, each.requested.attempt): each for each in recorded.exchanges}
        self._prices = recorded.started.agent.prices if recorded.started else None
        self.secrets: Mapping[str, str] = {}

    async def prices(self) -> Prices | None:
        """Return the recorded prices."""
        return self._prices

    async def complete(self, request: Request) -> Completion:
        """Return the recorded answer, or raise the recorded failure; whether the request is the same is compared."""
        exchange = self._exchanges.pop((request.number, request.attempt), None)
        if exchange is None:
            raise self._world.unanswered(self._owner, f"{self._owner} asked the model once more than it is recorded")
        outcome = exchange.outcome
        if isinstance(outcome, LlmFailed) and not outcome.cancelled:
            raise _recorded_error(outcome)
        if not isinstance(outcome, LlmResponded):
            raise self._world.ended(self._owner, f"the recording ends while {self._owner} waits for the model")
        return Completion(**{name: getattr(outcome, name) for name in Completion.__slots__})


class FrozenTool:
    """Serves the recorded result of exactly this call, and enters agents; runs nothing else.

    The model, tools and facts of an agent that is entered are frozen in their turn.
    """

    def __init__(self, world: FrozenWorld, spec: ToolSpec, given: Tool | None = None) -> None:
        self.spec = spec
        self._world = world
        self._given = given if isinstance(given, AgentTool) else None

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | Outcome | None:
        """Return the recorded refusal, if the call was refused, or what a replay answered without asking or entering anybody."""
        world = self._world
        problem = check_agent_call(self.spec.name, arguments, context) if self.spec.kind == "agent" else None
        if problem is not None or world.enters(context.child_owner):
            return problem
        call = self.recorded(arguments, context)
        if (context.owner, context.call_id) in world.approvals:
            return None
        if call.completed is not None and call.completed.ended == "refused":
            return call.completed.error
        return self.outcome(call, context) if self.spec.requires_approval else None

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Return the recorded result, or run the agent's loop again on what was recorded of it."""
        if self._world.enters(context.child_owner):
            return await self._enter(arguments, context)
        await checkpoint()  # so that calls which the kernel lets run beside each other are seen to
        for event in self._world.inside[context.child_owner]:
            context.session.bill(event)
        return self.outcome(self.recorded(arguments, context), context)

    def outcome(self, call: RecordedCall, context: ToolContext) -> Outcome:
        """Return how the recorded call ended.

        Raises:
            RecordingEndedError: the recording ends before it did.
        """
        done = call.completed
        if done is None or done.ended == "cancelled":
            raise self._world.ended(context.owner, f"the recording ends while {context.owner} waits for {context.tool}")
        return Outcome(done.ok, done.result, done.error, done.cached, done.abandoned, done.ended)

    def recorded(self, arguments: dict[str, JsonValue], context: ToolContext) -> RecordedCall:
        """Return the recorded call: the same owner, turn, place, tool and arguments.

        Raises:
            UnrecordedCallError: there is none; the message names the nearest and what differs.
            RecordingEndedError: the recording ends before it.
        """
        call = self._world.calls.get((context.owner, context.iteration, context.position))
        if call is not None and (call.started.tool, call.started.args_hash) == (context.tool, context.args_hash):
            return call
        calls = self._world.of(context.owner).calls.values()
        raise self._world.unanswered(context.owner, describe_miss(context, arguments, calls))

    async def _enter(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        self.recorded(arguments, context)
        recorded, given = self._world.of(context.child_owner), self._given
        if recorded.started is None:
            raise NotReplayableError(f"the recording does not say what agent {context.child_owner} is")
        then = recorded.started.agent
        header = then if given is None else self._world.declared(context, given, then)
        model = self._world.answers_of(context.child_owner, header.model)
        return await AgentTool(header, model, {} if given is None else given.tools).run(arguments, context)


def _recorded_error(failed: LlmFailed) -> PlayheadError:
    """Return the recorded failure as the error that it was: of the same name, as likely to pass, and as expensive."""
    name, message = failed.error.type, failed.error.message
    known: Any = getattr(errors, name, None)
    is_known = isinstance(known, type) and issubclass(known, PlayheadError)
    if not is_known or (issubclass(known, ModelError) and known.retryable) != failed.retryable:
        name = name if name.isidentifier() else "ModelError"
        known = type(name, (ModelError,), {"retryable": failed.retryable})
    error: Any = known(message)
    error.retry_after_s = failed.retry_after_s
    error.usage, error.cost_usd = failed.usage, failed.cost_usd
    return error  # type: ignore[no-any-return]
