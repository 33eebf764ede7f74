"""One agent in one run: who it is, the ports through which it reaches the world, where it stands, and the one way to end.

Everything a strategy learns comes through the ports, and the ports record. So a replay is this same session with other
things behind its ports. What hooks, killswitches, tools and worlds look like to a session stands here too, for each of
them is handed one; `playhead.kernel.opening` puts a session together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from playhead.kernel.copies import Copies
from playhead.kernel.emission import Emission, Records
from playhead.kernel.lifecycle.termination import Ending, Termination
from playhead.kernel.place import Conclusion, Place
from playhead.kernel.state import KernelState
from playhead.trace.events import FactRecorded, KernelStateSnapshot, KillswitchFired, ToolCallLate
from playhead.trace.owners import owner_inside
from playhead.trace.spending import Spent
from playhead.trace.types import made
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from playhead.kernel.approval import Approver
    from playhead.kernel.hooks import PhaseName, Refuse, Said, Stop, Terminate, Timing, Unmet, Wait
    from playhead.kernel.models.base import Model
    from playhead.kernel.outcome import Outcome
    from playhead.kernel.ports import ModelPort, ThreadPort, ToolPort
    from playhead.kernel.state import PlannedCall, Status
    from playhead.trace.control import Control
    from playhead.trace.events import BudgetReserved, ErrorInfo, EventBase, LlmRequested
    from playhead.trace.line import Record
    from playhead.trace.types import AgentHeader, Content, FallbackInfo, HookInfo, Request, ToolSpec
    from playhead.trace.values import JsonValue

GRACE_S: Final = 0.1
"""Seconds from being cancelled to being left behind."""


class Session(Emission):
    """One agent in one run. Strategies reach the world through `model`, `tools` and `facts`, and nothing else."""

    run: RunContext
    gate: Gate
    """Who may change or stop it."""
    parent: Session | None
    agent: Session
    """The agent that pays: this session, or for a tool's body the session that called it."""
    model: ModelPort
    tools: ToolPort
    facts: FactDoor
    messages: ThreadPort
    """The record of the thread."""

    def __init__(  # noqa: PLR0913 - who it is
        self,
        run: RunContext,
        header: AgentHeader,
        owner: str,
        *,
        parent: Session | None = None,
        payer: Session | None = None,
        for_tool: Callable[[Session, ToolContext], Session],
    ) -> None:
        """Begin without ports; `for_tool` opens the session under which a tool's body asks the model and calls tools."""
        self.run = run
        self.header = header
        self.owner = owner
        self.parent = parent
        self.agent = self if payer is None else payer
        self.at = Place(header.strategy)
        """Where its loop stands."""
        self.gate = Gate(approver=run.approver if parent is None else parent.gate.approver)
        self.toolset = Toolset()
        """The tools that there are, by name."""
        self.spent = Spent()
        """What this agent and those below it have spent, tools' own model calls included: all of it, at any moment."""
        self.ending = Ending(run.in_flight.lock)
        """How it ended, once it has."""
        self.for_tool = for_tool

    # --- where it stands --------------------------------------------------------------------------------------------

    @property
    def iteration(self) -> int | None:
        """Turn of the loop, from 0; None outside it."""
        return self.at.iteration

    @property
    def state(self) -> KernelState | None:
        """The state at the last step."""
        return self.at.state

    @property
    def task(self) -> Content:
        """The task as the model is told it."""
        return self.at.task

    @property
    def depth(self) -> int:
        """Agents above this one."""
        return 0 if self.parent is None else self.parent.depth + (self.agent is self)

    def reach(self, state: KernelState) -> KernelState:
        """Note a state as the newest, for tools of the kernel and hooks to read, and return it."""
        self.at.state = state
        return state

    def fall_back(self, info: FallbackInfo) -> None:
        """Let the header name the model that answers from now on."""
        update = {"model": info.model, "address": info.address, "prices": info.prices}
        self.header = self.header.model_copy(update=update)

    # --- what is recorded -------------------------------------------------------------------------------------------

    def snapshot(self, state: KernelState) -> KernelStateSnapshot:
        """Return where the loop stands."""
        ended = self.termination
        return KernelStateSnapshot(
            status=state.status,
            steps=len(state.steps),
            messages=len(state.thread.messages),
            usage=state.usage,
            cost_usd=state.cost_usd,
            terminated_by=ended.reason if ended else None,
            termination_rationale=ended.rationale if ended else None,
        )

    # --- what hooks may change -----------------------------------------------------------------------------------------

    async def offer(self, tag: str, payload: Any, *, key: str = "", **details: Any) -> Any:  # noqa: ANN401 - by tag
        """Return what the hooks make of a payload at a chokepoint, or SUPPRESS; without hooks the payload itself.

        `key` says which emission of the tag this is, where calls that run beside each other make them; else they count.

        Raises:
            RunEndedError: a hook that is required failed, and the run ended.
        """
        if self.gate.hooks is None:
            return payload
        if not key:
            key = self.gate.count(tag)
        if not self.gate.hooks.wants(tag):
            return payload
        return await self.gate.hooks.offer(self, tag, payload, key, details)

    async def fail(self, reason: str, message: str, *, attempt: int = 1, key: str = "") -> None:
        """Tell hooks of a failure that the run survives, or ends with."""
        self.gate.failures += 1
        if self.gate.hooks is None:
            return
        failure = {
            "reason": reason,
            "error_message": message,
            "attempt_number": attempt,
            "failure_streak": self.gate.failures,
            "current_strategy": self.header.strategy,
        }
        await self.offer("lifecycle.failure", failure, key=key)

    @property
    def unmet(self) -> tuple[Unmet, ...]:
        """What blocks still require before an answer may stand."""
        return () if self.gate.hooks is None else self.gate.hooks.unmet(self)

    # --- what is offered ----------------------------------------------------------------------------------------------

    def offered_specs(self) -> dict[str, ToolSpec]:
        """Return the tools that the loop that runs may use, by name."""
        return {name: tool.spec for name, tool in self.toolset.items() if self.offers(name)}

    # --- the end ----------------------------------------------------------------------------------------------------

    def conclude(self, reason: str, output: JsonValue = None, *, answer: dict[str, Any] | None = None) -> None:
        """End the loop that runs: the pass, where a strategy runs one, else the agent."""
        if self.at.inner is None:
            self.terminate(reason, output, answer=answer or {})
        elif self.at.inner.conclusion is None:
            self.at.inner.conclusion = Conclusion(reason, output, answer or {})

    @property
    def concluded(self) -> bool:
        """Whether the loop that runs is over: its pass has its answer, or the agent has ended."""
        return self.ended or (self.at.inner is not None and self.at.inner.conclusion is not None)

    def offers(self, tool: str) -> bool:
        """Return whether the loop that runs may use this tool."""
        if tool in self.toolset.hidden:
            return False
        return self.at.inner is None or self.at.inner.tools is None or tool in self.at.inner.tools

    def withhold(self, source: str, error: str) -> None:
        """End as failed and without an output, however it ended before: what has to look at it has failed."""
        self.ending.withhold("hook_failed", source, error)
        if self.agent is not self:  # a tool's body is part of the agent that called it
            self.agent.withhold(source, error)

    def interrupt(
        self, termination: Termination, switch: KillswitchFired | None = None, grace_s: float = GRACE_S
    ) -> bool:
        """End this agent from outside of its loop, from any thread; what it waits for is cancelled or left behind.

        The first cause stands here too, but for an answer that hooks still look at.
        """
        interrupt = partial(self.ending.interrupt, termination)
        won = interrupt() if switch is None else self.emit_ending(switch, interrupt)
        if self.ending.cancel is not None and not self.ending.closed:
            self.ending.cancel(grace_s)
        return won

    @property
    def cut_off(self) -> bool:
        """Whether this agent, or one that it works for, was ended from outside: what has begun does not go on, either."""
        return self.ending.interrupted or (self.parent is not None and self.parent.cut_off)


