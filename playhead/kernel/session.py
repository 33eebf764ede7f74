"""One agent's run, from its first event to its last: the thread, the three ports, and the one way to end.

Everything a strategy learns comes through the ports, and the ports record. So a replay is this same session with other
things behind its ports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from playhead.kernel.context import curator_for
from playhead.kernel.copies import Copies
from playhead.kernel.emission import Emission
from playhead.kernel.fact_port import FactPort
from playhead.kernel.hooks import Stop, Terminate
from playhead.kernel.messages import Messages
from playhead.kernel.model_port import ModelPort
from playhead.kernel.state import Thread
from playhead.kernel.termination import Ending, Termination
from playhead.kernel.tool_port import ToolPort
from playhead.trace.events import HookFired, KernelStateSnapshot, KillswitchFired
from playhead.trace.spending import Spent
from playhead.trace.values import repair_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from playhead.kernel.approval import Approver
    from playhead.kernel.context.curator import Curator
    from playhead.kernel.guards import Guard, GuardMaker
    from playhead.kernel.hooks import Hooks, PhaseName, Said, Timing
    from playhead.kernel.loop import Kernel
    from playhead.kernel.models.base import Model
    from playhead.kernel.passes import Pass
    from playhead.kernel.progress import Progress
    from playhead.kernel.review import Judge
    from playhead.kernel.run_context import RunContext
    from playhead.kernel.state import KernelState
    from playhead.kernel.supervision import Supervisor
    from playhead.kernel.tool_context import ToolContext
    from playhead.kernel.tools import Outcome, Tool
    from playhead.trace.types import AgentHeader, Content, ToolSpec
    from playhead.trace.values import JsonValue

GRACE_S: Final = 0.1
"""Seconds from being cancelled to being left behind."""
MAX_DEPTH: Final = 3
"""Agents below agents: the root may enter an agent that enters an agent that enters an agent."""


class Session(Emission):
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
        judges: Mapping[str, Judge] | None = None,
        fallbacks: Sequence[Model] = (),
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
        self.spent = Spent()
        """What this agent and those below it have spent, tools' own model calls included: all of it, at any moment."""
        self.cache: dict[tuple[str, str], tuple[Outcome, int]] = {}
        """Results of cacheable calls, and when each began, in microseconds since the Unix epoch."""
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
        self.fallbacks = run.world.fallbacks_for(owner, header.fallbacks, fallbacks)
        """Who answers when the model does not, in order."""
        of_strategies, hidden = ({}, frozenset()) if payer else _strategy_tools(header)
        self.toolset = run.world.tools_for(owner, {**tools, **of_strategies})
        self.strategy_tools = frozenset(of_strategies)
        """Names of the tools that strategies brought along: that of the header, and those that may take over."""
        self.hidden_tools = hidden
        """Those of strategies that do not run now."""
        self.hooks: Hooks | None = run.world.hooks_for(owner, hooks)
        """Who is asked at the chokepoints; None when nobody is."""
        self.guards: tuple[Guard, ...] = run.world.guards_for(self, guards)
        """The killswitches at the ports: those of the agents above first."""
        self.progress: Progress | None = None
        """Who looks at how the loop gets on; None when nobody does. Set by the loop."""
        self.inner: Pass | None = None
        """The pass that runs inside the strategy, if one does."""
        self.preamble = Thread()
        """The messages that come before the task: the system prompt and the examples."""
        self.task: Content = ""
        """The task as the model is told it."""
        self.judges: Mapping[str, Judge] = judges or {}
        """The code of the header's reviews, by their names; none in a replay, which serves what it said."""
        self.verified: bool | None = None
        """What the model itself said of its answer, where that was asked for."""
        self.strategy_used = header.strategy
        """The strategy that makes the output: another one than the header's where that one delegates."""
        self.supervisor: Supervisor | None = None
        """Who ends it from outside of its loop; None before it runs."""
        self.messages = Messages(self)
        """The record of the thread."""
        self.model = ModelPort(self)
        self.tools = ToolPort(self)
        self.facts = FactPort(self)
        self.curator: Curator | None = curator_for(self)
        """Who looks after the thread; None when it is sent as it is."""
        self.closed_by: Termination | None = None
        """The end that its state says, once it does."""
        self.interrupted = False
        """Whether it was ended from outside of its loop."""
        self.abandoned_itself = False
        """Whether its code was left behind: its end is recorded, and what that code does counts no more."""
        self._emissions: dict[str, int] = {}
        self._next_position = 0
        self.ending = Ending(run.in_flight.lock)
        """How it ended, once it has."""

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

    def offered_specs(self) -> dict[str, ToolSpec]:
        """Return the tools that the loop that runs may use, by name."""
        return {name: tool.spec for name, tool in self.toolset.items() if self.offers(name)}

    def specs(self, names: list[str]) -> tuple[ToolSpec, ...]:
        """Return the specifications of these tools, as the model is to be sent them."""
        return tuple(self.toolset[name].spec for name in names)

    # --- the end ----------------------------------------------------------------------------------------------------

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
        if tool in self.hidden_tools:
            return False
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
    def cut_off(self) -> bool:
        """Whether this agent, or one that it works for, was ended from outside: what has begun does not go on, either."""
        return self.interrupted or (self.parent is not None and self.parent.cut_off)

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


def _strategy_tools(header: AgentHeader) -> tuple[dict[str, Tool], frozenset[str]]:
    from playhead.kernel.strategies.registry import tools_of  # noqa: PLC0415 - strategies run on sessions

    return tools_of(header)
