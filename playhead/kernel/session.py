"""One agent in one run: its identity, its ports to the world, its progress, and the one way to end it.

Everything a strategy learns comes through the ports, and the ports record it. So a replay is this same session with other
things behind its ports. The interfaces of hooks, killswitches, tools and worlds are here too, because each of them is given a
session; `playhead.kernel.session_setup` builds one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from playhead.diagnose.spending import Spent
from playhead.kernel.copies import Copies
from playhead.kernel.emission import Emission, Records
from playhead.kernel.lifecycle.termination import Ending, Termination
from playhead.kernel.progress import Conclusion, Progress
from playhead.trace.base import made
from playhead.trace.events import FactRecorded, KernelStateSnapshot, KillswitchFired, ToolCallLate
from playhead.trace.owners import owner_inside
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from playhead.kernel.approval import Approver
    from playhead.kernel.hooks import HookReply, PhaseName, Refuse, Stop, Terminate, Timing, Unmet, Wait
    from playhead.kernel.lifecycle.own_control import OwnControl
    from playhead.kernel.models.base import Model
    from playhead.kernel.outcome import Outcome
    from playhead.kernel.ports import Fallbacks, ModelPort, ThreadPort, ToolPort
    from playhead.kernel.state import KernelState, PlannedCall
    from playhead.spans.current import CurrentSpans, Operation
    from playhead.trace.events import BudgetReserved, ErrorInfo, EventBase, LlmRequested
    from playhead.trace.header import AgentHeader, HookInfo
    from playhead.trace.line import Record
    from playhead.trace.types import Content, FallbackInfo, Request, ToolSpec
    from playhead.trace.values import JsonValue

_NO_SPAN: Final = nullcontext()
GRACE_S: Final = 0.1
"""Seconds between the cancellation of an agent and its abandonment."""


class Session(Emission):
    """One agent in one run. Strategies reach the world through `model`, `tools` and `facts`, and nothing else."""

    run: RunContext
    gate: Gate
    """What may change or stop it."""
    parent: Session | None
    agent: Session
    """The agent that is charged: this session, or for a tool's body the session that called the tool."""
    model: ModelPort
    tools: ToolPort
    facts: FactPort
    messages: ThreadPort
    """The record of the thread."""

    def __init__(  # noqa: PLR0913 - the parts of a session
        self,
        run: RunContext,
        header: AgentHeader,
        owner: str,
        *,
        parent: Session | None = None,
        payer: Session | None = None,
        for_tool: Callable[[Session, ToolContext], Session],
    ) -> None:
        """Create the session without ports; `for_tool` opens the session of a tool's body, with ports of its own."""
        self.run = run
        self.header = header
        self.owner = owner
        self.parent = parent
        self.agent = self if payer is None else payer
        self.at = Progress(header.strategy)
        """The progress of its loop."""
        self.gate = Gate(approver=run.approver if parent is None else parent.gate.approver)
        self.toolset = Toolset()
        """Its tools, by name."""
        self.spent = Spent()
        """What this agent and those below it have spent so far, including model calls made by tools."""
        self.ending = Ending(run.in_flight.lock)
        """How it ended, once it has."""
        self.for_tool = for_tool

    # --- progress ---------------------------------------------------------------------------------------------------

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
        """The task, as given to the model."""
        return self.at.task

    @property
    def depth(self) -> int:
        """Number of agents above this one."""
        return 0 if self.parent is None else self.parent.depth + (self.agent is self)

    def reach(self, state: KernelState) -> KernelState:
        """Store a state as the newest, where hooks and kernel tools read it, and return it."""
        self.at.state = state
        return state

    def declare(self, **fields: Any) -> None:  # noqa: ANN401 - of a header
        """Change fields of the header, from now on."""
        self.header = self.header.model_copy(update=fields)

    # --- recording --------------------------------------------------------------------------------------------------

    def snapshot(self, state: KernelState) -> KernelStateSnapshot:
        """Return the progress of the loop as an event."""
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

    # --- hooks ------------------------------------------------------------------------------------------------------

    async def offer(self, tag: str, payload: Any, *, key: str = "", **details: Any) -> Any:  # noqa: ANN401 - by tag
        """Return the payload as the hooks at a chokepoint changed it, or SUPPRESS; without hooks, the payload itself.

        `key` identifies this emission of the tag where parallel calls emit it; by default emissions are numbered.

        Raises:
            RunEndedError: a required hook failed, and the run ended.
        """
        if self.gate.hooks is None:
            return payload
        if not key:
            key = self.gate.count(tag)
        if not self.gate.hooks.wants(tag):
            return payload
        return await self.gate.hooks.offer(self, tag, payload, key, details)

    async def fail(self, reason: str, message: str, *, attempt: int = 1, key: str = "") -> None:
        """Emit `lifecycle.failure` for a failed request or call."""
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
        """What blocks still require before they accept an answer."""
        return () if self.gate.hooks is None else self.gate.hooks.unmet(self)

    # --- tools ------------------------------------------------------------------------------------------------------

    def offered_specs(self) -> dict[str, ToolSpec]:
        """Return the tools that the current loop may use, by name."""
        return {name: tool.spec for name, tool in self.toolset.items() if self.offers(name)}

    def offers(self, tool: str) -> bool:
        """Return whether the current loop may use this tool."""
        if tool in self.toolset.hidden:
            return False
        return self.at.inner is None or self.at.inner.tools is None or tool in self.at.inner.tools

    # --- the end ----------------------------------------------------------------------------------------------------

    def conclude(self, reason: str, output: JsonValue = None, *, answer: dict[str, Any] | None = None) -> None:
        """End the current loop: the pass, where a strategy runs one, else the agent."""
        if self.at.inner is None:
            self.terminate(reason, output, answer=answer or {})
        elif self.at.inner.conclusion is None:
            self.at.inner.conclusion = Conclusion(reason, output, answer or {})

    @property
    def concluded(self) -> bool:
        """Whether the current loop is over: its pass has an answer, or the agent has ended."""
        return self.ended or (self.at.inner is not None and self.at.inner.conclusion is not None)

    def withhold(self, source: str, error: str) -> None:
        """End as failed and without an output, however it ended before: a required hook failed."""
        self.ending.withhold("hook_failed", source, error)
        if self.agent is not self:  # a tool's body is part of the agent that called it
            self.agent.withhold(source, error)

    def interrupt(
        self, termination: Termination, switch: KillswitchFired | None = None, grace_s: float = GRACE_S
    ) -> bool:
        """End this agent from outside its loop, from any thread; what it awaits is cancelled, or abandoned after `grace_s`.

        The first cause wins here too, except over an answer that hooks still check.
        """
        interrupt = partial(self.ending.interrupt, termination)
        won = interrupt() if switch is None else self.emit_ending(switch, interrupt)
        if self.ending.cancel is not None and not self.ending.closed:
            self.ending.cancel(grace_s)
        return won

    @property
    def cut_off(self) -> bool:
        """Whether this agent, or one above it, was ended from outside: work in progress stops, too."""
        return self.ending.interrupted or (self.parent is not None and self.parent.cut_off)