@dataclass
class Gate:
    """Who may change or stop an agent, and what is known of them."""

    hooks: Hooks | None = None
    """Who is asked at the chokepoints; None when nobody is."""
    guards: tuple[Guard, ...] = ()
    """The killswitches at the ports: those of the agents above first."""
    approver: Approver | None = None
    """Who is asked before a tool with `requires_approval` runs: this agent's own approver before its parent's."""
    copies: Copies = field(default_factory=Copies)
    """What hooks are given that may return it."""
    shown: Copies = field(default_factory=Copies)
    """What hooks are given that only look."""
    notes: dict[Any, Any] = field(default_factory=dict)
    """What hooks keep from one call to the next, in this run of this agent."""
    hook_failures: set[tuple[str, str]] = field(default_factory=set)
    """How often which hook failed, and where."""
    asking: tuple[str, str] | None = None
    """The hook that is asked at this moment, and where; while several are, the newest."""
    failures: int = 0
    """Calls that failed in a row, up to now."""
    rewritten: set[str | int] = field(default_factory=set)
    """Requests and calls whose recorded answer a hook changed before it was used."""
    _emissions: dict[str, int] = field(default_factory=dict)

    def post(self, guards: tuple[Guard, ...]) -> None:
        """Put these killswitches at the ports."""
        self.guards = guards

    def note_success(self) -> None:
        """End the row of failed calls."""
        self.failures = 0

    @contextmanager
    def ask(self, hook: str, where: str) -> Iterator[None]:
        """Note the hook that is asked while this lasts."""
        self.asking = (hook, where)
        try:
            yield
        finally:
            self.asking = None

    def count(self, tag: str) -> str:
        """Return which emission of a tag this is, from 0."""
        number = self._emissions.get(tag, 0)
        self._emissions[tag] = number + 1
        return str(number)


