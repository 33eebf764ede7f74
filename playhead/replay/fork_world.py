"""The world of a fork: a recording up to a turn, and from that turn on a replay of it.

Until the turn everything is frozen: the model gives its recorded answers, and each event has to recur. At the first request or
event of the turn the world becomes that of a replay, with its overrides, and not before.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast

from playhead.agent.toolset import address_of
from playhead.diagnose.diff_values import same
from playhead.errors import DivergedError, UnrecordedCallError
from playhead.kernel.agent_tool import AgentTool, prices_of
from playhead.kernel.guards import own_guards
from playhead.kernel.hooks import HookReply, PhaseName, SwitchTo, Timing
from playhead.kernel.prompts import system_prompt
from playhead.kernel.session import Guard, Hooks, Session, Tool, ToolContext
from playhead.replay.divergence import divergences_of
from playhead.replay.engine import ReplayTool, ReplayWorld
from playhead.replay.frozen import FrozenTool, FrozenWorld, as_declared
from playhead.replay.overrides import changed_tools
from playhead.replay.reproduction import Follower
from playhead.trace.events import ToolCallCompleted
from playhead.trace.types import Completion, FallbackInfo, Message, Prices, Request, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from playhead.compose.harness import Harness
    from playhead.kernel.models.base import Model
    from playhead.kernel.outcome import Outcome
    from playhead.kernel.ports import Fallbacks
    from playhead.kernel.state import KernelState
    from playhead.replay.plan import Plan
    from playhead.trace.header import AgentHeader
    from playhead.trace.line import Record
    from playhead.trace.values import JsonValue


@dataclass(frozen=True)
class Fork:
    """Where a run is forked, and what is changed there."""

    at: int
    """The first turn of the root that is not frozen, from 0."""
    cut: int
    """`seq` of the first event of this turn."""
    answer: Completion | None
    """What the model answers to the first request of the turn, instead of being asked."""
    edits: Mapping[int, str]
    """New texts of messages that stand before the turn, by the message's id."""
    is_recorded: bool
    """Whether the recorded answers are served from the turn on, too."""