@dataclass
class Gate:
    """What may change or stop an agent, with its state."""

    hooks: Hooks | None = None
    """The hooks at the chokepoints; None without any."""
    guards: tuple[Guard, ...] = ()
    """The killswitches at the ports, those of the agents above first."""
    approver: Approver | None = None
    """Decides about calls of tools with `requires_approval`: this agent's own approver, else its parent's."""
    copies: Copies = field(default_factory=Copies)
    """Copies for hooks that may return them."""
    shown: Copies = field(default_factory=Copies)
    """Copies for hooks that only read them."""
    notes: dict[Any, Any] = field(default_factory=dict)
    """State of hooks in this run of this agent."""
    hook_failures: set[tuple[str, str]] = field(default_factory=set)
    """How often which hook failed, and where."""
    asking: tuple[str, str] | None = None
    """The hook that runs now, and where; of several, the newest."""
    failures: int = 0
    """Failed calls in a row."""
    rewritten: set[str | int] = field(default_factory=set)
    """Requests and calls whose recorded answer a hook changed before its use."""
    _emissions: dict[str, int] = field(default_factory=dict)

    def post(self, guards: tuple[Guard, ...]) -> None:
        """Replace the killswitches at the ports."""
        self.guards = guards

    def approve_by(self, approver: Approver) -> None:
        """Set who decides about calls, if nobody does."""
        self.approver = self.approver or approver

    def note_success(self) -> None:
        """Reset the count of failed calls in a row."""
        self.failures = 0

    def note_asking(self, asking: tuple[str, str] | None) -> None:
        """Name the hook that runs now, and where; None after it."""
        self.asking = asking

    def count(self, tag: str) -> str:
        """Return the number of this emission of a tag, from 0."""
        number = self._emissions.get(tag, 0)
        self._emissions[tag] = number + 1
        return str(number)