class Toolset(dict[str, "Tool"]):
    """The tools of an agent, by name, in the order in which the model is offered them; with what their calls leave."""

    def __init__(self, tools: Mapping[str, Tool] | None = None, *, of_strategies: frozenset[str] = frozenset()) -> None:
        super().__init__(tools or {})
        self.of_strategies = of_strategies
        """Names of the tools that strategies brought along: that of the header, and those that may take over."""
        self.hidden: frozenset[str] = frozenset()
        """Those of strategies that do not run now."""
        self.cache: dict[tuple[str, str], tuple[Outcome, int]] = {}
        """Results of cacheable calls, and when each began, in microseconds since the Unix epoch."""
        self.abandoned: set[str] = set()
        """Calls whose body was left running, in its thread, when they were given up."""

    def bring(self, tools: Mapping[str, Tool]) -> None:
        """Take the tools of a strategy along that may run from now on."""
        self.update({name: tool for name, tool in tools.items() if name not in self})
        self.of_strategies = self.of_strategies.union(tools)

    def hide_all_but(self, own: Iterable[str]) -> None:
        """Offer, of the tools of strategies, only those of the one that runs."""
        self.hidden = self.of_strategies.difference(own)


@dataclass(frozen=True)
class RunContext(Records):
    """What all agents of one run share."""

    world: World
    approver: Approver | None = None
    kept: list[Record] | None = None
    """Every event, of a run that writes none."""
    control: Control | None = None
    """Where other processes reach the run; None when they cannot."""
    steering: Steering | None = None
    """Who may pause and stop it between two steps; None when nobody can."""
    listener: Listener | None = None
    """Who listens to what models say while they say it; None when nobody does."""


