"""One agent's run, from its first event to its last: the thread, the three ports, and the one way to end.

Everything a strategy learns comes through the ports, and the ports record. So a replay is this same session with other
things behind its ports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from playhead.errors import RunEndedError, TraceWriteError
from playhead.kernel.copies import Copies
from playhead.kernel.fact_port import FactPort
from playhead.kernel.hooks import Stop, Terminate
from playhead.kernel.messages import Messages
from playhead.kernel.model_port import ModelPort
from playhead.kernel.state import Thread
from playhead.kernel.termination import Ending, Termination
from playhead.kernel.tool_port import ToolPort
from playhead.trace.events import HookFired, KernelStateSnapshot, KillswitchFired
from playhead.trace.values import repair_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.approval import Approver
    from playhead.kernel.guards import Guard, GuardMaker
    from playhead.kernel.hooks import Hooks, PhaseName, Said, Timing
    from playhead.kernel.in_flight import Kind
    from playhead.kernel.loop import Kernel
    from playhead.kernel.models.base import Model
    from playhead.kernel.passes import Pass
    from playhead.kernel.run_context import RunContext
    from playhead.kernel.state import KernelState
    from playhead.kernel.supervision import Supervisor
    from playhead.kernel.tool_context import ToolContext
    from playhead.kernel.tools import Outcome, Tool
    from playhead.trace.events import EventBase
    from playhead.trace.types import AgentHeader, Content, Rationale, ToolSpec, Usage
    from playhead.trace.values import JsonValue

GRACE_S: Final = 0.1
"""Seconds from being cancelled to being left behind."""
MAX_DEPTH: Final = 3
"""Agents below agents: the root may enter an agent that enters an agent that enters an agent."""


class Session:
    """One agent in one run. Strategies reach the world through `model`, `tools` and `facts`, and nothing else."""

    def __init__(  # noqa: PLR0913, PLR0915 - what an agent is made of
        self,
        run: RunContext,
        header: AgentHeader,
        model: Model,
        tools: dict[str, Tool],
        *,
        owner: str = "root",
        depth: int = 0,
        parent: Session | None = None,
        payer: Session | None = None,
        approver: Approver | None = None,
        hooks: Hooks | None = None,
        guards: tuple[GuardMaker, ...] = (),
    ) -> None:
        self.run = run
        self.header = header
        self.owner = owner
        self.depth = depth
        self.parent = parent
        self.agent: Session = self if payer is None else payer
        """The agent that pays: this session, or for a tool's body the session that called it."""
        self.approver: Approver | None = approver or (run.approver if parent is None else parent.approver)
        """Who is asked before a tool with `requires_approval` runs: this agent's own approver before its parent's."""
        self.iteration: int | None = None
        """Turn of the loop, from 0; None outside it. Set by the loop alone."""
        self.turns = 0
        """Turns of the loop that have begun; one that a hook stopped before its first question has not."""
        self.phase: str | None = None
        """The phase that runs; None outside of any."""
        self.state: KernelState | None = None
        """The state at the last step, for tools of the kernel and hooks to read; set by the loop alone."""
        self.unbilled: list[tuple[Usage, float | None]] = []
        """Usage and cost of sub-agents and of tools' own model calls, not yet added to the state."""
        self.cache: dict[tuple[str, str], Outcome] = {}
        """Results of cacheable calls."""
        self.abandoned: set[str] = set()
        """Calls whose body was left running, in its thread, when they were given up."""
        self.rewritten: set[str | int] = set()
        """Requests and calls whose recorded answer a hook changed before it was used."""
        self.copies = Copies(shared=False)
        """What hooks are given that may return it."""
        self.shown = Copies(shared=True)
        """What hooks are given that only look."""
        self.notes: dict[str, Any] = {}
        """What hooks keep from one call to the next, in this run of this agent."""
        self.hook_failures: dict[tuple[str, str], int] = {}
        """How often which hook failed, and where."""
        self.started_us = 0
        """When it began to run, in microseconds since the Unix epoch."""
        self.asking: tuple[str, str] | None = None
        """The hook that is asked at this moment, and where; while several are, the newest."""
        self.failures = 0
        """Calls that failed in a row, up to now."""
        self.adapter = run.world.model_for(owner, model)
        self.toolset = run.world.tools_for(owner, tools)
        self.hooks: Hooks | None = run.world.hooks_for(owner, hooks)
        """Who is asked at the chokepoints; None when nobody is."""
        self.guards: tuple[Guard, ...] = run.world.guards_for(self, guards)
        """The killswitches at the ports: those of the agents above first."""
        self.inner: Pass | None = None
        """The pass that runs inside the strategy, if one does."""
        self.preamble = Thread()
        """The messages that come before the task: the system prompt and the examples."""
        self.task: Content = ""
        """The task as the model is told it."""
        self.strategy_used = header.strategy
        """The strategy that makes the output: another one than the header's where that one delegates."""
        self.supervisor: Supervisor | None = None
        """Who ends it from outside of its loop; None before it runs."""
        self.messages = Messages(self)
        """The record of the thread."""
        self.model = ModelPort(self)
        self.tools = ToolPort(self)
        self.facts = FactPort(self)
        self.interrupted = False
        """Whether it was ended from outside of its loop."""
        self.abandoned_itself = False
        """Whether its code was left behind: its end is recorded, and what that code does counts no more."""
        self._emissions: dict[str, int] = {}
        self._next_position = 0
        self.ending = Ending(run.in_flight.lock)
        """How it ended, once it has."""

    # --- what is recorded -------------------------------------------------------------------------------------------

    def emit(self, event: EventBase) -> None:
        """Record an event of this agent.

        Raises:
            TraceWriteError: it could not be written, and the run was told to stop then.
        """
        if self.left_behind:
            return
        recorder = self.run.recorder
        if not recorder.emit(event, self.owner, self.iteration) and not recorder.sealed:
            self._on_lost(event)

    @property
    def left_behind(self) -> bool:
        """Whether its code, or that of an agent above it, was left behind."""
        return self.abandoned_itself or (self.parent is not None and self.parent.left_behind)

    def emit_start(self, event: EventBase, kind: Kind, name: str, leave: Callable[[], object]) -> None:
        """Record that something starts: nothing ends this agent, or one above it, between the look and the record.

        `leave` records the end of it when nobody else can.

        Raises:
            RunEndedError: this agent, or one above it, has ended.
        """
        recorder, in_flight = self.run.recorder, self.run.in_flight
        prepared = recorder.prepare(event, self.owner)
        with in_flight.lock:
            self.require_running()
            in_flight.begin(self.owner, kind, name, leave)
            written = recorder.write(prepared, self.iteration)
        recorder.tell(prepared)
        if not written and not recorder.sealed:
            self._on_lost(event)

    def emit_end(self, event: EventBase, kind: Kind, name: str) -> bool:
        """Record how something ended; False when it was left behind before."""
        return self.emit_ends([(event, self.iteration)], kind, name)

    def emit_ends(self, events: list[tuple[EventBase, int | None]], kind: Kind, name: str) -> bool:
        """Record how something ended, in several events; as `emit_end`."""
        recorder, in_flight = self.run.recorder, self.run.in_flight
        prepared = [(recorder.prepare(event, self.owner), turn) for event, turn in events]
        with in_flight.lock:  # else the trace could be closed before they are written
            if self.left_behind or not in_flight.end(self.owner, kind, name):
                return False
            written = [recorder.write(each, turn) for each, turn in prepared]
        for each, _ in prepared:
            recorder.tell(each)
        if not all(written) and not recorder.sealed and kind != "agent":
            self._on_lost(events[0][0])
        return True

    def emit_ending(self, event: EventBase, end: Callable[[Callable[[], object]], bool]) -> bool:
        """Record what ends an agent, if it does: `end` tries to, and calls what it is given when it has."""
        recorder = self.run.recorder
        prepared = recorder.prepare(event, self.owner)
        ended = end(lambda: None if self.left_behind else recorder.write(prepared, self.iteration))
        recorder.tell(prepared)
        return ended

    def emit_left(self, event: EventBase) -> None:
        """Record an event of an agent whose code is left behind."""
        self.run.recorder.emit(event, self.owner, self.iteration)

    def emit_last(self, event: EventBase) -> None:
        """Record an event of an agent that has ended; a loss is counted, and stops nothing any more."""
        if not self.left_behind:
            self.run.recorder.emit(event, self.owner, self.iteration)

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
        if self.hooks is None:
            return payload
        if not key:
            number = self._emissions.get(tag, 0)
            self._emissions[tag], key = number + 1, str(number)
        if not self.hooks.wants(tag):
            return payload
        return await self.hooks.offer(self, tag, payload, key, details)

    async def fail(self, reason: str, message: str, *, attempt: int = 1, key: str = "") -> None:
        """Tell hooks of a failure that the run survives, or ends with."""
        self.failures += 1
        if self.hooks is None:
            return
        failure = {
            "reason": reason,
            "error_message": message,
            "attempt_number": attempt,
            "failure_streak": self.failures,
            "current_strategy": self.header.strategy,
        }
        await self.offer("lifecycle.failure", failure, key=key)

    def record_steering(self, said: Said, phase: PhaseName, timing: Timing) -> None:
        """Record that a phase hook steers the run."""
        answer = said.answer
        ends: dict[str, Any] = {}
        if isinstance(answer, (Stop, Terminate)):
            ends = {"switch": answer.switch, "terminated_by": answer.terminated_by}
        action = type(answer).__name__.lower()
        reason = answer.reason or None
        self.emit(HookFired(hook=said.hook, phase=phase, timing=timing, action=action, reason=reason, **ends))
        if ends.get("switch"):
            trigger: Literal["stop", "terminate"] = "stop" if isinstance(answer, Stop) else "terminate"
            self.emit(KillswitchFired(switch=ends["switch"], reason=answer.reason, on_trigger=trigger))

    # --- places in the turn -----------------------------------------------------------------------------------------

    def enter_iteration(self, iteration: int) -> None:
        """Start a turn: positions count from 0 again."""
        self.iteration, self.turns = iteration, iteration + 1
        self._next_position = 0

    def take_position(self) -> int:
        """Return the next place among the calls of this turn."""
        position = self._next_position
        self._next_position += 1
        return position

    def specs(self, names: list[str]) -> tuple[ToolSpec, ...]:
        """Return the specifications of these tools."""
        return tuple(self.toolset[name].spec for name in names)

    # --- the end ----------------------------------------------------------------------------------------------------

    def terminate(  # noqa: PLR0913 - one call says all of how it ended
        self,
        reason: str,
        output: JsonValue = None,
        *,
        rationale: Rationale | None = None,
        source: str = "kernel",
        failed: bool = False,
        error: str | None = None,
        answer: dict[str, Any] | None = None,
        because: str | None = None,
        overrule: bool = False,
    ) -> bool:
        """End this agent: the one and only way. The first caller wins, from whatever thread; the others get False.

        From here on no call starts; the loop notices at its next step. With `overrule` it wins over an answer of the
        model, too.
        """
        ending = Termination(reason, repair_json(output), rationale, source, failed, error, answer or {}, because)
        return self.ending.end(ending) or (overrule and self.ending.overrule(ending))

    def conclude(self, reason: str, output: JsonValue = None, *, answer: dict[str, Any] | None = None) -> None:
        """End the loop that runs: the pass, where a strategy runs one, else the agent."""
        if self.inner is None:
            self.terminate(reason, output, answer=answer)
        elif self.inner.conclusion is None:
            from playhead.kernel.passes import Conclusion  # noqa: PLC0415 - which runs loops of a session

            self.inner.conclusion = Conclusion(reason, output, answer or {})

    @property
    def concluded(self) -> bool:
        """Whether the loop that runs is over: its pass has its answer, or the agent has ended."""
        return self.ended or (self.inner is not None and self.inner.conclusion is not None)

    def offers(self, tool: str) -> bool:
        """Return whether the loop that runs may use this tool."""
        return self.inner is None or self.inner.tools is None or tool in self.inner.tools

    @property
    def kernel(self) -> Kernel:
        """The loop that the agent's strategy thinks and acts with."""
        from playhead.kernel.kernels import get_kernel  # noqa: PLC0415 - which knows kernels, and they sessions

        return get_kernel(self.header.kernel)

    def withhold(self, source: str, error: str) -> None:
        """End as failed and without an output, however it ended before: what has to look at it has failed."""
        self.ending.withhold("hook_failed", source, error)
        if self.agent is not self:  # a tool's body is part of the agent that called it
            self.agent.withhold(source, error)

    def end_by_hook(self, said: Said, output: JsonValue) -> bool:
        """End because a phase hook says so, unless it has ended already; an answer of the model is overruled."""
        answer = said.answer
        assert isinstance(answer, (Stop, Terminate))  # noqa: S101 - asked by the caller
        failed = isinstance(answer, Terminate)
        termination = Termination(
            answer.terminated_by,
            repair_json(output),
            source=f"killswitch:{answer.switch}" if answer.switch else f"hook:{said.hook}",
            failed=failed,
            error=(answer.reason or said.hook) if failed else None,
            because=answer.reason or None,
        )
        return self.ending.end(termination) or self.ending.overrule(termination)

    def interrupt(
        self, termination: Termination, switch: KillswitchFired | None = None, grace_s: float = GRACE_S
    ) -> bool:
        """End this agent from outside of its loop, from any thread; what it waits for is cancelled or left behind.

        The first cause stands here too, but for an answer that hooks still look at.
        """

        def interrupt(record: Callable[[], object]) -> bool:
            def record_it() -> None:
                self.interrupted = True  # once it has ended: what sees this finds that, too
                record()

            return self.ending.interrupt(termination, record_it)

        won = interrupt(lambda: None) if switch is None else self.emit_ending(switch, interrupt)
        self.interrupted = True
        if self.supervisor is not None and not self.ending.closed:
            self.supervisor.stop(grace_s)
        return won

    @property
    def termination(self) -> Termination | None:
        """How this agent ended, or None while it runs."""
        return self.ending.termination

    @property
    def ended(self) -> bool:
        """Whether this agent, or one that it works for, has ended."""
        return self.ending.termination is not None or (self.parent is not None and self.parent.ended)

    @property
    def cut_off(self) -> bool:
        """Whether this agent, or one that it works for, was ended from outside: what has begun does not go on, either."""
        return self.interrupted or (self.parent is not None and self.parent.cut_off)

    def require_running(self) -> None:
        """Raise `RunEndedError` when nothing may start any more."""
        if self.ended:
            raise RunEndedError(f"{self.owner} of run {self.run.run_id} has ended; nothing starts any more")

    # --- below this agent -------------------------------------------------------------------------------------------

    def for_tool(self, context: ToolContext) -> Session:
        """Return the session under which a tool's body asks the model and calls tools."""
        others = {
            name: tool for name, tool in self.toolset.items() if name != context.tool and tool.spec.kind != "meta"
        }
        return Session(
            self.run,
            self.header,
            self.adapter,
            others,
            owner=context.child_owner,
            depth=self.depth,
            parent=self,
            payer=self.agent,
            hooks=self.hooks,
        )

    def bill(self, usage: Usage, cost_usd: float | None) -> None:
        """Charge what was spent below an agent to that agent; its loop adds it to the state between two steps."""
        self.agent.unbilled.append((usage, cost_usd))

    def _on_lost(self, event: EventBase) -> None:
        if self.run.on_trace_error != "stop" or self.ended:
            return
        why = f"{event.kind} could not be written to the trace: {self.run.recorder.error}"
        session: Session | None = self
        while session is not None:  # what lies above ends too: a tool's body may catch what is raised here
            session.terminate("trace_error", failed=True, error=why)
            session = session.parent
        raise TraceWriteError(why)