class ForkWorld(ReplayWorld):
    """Serves a recording as it was up to a turn, and then to a replay."""

    mode = "fork"

    def __init__(self, plan: Plan, fork: Fork, said: dict[str, JsonValue]) -> None:
        """Serve a recording. `said` is what the run's header says of the changes."""
        super().__init__(plan)
        self.changes = said
        self.is_live = False
        """Whether the turn has begun."""
        self.at = fork
        whole = plan.recording
        before = replace(whole, records=tuple(record for record in whole.records if record.seq < fork.cut))
        self.recorded = FrozenWorld(plan.rebinding.restored_recording(whole), tools_from_code=self._has_code)
        self._prefix, self._same = (Follower(each, self.recorded.races, open_ended=True) for each in (before, whole))
        self.first_request = 1 + max((each.requested.request for each in before.root.exchanges), default=-1)
        """The root's first request that is not frozen."""
        self._answers = cache(self.recorded.answers_of)
        self._root: tuple[Session, Sequence[Callable[[Session], Guard]]] | None = None
        self._error: DivergedError | None = None
        self._prices: Prices | None = None
        self._unused: dict[int | None, str] = {number: f"the edit of message {number}" for number in fork.edits}
        self._prompts: tuple[str, str] | None = None
        """The recorded system message and the new one, if it changes."""
        if plan.overrides.system_prompt is not None:
            self._unused[None] = "system_prompt"
            specs = self.specs("root", {} if plan.agent is None else plan.agent.tools)
            has_tools = any(spec.kind != "meta" for spec in specs)
            old, new = (system_prompt(each, has_tools=has_tools) for each in (plan.cast.root_header, plan.header))
            self._prompts = old, new
        self.successor = plan.overrides.strategy
        """The strategy that is to take over."""
        self.answers.results, self.answers.on_missing = (), {}

    async def header(self) -> AgentHeader:
        """Return the recorded header; that of the replay holds from the turn on."""
        self._prices = await prices_of(self._plan.cast.root_model)
        return as_declared(self._plan.cast.root_header, self._plan.recording.header.agent)

    def hear(self, record: Record) -> None:
        """Compare an event with the recorded one; the first of the turn makes the world that of a replay."""
        self._prefix(record)
        self._same(record)
        if record.owner == "root" and record.iteration == self.at.at:
            self.take_over()

    def take_over(self) -> None:
        """Begin the replay, if everything before it has recurred."""
        if self.is_live or self._root is None:
            return
        self.is_live = True
        plan, (session, makers) = self._plan, self._root
        found = next(iter(divergences_of(self._prefix.comparison, cut_short=True)), None)
        if found is not None or self._prefix.error is not None:
            what = self._prefix.error if found is None else f"{found.owner}, {found.where}: {found.what}"
            self._error = DivergedError(f"the events before turn {self.at.at} do not come again: {what}")
            return
        self.answers.results, self.answers.on_missing = plan.overrides.of_calls, plan.on_missing
        model = plan.cast.root_model
        if not self.at.is_recorded:
            session.declare(model=model.name, address=address_of(model), prices=self._prices)
            session.model.answer_with(session.model.adapter, [])
        session.declare(max_iterations=plan.header.max_iterations)
        for name in [name for name, patch in plan.overrides.tools.items() if patch is None and name in session.toolset]:
            del session.toolset[name]
        session.gate.post(ReplayWorld.guards_for(self, session, makers))
        for record in plan.recording.root.records:
            if record.seq < self.at.cut and isinstance(record.event, ToolCallCompleted):
                for guard in session.gate.guards:
                    guard.recall(session, record.event, None)
        for guard in own_guards(session):
            guard.start()

    def stopped(self, why: str | None) -> str | None:
        """Return why nothing can be said, once the run has ended."""
        here = f"from turn {self.at.at} on"
        if not self.is_live:
            return f"the run ended before turn {self.at.at}{f': {why}' if why else ''}"
        for what in self._unused.values():
            self.notes.append(f"{what} was not used: no request {here} holds the recorded text")
        if self.successor is not None:
            self.notes.append(f"the recorded strategy has no turn {here} in which another could take over")
        return why if self._error is None else str(self._error)

    # --- the ports ----------------------------------------------------------------------------------------------------

    @property
    def frozen(self) -> FrozenWorld | None:
        """What answers models at this moment; None if they are live."""
        return self.recorded if self.at.is_recorded or not self.is_live else None

    def model_for(self, owner: str, model: Model) -> Model:
        """Return the recorded answers before the turn, and the live model after it."""
        return GivenModel(model.name, partial(self.complete, owner, model))

    def fallbacks_for(self, owner: str, infos: Sequence[FallbackInfo], models: Sequence[Model]) -> Fallbacks:
        """Return the recorded answers of fallback models; a live model has no fallback."""
        if self.frozen is None:
            return super().fallbacks_for(owner, infos, models)
        return [(info, self.model_for(owner, GivenModel(info.model))) for info in infos]

    def given(self, owner: str) -> Harness | None:
        """Return the hooks and killswitches that the overrides give an agent, from the turn on."""
        return super().given(owner) if self.is_live else None

    def hooks_for(self, session: Session, hooks: Hooks | None) -> Hooks | None:
        """Return the hooks of a replay; those of the root also change its requests from the turn on."""
        is_frozen = not (self.is_live or self._has_code)
        found = self.recorded.hooks_for(session, hooks) if is_frozen else super().hooks_for(session, hooks)
        return cast("Hooks", ForkHooks(self, found or Hooks())) if session.owner == "root" else found

    def guards_for(self, session: Session, makers: Sequence[Callable[[Session], Guard]]) -> tuple[Guard, ...]:
        """Return the recorded effects of killswitches before the turn."""
        if session.owner == "root":
            self._root = session, makers
        return super().guards_for(session, makers) if self.is_live else self.recorded.guards_for(session, ())

    def offered(self, owner: str, tools: Mapping[str, Tool]) -> list[ToolSpec]:
        """Return the recorded tools of what began before the turn: the requests after it have the changed ones."""
        return super().offered(owner, tools) if self.is_live and owner != "root" else self.specs(owner, tools)

    def _tool(self, spec: ToolSpec, given: Tool | None) -> Tool:
        return super()._tool(spec, given) if spec.kind == "meta" else ForkTool(self, spec, given)

    async def sleep(self, seconds: float) -> None:
        """Wait, unless the wait is in the recording."""
        if self.is_live:
            await super().sleep(seconds)

    async def complete(self, owner: str, live: Model, request: Request) -> Completion:
        """Return the answer to a request: the recorded one, the caller's, or the live model's.

        Raises:
            DivergedError, UnrecordedCallError: the events before the turn have not recurred, or there is no recorded answer.
        """
        if self._error is not None:
            raise self._error
        differs = self._same.error is not None or self._same.comparison.first is not None
        given = self.at.answer if owner == "root" and request.number == self.first_request else None
        if given is not None and (differs or not self.at.is_recorded or not self._is_recorded(given)):
            return given
        if self.frozen is None:
            return await live.complete(request)
        if self.is_live and differs:
            why = "asks the model what it was not asked in the recording"
            raise UnrecordedCallError(f"{owner} {why}; name the model that is to answer from there on (model=)")
        return await self._answers(owner, request.model).complete(request)

    def _is_recorded(self, given: Completion) -> bool:
        """Return whether the caller's answer is the recorded one, which has more than a caller can give: ids, usage, a time."""
        known = self.recorded.recording.root.responses.get(self.first_request)
        if known is None or given.text not in (known.text, "" if given.tool_calls else known.text):
            return False
        return same(*([(call.name, call.arguments) for call in each.tool_calls] for each in (given, known)))

    def changed(self, request: Request) -> Request:
        """Return a request of the root as the overrides and edits change it."""
        plan = self._plan
        model = request.model if self.at.is_recorded else plan.cast.root_model.name
        parameters = plan.overrides.applied_to(request.parameters)
        messages = tuple(map(self._edited, request.messages))
        tools = tuple(changed_tools(plan.overrides, request.tools))
        return replace(request, model=model, parameters=parameters, tools=tools, messages=messages)

    def _edited(self, message: Message) -> Message:
        """Return a message with its new text, or with the new system prompt in place of the recorded one."""
        text = self.at.edits.get(message.id)
        if text is not None:
            self._unused.pop(message.id, None)
            return message.model_copy(update={"content": text})
        if self._prompts and message.role == "system" and self._prompts[0] in message.content:
            self._unused.pop(None, None)
            return message.model_copy(update={"content": str(message.content).replace(*self._prompts)})
        return message


