"""A frozen prefix, then the live world: the recording of an interrupted run is served, and then the run continues.

Nothing is live before all recorded events of every agent have recurred. Only then is it certain that the code matches the
recording and that the killswitches have counted all spending. The takeover gives all agents their own model, tools and
killswitches at once, and is recorded in the trace.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio

from playhead.compose.rebuilding import joined
from playhead.compose.runtime import ComposedHooks
from playhead.diagnose.divergence import call_of
from playhead.diagnose.parts import short
from playhead.errors import DivergedError, TraceWriteError
from playhead.kernel.guards import fire, own_guards
from playhead.kernel.lifecycle.threads import running_loop
from playhead.kernel.session import Guard, Hooks, Session, Tool, ToolContext, World
from playhead.replay.calls import facts_of, meta_tool
from playhead.replay.divergence import Divergence, divergence_of, divergences_of
from playhead.replay.frozen import FrozenModel, FrozenTool, FrozenWorld
from playhead.replay.prefix import TOLD, Prefix
from playhead.replay.reproduction import Follower
from playhead.replay.serving import KEPT
from playhead.replay.steered import RecordedHooks
from playhead.trace import events as e
from playhead.trace.header import AgentHeader, HookInfo
from playhead.trace.owners import parent_of
from playhead.trace.parameters import without_fingerprints
from playhead.trace.values import JsonValue, content_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from playhead.diagnose.recording import OwnerRecording
    from playhead.kernel.hooks import HookReply, PhaseName, Timing, Unmet
    from playhead.kernel.models.base import Model
    from playhead.kernel.outcome import Outcome
    from playhead.kernel.ports import Fallbacks
    from playhead.kernel.state import KernelState, PlannedCall
    from playhead.replay.redacted import Rebinding
    from playhead.trace.line import Record
    from playhead.trace.types import Completion, FallbackInfo, Request, ToolSpec


LIMITS: Final = frozenset({
    "address", "fallbacks", "hooks", "max_iterations", "max_parallel", "max_retries", "prices", "retry_delay_s", "sources",
})  # fmt: skip
"""Fields of an agent that may differ on resuming, because they are not part of requests."""
PATIENCE_S: Final = 30.0
"""Seconds without an event after which the rest of the prefix counts as missing."""


class PrefixFollower(Follower):
    """Compares a run with its recorded prefix, until the prefix ends."""

    def __init__(self, prefix: Prefix) -> None:
        super().__init__(prefix.recording, prefix.races, open_ended=True)
        self._prefix = prefix
        records = prefix.recording.records
        self._told = {(record.owner, call_of(record.event)) for record in records if record.seq == TOLD}
        given = (record for record in records if self.is_given(record) and self.comparison.is_comparable(record))
        self.left = Counter([*(record.owner for record in given), *(owner for owner, _ in self._told)])
        """The number of each agent's events that have not recurred yet."""
        self._waiting: list[Callable[[], object]] = []

    def __call__(self, record: Record) -> None:
        """Compare the next event, and wake the waiting tasks."""
        super().__call__(record)
        waiting, self._waiting = self._waiting, []
        for wake in waiting:
            wake()

    async def all_come(self, session: Session | None) -> None:
        """Wait until the whole prefix has recurred. If the agent ends meanwhile, the waiting work does not begin.

        Raises:
            RunEndedError: the agent has ended meanwhile.
            DivergedError: the code behaves differently from the recording.
        """
        while True:
            self.require_same()
            if session is not None:
                session.require_running()
            left = ", ".join(f"{count} of {owner}" for owner, count in self.left.items() if count)
            if not left:
                return
            next_event = anyio.Event()
            self._waiting.append(partial(running_loop().call_soon_threadsafe, next_event.set))
            with anyio.move_on_after(PATIENCE_S) as silence:
                await next_event.wait()
            if silence.cancelled_caught:
                raise DivergedError(f"the recorded events do not all come again with this code: {left} are missing")

    def require_same(self, *, complete: bool = False) -> None:
        """Raise for the first event that differs from the recording; with `complete`, also for a missing event.

        Raises:
            DivergedError: an event differs or is missing.
        """
        if self.error is not None:
            raise self.error
        parting = self.comparison.first
        found = None if parting is None else divergence_of(parting)
        if found is None and complete:
            found = next(iter(divergences_of(self.comparison, cut_short=True)), None)
        if found is not None:
            raise DivergedError(_explained(self._prefix, found))

    def is_given(self, record: Record) -> bool:
        """Return whether a recorded event must recur. A call's end that the caller stated is only awaited."""
        return record.seq != TOLD and super().is_given(record)

    def compared(self, record: Record) -> Record:
        """Return a record without limits, which may differ, and the values of parameters, such as a new token."""
        event: e.EventBase = record.event
        if isinstance(event, e.LlmRequested):
            event = event.model_copy(update={"parameters": without_fingerprints(event.parameters)})
        elif isinstance(event, (e.RunStarted, e.AgentStarted)):
            event = event.model_copy(update={"agent": _without_limits(event.agent)})
        return record if event is record.event else record._replace(event=event)

    def hear(self, record: Record) -> None:
        """Compare the next event, and count it."""
        event = record.event
        is_told = isinstance(event, e.ToolCallCompleted) and (record.owner, event.call_id) in self._told
        if self.comparison.add(self.compared(record)) or is_told:
            self.left[record.owner] -= 1