class Toolset(dict[str, "Tool"]):
    """The tools of an agent, by name, in the order offered to the model; with the cache of their calls."""

    def __init__(self, tools: Mapping[str, Tool] | None = None, *, of_strategies: frozenset[str] = frozenset()) -> None:
        super().__init__(tools or {})
        self.of_strategies = of_strategies
        """Names of the tools of strategies: the header's, and those that may take over."""
        self.hidden: frozenset[str] = frozenset()
        """Names of the tools of strategies that do not run now."""
        self.cache: dict[tuple[str, str], tuple[Outcome, int]] = {}
        """Results of cacheable calls, and when each began, in microseconds since the Unix epoch."""
        self.abandoned: set[str] = set()
        """Ids of timed-out calls whose thread still runs."""

    def bring(self, tools: Mapping[str, Tool]) -> None:
        """Add the tools of a strategy that takes over."""
        self.update({name: tool for name, tool in tools.items() if name not in self})
        self.of_strategies = self.of_strategies.union(tools)

    def hide_all_but(self, own: Iterable[str]) -> None:
        """Hide the tools of all strategies but these, which belong to the current one."""
        self.hidden = self.of_strategies.difference(own)


@dataclass(frozen=True)
class RunContext(Records):
    """Shared by all agents of one run."""

    world: World
    approver: Approver | None = None
    kept: list[Record] | None = None
    """Every event, in a run without a file."""
    control: OwnControl | None = None
    """The folder through which other processes reach the run; None without one."""
    steering: Steering | None = None
    """Pauses and stops the run between two steps; None without a handle."""
    listener: Listener | None = None
    """Receives text while models produce it; None without a stream."""
    spans: CurrentSpans | None = None
    """The run's spans in the application's tracing; None without any."""

    def current(self, kind: Operation, owner: str, name: str = "") -> AbstractContextManager[None]:
        """Make the span of an agent, a request or a call the current one of the application's tracing."""
        return _NO_SPAN if self.spans is None else self.spans.current(kind, owner, name)