async def _refuse(request: Request) -> Completion:
    raise UnrecordedCallError(f"the recording has no answer of {request.model} to request {request.number}")


@dataclass
class GivenModel:
    """A model whose requests a function answers; without a function, it has no answer."""

    name: str
    complete: Callable[[Request], Coroutine[Any, Any, Completion]] = _refuse
    secrets: Mapping[str, str] = field(default_factory=dict)

    async def prices(self) -> None:
        """Return no prices."""


class ForkTool(ReplayTool):
    """A tool of a fork: an agent that was entered before the turn is frozen."""

    _world: ForkWorld

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Return the chosen answer, or enter the agent, frozen or live."""
        frozen = self._world.frozen
        if self.spec.kind != "agent" or frozen is None or context.child_owner not in frozen.recording.owners:
            for event in [] if self._world.is_live else self._world.recorded.inside[context.child_owner]:
                context.session.bill(event)
            return await super().run(arguments, context)
        self._world.answers.decided(context.owner, context.call_id)
        started, code = frozen.recording.owners[context.child_owner].started, self._given
        if isinstance(code, AgentTool) and started is not None and frozen.enters(context.child_owner):  # with its hooks
            header = as_declared(code.header, started.agent)
            model = frozen.answers_of(context.child_owner, header.model)
            entered = AgentTool(header, model, code.tools, hooks=code.hooks, guards=code.guards)
            return await entered.run(arguments, context)
        return await FrozenTool(frozen, self.spec, self._given).run(arguments, context)


class ForkHooks:
    """The root's hooks, from the turn on those of the overrides, and after them the changes of its requests."""

    def __init__(self, world: ForkWorld, inner: Hooks) -> None:
        self._world = world
        self._before = inner

    @property
    def _inner(self) -> Hooks:
        given = self._world.given("root")
        return self._before if given is None else given.hooks() or Hooks()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method of `Hooks`
        """Return a method of the hooks that hold now."""
        return getattr(self._inner, name)

    def wants(self, tag: str) -> bool:
        """Return whether a hook is registered, or requests are changed."""
        return tag == "llm.request" or self._inner.wants(tag)

    def at_phase(self, phase: PhaseName) -> bool:
        """Return whether a hook is registered for this phase, or the strategy is to hand over in it."""
        return (phase == "think" and self._world.successor is not None) or self._inner.at_phase(phase)

    async def ask(
        self, session: Session, phase: PhaseName, timing: Timing, state: KernelState, error: Exception | None = None
    ) -> HookReply | None:
        """Return the first answer of the hooks; at the turn, that another strategy takes over."""
        if (phase, timing) == ("think", "before") and state.iteration >= self._world.at.at:
            self._world.take_over()
        successor = self._world.successor if self._world.is_live else None
        if successor is None or (phase, timing) != ("think", "before"):
            return await self._inner.ask(session, phase, timing, state, error)
        self._world.successor = None
        return HookReply("fork", SwitchTo(successor, "the fork gives the task to it"))

    async def offer(self, session: Session, tag: str, payload: Any, key: str, details: Mapping[str, Any]) -> Any:  # noqa: ANN401 - as in `Hooks`
        """Return the payload as the inner hooks changed it; a request of the turn or a later one as the fork changes it."""
        if tag == "llm.request" and int(key) >= self._world.first_request:
            self._world.take_over()
        if self._inner.wants(tag):
            payload = await self._inner.offer(session, tag, payload, key, details)
        return self._world.changed(payload) if self._world.is_live and isinstance(payload, Request) else payload