class World:
    """What lies behind the ports: gives each owner its model, its tools and its facts. This is the real one.

    An owner is one agent in one run, named by the calls that led to it, so a replay can give each its own answers back.
    """

    def model_for(self, owner: str, model: Model) -> Model:
        """Return what answers this owner's requests."""
        return model

    def fallbacks_for(
        self, owner: str, infos: Sequence[FallbackInfo], models: Sequence[Model]
    ) -> list[tuple[FallbackInfo, Model]]:
        """Return what answers this owner's requests when the model does not, in order."""
        return list(zip(infos, models, strict=True)) if models else []

    def tools_for(self, owner: str, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Return what runs this owner's calls, by name, in the order the model is offered them."""
        return tools

    def hooks_for(self, session: Session, hooks: Hooks | None) -> Hooks | None:
        """Return what is asked at this session's chokepoints and phases; None when nothing is."""
        return hooks

    def guards_for(self, session: Session, makers: Sequence[Callable[[Session], Guard]]) -> tuple[Guard, ...]:
        """Return the killswitches at this session's ports, those of the agents above it first."""
        above = () if session.parent is None else session.parent.gate.guards
        return (*above, *(make(session) for make in makers))

    async def fact(self, owner: str, name: str, key: str, answer: Callable[[], Any]) -> JsonValue:
        """Return the answer to a question that is neither the model's nor a tool's; `answer` may be sync or async."""
        value = answer()
        return to_json(await value if isinstance(value, Awaitable) else value)

    async def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        import anyio  # noqa: PLC0415 - what only a run needs

        await anyio.sleep(seconds)


class FactDoor:
    """Asks for whatever steers the run and is neither model nor tool; replays serve the recorded answer."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def ask(self, name: str, answer: Callable[[], Any], key: str = "") -> Any:  # noqa: ANN401 - any JSON value
        """Return the answer of `answer()`, sync or async, and record it under `name`; in a replay the recorded one.

        `key` tells apart questions of one name that are open at the same time.
        """
        self._session.require_running()
        value = await self._session.run.world.fact(self._session.owner, name, key, answer)
        self._session.emit(FactRecorded(name=name, key=key, value=value))
        return value

    async def sleep(self, seconds: float) -> None:
        """Let time pass; in a replay it has passed already."""
        await self._session.run.world.sleep(seconds)


Listener = Callable[["Session", "LlmRequested"], Callable[[str], object] | None]
"""Takes a request that is about to be answered; returns who hears the pieces of the answer, or None for nobody."""


class Steering(Protocol):
    """Steers all agents of a run."""

    def attach(self, session: Session) -> None:
        """Learn of the run's root agent, which has not begun."""

    async def reached(self, session: Session) -> None:
        """Hear that an agent is between two phases; return when it may go on."""

    def stops(self, session: Session, before: str) -> str | None:
        """Return why an agent is to stop before this turn, or this request outside the turns; or None."""

    def begins(self, state: KernelState, session: Session) -> None:
        """Hear that the next phase begins."""


class Hooks:
    """What a session asks when something may be changed or stopped. A session without hooks has None, and asks nothing.

    The base changes nothing.
    """

    def info(self) -> tuple[HookInfo, ...]:
        """Return what is registered, as the header of a trace says it."""
        return ()

    def below(self, own: Hooks | None) -> Hooks | None:
        """Return the hooks of an agent that is called by this one and has hooks of its own."""
        return own

    def seeds(self) -> tuple[tuple[str, Any], ...]:
        """Return the tags and payloads to emit when the agent starts."""
        return ()

    def wants(self, tag: str) -> bool:
        """Return whether anybody listens to this tag."""
        return False

    async def offer(
        self,
        session: Session,
        tag: str,
        payload: Any,  # noqa: ANN401 - by tag
        key: str,
        details: Mapping[str, Any],
    ) -> Any:  # noqa: ANN401 - as the payload, or SUPPRESS
        """Return what the transforms make of a payload; taps have seen it then."""
        return payload

    def callers(self) -> Hooks | None:
        """Return the hooks of the caller's among them: what they have not looked at may not leave."""
        return self

    def tools(self) -> dict[str, Tool]:
        """Return the tools of strategies that may take over; they are offered from then on."""
        return {}

    def unmet(self, session: Session) -> tuple[Unmet, ...]:
        """Return what blocks still require before an answer may stand."""
        return ()

    def at_phase(self, phase: PhaseName) -> bool:
        """Return whether anything is to be asked before, after or at an error of this phase."""
        return False

    async def ask(
        self, session: Session, phase: PhaseName, timing: Timing, state: KernelState, error: Exception | None = None
    ) -> Said | None:
        """Return what the first hook that wants to steer says; after an `error`, how it wants to go on."""
        return None


class Guard:
    """A killswitch in one run of one agent. The base lets everything pass."""

    name: str = "guard"
    """The killswitch, as traces and results call it."""
    approver: Approver | None = None
    """Who is asked about the calls that this guard wants approved; None: whom the agent asks."""
    approval_timeout_s: float | None = None
    """Seconds that the approver has."""

    def __init__(self, session: Session) -> None:
        self.session = session
        """The agent that it guards; it ends this one."""

    @property
    def inner(self) -> Guard:
        """Return the guard itself, where this one stands for it."""
        return self

    def start(self) -> None:
        """Begin to look: the agent starts."""

    def stop(self) -> None:
        """Look no more: the agent has ended."""

    def look(self) -> bool:
        """End the agent if it is time to, and say so.

        What holds the interpreter keeps every thread from that, until it lets go.
        """
        return False

    async def measure(self, session: Session, request: Request) -> None:
        """Find out what `admit_request` has to know of a request; asked once for each."""

    def admit_request(self, session: Session, request: Request) -> Request | Stop | Terminate | Wait:
        """Say whether an attempt may be sent, and as what. Nothing else runs between this and the sending."""
        return request

    def withdraw_request(self, session: Session, request: Request) -> None:
        """Take back what `admit_request` let pass: another guard did not; or, when it is not passed, drop the request."""

    def admitted(self, session: Session, request: Request) -> tuple[EventBase, ...]:
        """Return what is to be recorded of a request that all guards let pass."""
        return ()

    async def before_call(self, session: Session, planned: PlannedCall) -> None:
        """Let a call wait before it is recorded."""

    def admit_call(self, session: Session, planned: PlannedCall, spec: ToolSpec) -> Stop | Terminate | Refuse | None:
        """Say whether a call that fits its tool may run. Meta tools are not asked about."""
        return None

    def wants_approval(self, session: Session, planned: PlannedCall, spec: ToolSpec) -> bool:
        """Return whether somebody has to allow this call."""
        return False

    def asked_by_tool(self, planned: PlannedCall) -> bool | None:
        """Return, in a replay, whether the tool itself wanted this call approved; None when that is not recorded."""
        return None

    def denied(self, session: Session, planned: PlannedCall, why: str) -> Stop | Terminate | None:
        """Say whether the agent ends because a call that this guard wanted approved was denied."""
        return None

    def heard(self, session: Session, event: EventBase) -> Stop | Terminate | None:
        """Hear how a request or a call ended; an answer ends the agent."""
        return None

    def recall(self, session: Session, event: EventBase, reserved: BudgetReserved | None) -> Stop | Terminate | None:
        """Hear how a request or a call ended in the run that this one continues; it was not asked about it.

        `reserved` is what a budget had set aside for the request.
        """
        return self.heard(session, event)


@runtime_checkable
class Tool(Protocol):
    """What the tool port runs: a function, an agent, a tool of the kernel, or a recording."""

    @property
    def spec(self) -> ToolSpec:
        """Return everything about the tool that is data."""

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | Outcome | None:
        """Return why these arguments cannot be used, or the outcome when there is nothing left to ask or run, or None."""

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Run the body and return how it ended; raises only to end the whole run."""


@dataclass(eq=False)
class ToolContext:
    """Handed to a tool whose function has a parameter annotated with this class.

    What a body does by itself (its network, its own model calls) is invisible to the trace; what it does through
    `model` and `tools` is recorded, under an owner of its own.
    """

    session: Session = field(repr=False)
    call_id: str
    """Id of this call."""
    tool: str
    """Name of this tool."""
    iteration: int | None
    """Turn of the loop that asked for it; None outside the loop."""
    position: int
    """Place among the calls of that turn."""
    args_hash: str
    """SHA-256 of the canonical JSON of the arguments."""
    started_us: int
    """Microseconds since the Unix epoch when the call started."""
    timeout_s: float | None = None
    """Seconds the call may take."""
    values: dict[str, Any] | None = field(default=None, init=False, repr=False)
    """The checked arguments as the tool's function takes them; None when it has not checked them, or has taken them."""
    ended: bool = field(default=False, init=False)
    """Whether the call is over."""

    @property
    def run_id(self) -> str:
        """The run that this call belongs to."""
        return self.session.run.run_id

    @property
    def owner(self) -> str:
        """The agent that asked."""
        return self.session.owner

    @property
    def deadline_us(self) -> int | None:
        """Microseconds since the Unix epoch after which nobody waits for the result."""
        return None if self.timeout_s is None else self.started_us + int(self.timeout_s * 1_000_000)

    @property
    def child_owner(self) -> str:
        """The owner of what this call does through the ports, and of the agent it enters."""
        return owner_inside(self.owner, self.tool, self.iteration, self.position)

    @property
    def cache(self) -> dict[tuple[str, str], tuple[Outcome, int]]:
        """Results of this agent's cacheable calls so far, and when each began."""
        return self.session.toolset.cache

    def now_us(self) -> int:
        """Return the time by the run's clock, in microseconds since the Unix epoch."""
        return self.session.run.recorder.clock.now_us()

    @cached_property
    def scope(self) -> Session:
        """The session under which this body's own calls are recorded."""
        scope = self.session.for_tool(self.session, self)
        if self.ended:
            scope.terminate("cancelled", failed=True)
        return scope

    @property
    def model(self) -> ModelPort:
        """The agent's model, recorded: `await context.model.ask("…")`."""
        return self.scope.model

    @property
    def tools(self) -> ToolPort:
        """The agent's other tools, checked, limited and recorded: `await context.tools.call("name", key="a")`."""
        return self.scope.tools

    def give_up(self) -> None:
        """Note that the body is left running: its call has ended, so the ports refuse what it asks from now on."""
        self.session.toolset.abandoned.add(self.call_id)
        self.end()

    def end(self) -> None:
        """Note that the call is over: what its body has left running there ends too, and the ports refuse what it asks."""
        self.ended = True
        if "scope" in self.__dict__:
            self.scope.terminate("cancelled", failed=True)
            self.session.run.in_flight.leave(self.scope.owner)

    def report_late(self, ok: bool) -> None:  # noqa: FBT001 - a callback
        """Record that the body came back after its call had been given up."""
        run = self.session.run
        elapsed_ms = (run.recorder.clock.now_us() - self.started_us) / 1000
        late = made(ToolCallLate, call_id=self.call_id, tool=self.tool, ok=ok, duration_ms=elapsed_ms)
        run.recorder.emit(late, self.owner, self.iteration)


Phase = Callable[[KernelState, "Session"], Awaitable[KernelState]]
"""One think, act or observe step: takes a state, asks the session's ports, returns the next state."""


@dataclass(frozen=True)
class Kernel:
    """The phases of a loop; exchange one to make another kernel."""

    name: str
    phases: Mapping[Status, Phase]
    """What to do in each status that is not final."""