class World:
    """Provides each owner's model, tools and facts behind the ports. This class is the live world.

    An owner is one agent in one run, named by the calls that led to it, so that a replay can serve each its own answers.
    """

    def model_for(self, owner: str, model: Model) -> Model:
        """Return the model that answers this owner's requests."""
        return model

    def fallbacks_for(self, owner: str, infos: Sequence[FallbackInfo], models: Sequence[Model]) -> Fallbacks:
        """Return this owner's fallback models, in order."""
        return list(zip(infos, models, strict=True)) if models else []

    def tools_for(self, owner: str, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Return this owner's tools, by name, in the order offered to the model."""
        return tools

    def hooks_for(self, session: Session, hooks: Hooks | None) -> Hooks | None:
        """Return the hooks at this session's chokepoints and phases; None without any."""
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
        """Wait."""
        import anyio  # noqa: PLC0415 - only for runs

        await anyio.sleep(seconds)


class FactPort:
    """Records the facts that steer a run and come from neither model nor tool; replays serve the recorded answer."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def ask(self, name: str, answer: Callable[[], Any], key: str = "") -> Any:  # noqa: ANN401 - any JSON value
        """Return the value of `answer()`, sync or async, and record it under `name`; in a replay, return the recorded value.

        `key` distinguishes concurrent questions of one name.
        """
        self._session.require_running()
        value = await self._session.run.world.fact(self._session.owner, name, key, answer)
        self._session.emit(FactRecorded(name=name, key=key, value=value))
        return value

    async def sleep(self, seconds: float) -> None:
        """Wait; a replay does not."""
        await self._session.run.world.sleep(seconds)


Listener = Callable[["Session", "LlmRequested"], Callable[[str], object] | None]
"""Takes a request that is about to be sent; returns a function that receives pieces of the answer, or None."""


class Steering:
    """Pauses and stops the agents of a run. The base class does neither."""

    def attach(self, session: Session) -> None:
        """Take the run's root agent, before it starts."""

    async def wait_while_paused(self, session: Session) -> None:
        """Return when an agent that is between two phases may continue."""

    def stop_reason(self, session: Session, before: str) -> str | None:
        """Return the reason to stop an agent before this turn, or before this request outside the turns; or None."""
        return None

    def phase_begins(self, state: KernelState, session: Session) -> None:
        """Called before each phase."""


class Hooks:
    """The hooks of a session. The base class changes nothing; a session without hooks has None in place of it."""

    def info(self) -> tuple[HookInfo, ...]:
        """Return what is registered, for the header of the trace."""
        return ()

    def below(self, own: Hooks | None) -> Hooks | None:
        """Return the hooks of an agent that this one calls and that has hooks of its own."""
        return own

    def seeds(self) -> tuple[tuple[str, Any], ...]:
        """Return the tags and payloads to emit when the agent starts."""
        return ()

    def wants(self, tag: str) -> bool:
        """Return whether a hook is registered for this tag."""
        return False

    async def offer(
        self,
        session: Session,
        tag: str,
        payload: Any,  # noqa: ANN401 - by tag
        key: str,
        details: Mapping[str, Any],
    ) -> Any:  # noqa: ANN401 - as the payload, or SUPPRESS
        """Return the payload as the transforms changed it, after the taps have seen it."""
        return payload

    def callers(self) -> Hooks | None:
        """Return the caller's hooks among them; an output that they have not checked is withheld."""
        return self

    def tools(self) -> dict[str, Tool]:
        """Return the tools of strategies that may take over."""
        return {}

    def unmet(self, session: Session) -> tuple[Unmet, ...]:
        """Return what blocks still require before they accept an answer."""
        return ()

    def at_phase(self, phase: PhaseName) -> bool:
        """Return whether a hook is registered before, after or at an error of this phase."""
        return False

    async def ask(
        self, session: Session, phase: PhaseName, timing: Timing, state: KernelState, error: Exception | None = None
    ) -> HookReply | None:
        """Return the answer of the first hook that steers; after an `error`, of the first that recovers."""
        return None


class Guard:
    """A killswitch in one run of one agent. The base class allows everything."""

    name: str = "guard"
    """The killswitch's name in traces and results."""
    approver: Approver | None = None
    """Decides about the calls that this guard wants approved; None for the agent's own approver."""
    approval_timeout_s: float | None = None
    """Seconds that the approver has."""

    def __init__(self, session: Session) -> None:
        self.session = session
        """The agent that it guards, and ends."""

    def start(self) -> None:
        """Called when the agent starts."""

    def stop(self) -> None:
        """Called when the agent has ended."""

    def look(self) -> bool:
        """End the agent if it is time to; return whether it is.

        Code that holds the interpreter's lock delays every thread until it releases it.
        """
        return False

    async def measure(self, session: Session, request: Request) -> None:
        """Prepare for `admit_request`; called once for each request."""

    def admit_request(self, session: Session, request: Request) -> Request | Stop | Terminate | Wait:
        """Return the request to send, or why it is not sent. Nothing else runs between this and the sending."""
        return request

    def withdraw_request(self, session: Session, request: Request) -> None:
        """Undo `admit_request`: the request is not sent."""

    def admitted(self, session: Session, request: Request) -> tuple[EventBase, ...]:
        """Return the events to record for a request that all guards admitted."""
        return ()

    async def before_call(self, session: Session, planned: PlannedCall) -> None:
        """Delay a call before it is recorded."""

    def admit_call(self, session: Session, planned: PlannedCall, spec: ToolSpec) -> Stop | Terminate | Refuse | None:
        """Return why a valid call does not run, or None. Not called for meta tools."""
        return None

    def wants_approval(self, session: Session, planned: PlannedCall, spec: ToolSpec) -> bool:
        """Return whether this call needs approval."""
        return False

    def denied(self, session: Session, planned: PlannedCall, why: str) -> Stop | Terminate | None:
        """Return how the agent ends after the denial of a call that this guard wanted approved; None to continue."""
        return None

    def heard(self, session: Session, event: EventBase) -> Stop | Terminate | None:
        """Take the end of a request or call; return how the agent ends, or None."""
        return None

    def recall(self, session: Session, event: EventBase, reserved: BudgetReserved | None) -> Stop | Terminate | None:
        """Take the end of a request or call of the run that this one continues.

        `reserved` is the budget reservation for the request.
        """
        return self.heard(session, event)


@runtime_checkable
class Tool(Protocol):
    """A tool, as the tool port runs it: a function, an agent, a kernel tool, or a recording."""

    @property
    def spec(self) -> ToolSpec:
        """Return the tool's declaration."""

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | Outcome | None:
        """Return the error of invalid arguments, the outcome of a call that needs no approval and no run, or None."""

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Run the body and return its outcome; raise only to end the whole run."""


@dataclass(eq=False)
class ToolContext:
    """Passed to a tool whose function has a parameter annotated with this class.

    A body's own network and model calls are invisible to the trace; calls through `model` and `tools` are recorded, under an
    owner of their own.
    """

    session: Session = field(repr=False)
    call_id: str
    """Id of this call."""
    tool: str
    """Name of this tool."""
    iteration: int | None
    """Turn of the loop; None outside it."""
    position: int
    """Position among the calls of that turn."""
    args_hash: str
    """SHA-256 of the canonical JSON of the arguments."""
    started_us: int
    """Microseconds since the Unix epoch when the call started."""
    timeout_s: float | None = None
    """Time limit in seconds."""
    values: dict[str, Any] | None = field(default=None, init=False, repr=False)
    """The validated arguments, from the check of a call to its run."""
    ended: bool = field(default=False, init=False)
    """Whether the call is over."""

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.session.run.run_id

    @property
    def owner(self) -> str:
        """The agent that made the call."""
        return self.session.owner

    @property
    def deadline_us(self) -> int | None:
        """Microseconds since the Unix epoch when the call times out."""
        return None if self.timeout_s is None else self.started_us + int(self.timeout_s * 1_000_000)

    @property
    def child_owner(self) -> str:
        """The owner of this call's own requests and calls, and of the agent that it runs."""
        return owner_inside(self.owner, self.tool, self.iteration, self.position)

    @property
    def cache(self) -> dict[tuple[str, str], tuple[Outcome, int]]:
        """Results of this agent's cacheable calls, and when each began."""
        return self.session.toolset.cache

    def now_us(self) -> int:
        """Return the time by the run's clock, in microseconds since the Unix epoch."""
        return self.session.run.recorder.clock.now_us()

    @cached_property
    def scope(self) -> Session:
        """The session that records this body's own requests and calls."""
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
        """Mark the body as abandoned: it still runs, but its call has ended."""
        self.session.toolset.abandoned.add(self.call_id)
        self.end()

    def end(self) -> None:
        """Mark the call as over: end what its body started through the ports, and refuse further requests and calls."""
        self.ended = True
        if "scope" in self.__dict__:
            self.scope.terminate("cancelled", failed=True)
            self.session.run.in_flight.leave(self.scope.owner)

    def report_late(self, ok: bool) -> None:  # noqa: FBT001 - a callback
        """Record that an abandoned body has returned."""
        run = self.session.run
        elapsed_ms = (run.recorder.clock.now_us() - self.started_us) / 1000
        late = made(ToolCallLate, call_id=self.call_id, tool=self.tool, ok=ok, duration_ms=elapsed_ms)
        run.recorder.emit(late, self.owner, self.iteration)