def _without_limits(header: AgentHeader) -> AgentHeader:
    limits = {name: AgentHeader.model_fields[name].get_default(call_default_factory=True) for name in LIMITS}
    return header.model_copy(update={**limits, "parameters": without_fingerprints(header.parameters)})


def _explained(prefix: Prefix, found: Divergence) -> str:
    """Return the reason why a run cannot continue from where the recorded one stopped."""
    line = "" if found.seq is None else f" (line {prefix.lines.get(found.seq, found.seq + 1)} of the trace)"
    recorded, now = (short(repr(each)) for each in (found.expected, found.actual))
    what = f"{found.owner}, {found.where}{line}: {found.what}; recorded {recorded}, now {now}"
    why = "cannot be resumed with this code, which does something else than was recorded"
    return f"{prefix.recording.run_id} {why}: {what}. Nothing was run. Resume with the agent and settings of then"


@dataclass
class _Agent:
    """An agent of the prefix, and what it receives at the takeover."""

    session: Session
    tools: dict[str, Tool] = field(default_factory=dict)
    makers: Sequence[Callable[[Session], Guard]] = ()
    models: list[Model] = field(default_factory=list)
    """Its model and fallback models."""


class PrefixWorld(FrozenWorld):
    """Serves the prefix of a recording; after it, the live world answers at the ports."""

    def __init__(self, prefix: Prefix, rebinding: Rebinding) -> None:
        super().__init__(rebinding.restored_recording(prefix.recording), tools_from_code=True)
        self.prefix = prefix
        self.follower = PrefixFollower(prefix)
        self.is_live = False
        """Whether the takeover has happened."""
        self._facts = facts_of(rebinding.restored_recording(prefix.whole))  # the approval of an open call stays valid
        self._agents: dict[str, _Agent] = {}
        ends = ((record, _end_of(record.event)) for record in prefix.recording.records)
        self.ends = {(record.owner, end): None if record.seq == TOLD else record.seq for record, end in ends if end}
        """The answers to requests and calls, and the killswitches that prevented them, with their `seq`."""

    # --- the ports of the prefix --------------------------------------------------------------------------------------

    def hooks_for(self, session: Session, hooks: Hooks | None) -> Hooks | None:
        """Return the recorded effects of hooks, then the hooks themselves. Policies are called from the start."""
        live = getattr(hooks, "live", hooks)
        if self.is_live:
            return live
        self._agents[session.owner] = _Agent(session)
        own, policies = live.parted() if isinstance(live, ComposedHooks) else (live, None)
        first = PrefixHooks(self, self.of(session.owner), own)
        return joined(None if first.idle and own is None else first, policies, live)

    def tools_for(self, owner: str, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Return an agent's tools; functions give their recorded answers."""
        if self.is_live:
            return tools
        self._agents[owner].tools = tools
        return super().tools_for(owner, tools)

    def guards_for(self, session: Session, makers: Sequence[Callable[[Session], Guard]]) -> tuple[Guard, ...]:
        """Return the recorded effects of killswitches; the switches themselves guard from the takeover on."""
        if self.is_live:
            return World.guards_for(self, session, makers)
        self._agents[session.owner].makers = makers
        return (*super().guards_for(session, ()), PrefixGate(session, self))

    def model_for(self, owner: str, model: Model) -> Model:
        """Return the recorded answers of an agent."""
        if self.is_live:
            return model
        self._agents[owner].models = [model]
        return super().model_for(owner, model)

    def fallbacks_for(self, owner: str, infos: Sequence[FallbackInfo], models: Sequence[Model]) -> Fallbacks:
        """Return the recorded answers of an agent's fallback models."""
        if self.is_live:
            return World.fallbacks_for(self, owner, infos, models)
        self._agents[owner].models += models
        return super().fallbacks_for(owner, infos, models)

    def answers_of(self, owner: str, name: str) -> FrozenModel:
        """Return the recorded answers of an agent, marked as served."""
        return PrefixModel(self, self.of(owner), name)

    def _tool(self, spec: ToolSpec, given: Tool | None) -> Tool:
        return meta_tool(spec, given) if spec.kind == "meta" else PrefixTool(self, spec, given)

    async def fact(self, owner: str, name: str, key: str, answer: Callable[[], Any]) -> JsonValue:
        """Return the next recorded answer to this question; after the last one, ask."""
        answers = self._facts[owner, name, key] if self.prefix.frozen(owner) is not None else None
        if answers:
            return answers.popleft()
        await self.take_over(owner)
        return await World.fact(self, owner, name, key, answer)

    async def sleep(self, seconds: float) -> None:
        """Wait, unless the wait is in the recording."""
        if self.is_live:
            await World.sleep(self, seconds)

    # --- the takeover -------------------------------------------------------------------------------------------------

    async def take_over(self, owner: str, *, ended: bool = False) -> None:
        """Wait until the whole prefix has recurred; then the run is live.

        If the agent ends while something waits here, that does not begin, unless it comes after the end (`ended`).

        Raises:
            RunEndedError: the agent has ended meanwhile.
            DivergedError: the code behaves differently from the recording.
            TraceWriteError: the takeover cannot be recorded, which a later resumption requires.
        """
        agent, recorded = self._agents.get(owner), self.prefix.frozen(owner)
        if not self.is_live:
            await self.follower.all_come(None if ended or agent is None else agent.session)
            if not self.is_live:
                self._hand_over()
        if agent is not None and not ended:
            agent.session.require_running()
        if recorded is not None and recorded.completed is not None:
            raise DivergedError(f"{owner} goes on, which had ended when {self.prefix.recording.run_id} was recorded")

    def _hand_over(self) -> None:
        self.is_live = True
        root, run_id = self._agents["root"].session, self.prefix.recording.run_id
        mark = e.RunResumed(reason=f"caught up with {run_id}; from here on it is live", caught_up_with=run_id)
        if not root.run.recorder.emit(mark, root.owner):
            raise TraceWriteError("the event that says from where on this run is live cannot be written; it stops here")
        for agent in self._agents.values():  # those above come first
            session, fallbacks = agent.session, agent.session.model.fallbacks
            session.gate.post(World.guards_for(self, session, agent.makers))
            adapter, *others = agent.models[-1 - len(fallbacks) :]
            live = [(info, each) for (info, _), each in zip(fallbacks, others, strict=True)]
            session.model.answer_with(adapter, live)
            session.toolset.update(agent.tools)
        self._recall()
        for agent in self._agents.values():
            for guard in [] if agent.session.ended else own_guards(agent.session):
                guard.start()

    def _recall(self) -> None:
        """Let the live killswitches count recorded spending, calls and failures, including open ones."""
        prefix, reserved = self.prefix, dict[tuple[str, int, int], e.BudgetReserved]()
        told: list[tuple[str, e.EventBase, e.BudgetReserved | None]] = []
        for record in prefix.whole.records:
            match record.event:
                case e.BudgetReserved() as event:
                    reserved.setdefault((record.owner, event.request, event.attempt), event)
                case e.LlmResponded() | e.LlmFailed() as event:
                    told.append((record.owner, event, reserved.get((record.owner, event.request, event.attempt))))
                case e.ToolCallCompleted() as event:
                    told.append((record.owner, event, None))
        told += [(owner, each, each) for owner, each in prefix.set_aside]
        last = prefix.whole.records[-1].event
        for owner, each, set_aside in told:
            session = self.agent_of(owner)
            for guard in session.gate.guards:
                answer = guard.recall(session, each, set_aside)
                if answer is None or each is not last:
                    continue
                if isinstance(last, e.ToolCallCompleted):  # the run died before the switch could fire
                    fire(guard, session, answer, "result", call_id=last.call_id)
                else:
                    fire(guard, session, answer, "response", **last.model_dump(include={"request", "attempt"}))

    def agent_of(self, owner: str) -> Session:
        """Return the owner's agent or, for a tool's body, the agent that called it."""
        while owner not in self._agents:
            owner = parent_of(owner)
        return self._agents[owner].session

    # --- what is served -----------------------------------------------------------------------------------------------

    def note(self, session: Session, key: tuple[Any, ...], **served: Any) -> None:  # noqa: ANN401 - of `ReplayServed`
        """Record that an answer was served."""
        session.emit(e.ReplayServed(source_seq=self.ends.get((session.owner, key)), **served))


class PrefixGate(Guard):
    """Holds requests and calls that the prefix does not answer until the takeover, then prepares the killswitches."""

    name = "prefix"

    def __init__(self, session: Session, world: PrefixWorld) -> None:
        super().__init__(session)
        self._world = world

    async def measure(self, session: Session, request: Request) -> None:
        """Wait before a request that has no recorded answer."""
        if (session.owner, ("request", request.number, request.attempt)) not in self._world.ends:
            await self._world.take_over(session.owner)
            for guard in session.gate.guards:
                await guard.measure(session, request)

    async def before_call(self, session: Session, planned: PlannedCall) -> None:
        """Wait before a call that is not in the prefix."""
        recorded = self._world.prefix.frozen(session.owner)
        if recorded is None or planned.call.id not in recorded.calls:
            await self._world.take_over(session.owner)
            for guard in session.gate.guards:
                await guard.before_call(session, planned)


class PrefixHooks(RecordedHooks):
    """An agent's recorded hook effects during the prefix, and its own hooks after it.

    Hooks have lost their memory of the interrupted run. They do not see its payloads a second time, because a hook may
    have written them somewhere.
    """

    def __init__(self, world: PrefixWorld, recorded: OwnerRecording, live: Hooks | None) -> None:
        super().__init__(recorded)
        self.live = live
        self._then = live or Hooks()
        self._world = world

    def info(self) -> tuple[HookInfo, ...]:
        """Return the currently registered hooks."""
        return self._then.info()

    def below(self, own: Hooks | None) -> Hooks | None:
        """Return the hooks of an agent that is called by this one."""
        return self._then.below(own)

    def seeds(self) -> tuple[tuple[str, Any], ...]:
        """Return the emissions at the start, from the code; recorded ones are served."""
        return super().seeds() if self.live is None else self.live.seeds()

    def wants(self, tag: str) -> bool:
        """Return whether a live hook listens, or a recorded one had an effect."""
        return super().wants(tag) or self._then.wants(tag)

    async def offer(self, session: Session, tag: str, payload: Any, key: str, details: Mapping[str, Any]) -> Any:  # noqa: ANN401 - as in `Hooks`
        """Return the payload as changed by recorded or live hooks."""
        looked_at = tag in BEFORE_CALLS and (session.owner, key) in self._world.prefix.open_calls
        if looked_at or not await self._is_over(session):
            return await super().offer(session, tag, payload, key, details)
        return await self._then.offer(session, tag, payload, key, details) if self._then.wants(tag) else payload

    def unmet(self, session: Session) -> tuple[Unmet, ...]:
        """Return the blocks' current requirements; earlier ones are not recorded."""
        return self._then.unmet(session)

    def at_phase(self, phase: PhaseName) -> bool:
        """Return whether a live or recorded hook is called at this phase."""
        return super().at_phase(phase) or self._then.at_phase(phase)

    async def ask(
        self, session: Session, phase: PhaseName, timing: Timing, state: KernelState, error: Exception | None = None
    ) -> HookReply | None:
        """Return the recorded or the live answer at this phase."""
        if await self._is_over(session):
            return await self._then.ask(session, phase, timing, state, error)
        return await super().ask(session, phase, timing, state, error)

    async def _is_over(self, session: Session) -> bool:
        over = not self._world.follower.left[session.owner]
        if over and self.live is not None:
            await self._world.take_over(session.owner, ended=True)
        return over


BEFORE_CALLS: Final = frozenset({"tool.call", "decision.rationale"})
"""Tags at which hooks see a call before it starts."""


class PrefixModel(FrozenModel):
    """The recorded answers of an agent. Each is marked as served."""

    _world: PrefixWorld

    async def complete(self, request: Request) -> Completion:
        """Return the recorded answer, or raise the recorded failure."""
        world, at = self._world, {"request": request.number, "attempt": request.attempt}
        world.note(world.agent_of(self._owner), ("request", *at.values()), rung="exact", **at)
        return await super().complete(request)


class PrefixTool(FrozenTool):
    """A tool that gives its recorded answers, marked as served. An agent of the prefix continues where it stopped."""

    _world: PrefixWorld

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Return the recorded result."""
        world, outcome = self._world, await super().run(arguments, context)
        if world.enters(context.child_owner):
            return outcome
        call = self.recorded(arguments, context)
        kept = call.completed.rung if call.completed is not None and call.completed.rung in KEPT else "exact"
        world.note(context.session, ("call", context.call_id, 0), call_id=context.call_id, rung=kept)
        for record in world.prefix.body_of(context.owner, call):  # the events of its body are part of this run, too
            context.session.run.recorder.emit(record.event, record.owner, record.iteration)
        if self.spec.cache and outcome.ok and not outcome.cached:
            began = next(record.ts for record in world.prefix.recording.records if record.seq == call.seq)
            context.cache[self.spec.name, content_hash(arguments)] = outcome, began
        return replace(outcome, rung=kept)

    async def _enter(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        assert self._given is not None  # noqa: S101 - the agent from code has it, or the runs differ
        return await self._given.run(arguments, context)


def _end_of(event: e.EventBase) -> tuple[str, Any, Any] | None:
    """Return the request or call that an event ends or prevents."""
    match event:
        case e.LlmFailed() | e.LlmResponded() | e.KillswitchFired(at="request"):
            return "request", event.request, event.attempt
    return ("call", event.call_id, 0) if isinstance(event, e.ToolCallCompleted) else None
