"""One agent's run, from its first event to its last: the thread, the three ports, and the one way to end.

Everything a strategy learns comes through the ports, and the ports record. So a replay is this same session with other
things behind its ports.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from playhead.errors import RunEndedError, TraceWriteError
from playhead.kernel.ports import FactPort, ModelPort, ToolPort
from playhead.trace.events import KernelStateSnapshot, MessageAdded, MessageRef, NudgeIssued, ToolsDefined
from playhead.trace.types import AgentHeader, Content, Message, Rationale, Role, ToolSpec
from playhead.trace.values import repair_json

if TYPE_CHECKING:
    from playhead.kernel.approval import Approver
    from playhead.kernel.models.base import Model
    from playhead.kernel.state import KernelState, PlannedCall, Thread
    from playhead.kernel.tool_context import ToolContext
    from playhead.kernel.tools import Outcome, Tool
    from playhead.kernel.world import World
    from playhead.trace.events import EventBase, LlmResponded, ToolCallCompleted
    from playhead.trace.recorder import Recorder
    from playhead.trace.types import Range, Usage
    from playhead.trace.values import JsonValue

MAX_DEPTH: Final = 3
"""Agents below agents: the root may enter an agent that enters an agent that enters an agent."""


@dataclass(frozen=True)
class RunContext:
    """What all agents of one run share."""

    run_id: str
    recorder: Recorder
    world: World
    approver: Approver | None = None
    on_trace_error: Literal["continue", "stop"] = "continue"


@dataclass(frozen=True, slots=True)
class Termination:
    """How an agent ended."""

    reason: str
    """The reason code, such as `end_turn` or `max_iterations`."""
    output: JsonValue = None
    rationale: Rationale | None = None
    source: str = "kernel"
    """Who ended it."""
    failed: bool = False
    error: str | None = None
    answer: dict[str, Any] = field(default_factory=dict)
    """Format, summary and confidence of the final answer, when the model gave them."""


class Session:
    """One agent in one run. Strategies reach the world through `model`, `tools` and `facts`, and nothing else."""

    def __init__(  # noqa: PLR0913 - what an agent is made of
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
        self.state: KernelState | None = None
        """The state at the last step, for tools of the kernel to read; set by the loop alone."""
        self.unbilled: list[tuple[Usage, float | None]] = []
        """Usage and cost of sub-agents and of tools' own model calls, not yet added to the state."""
        self.cache: dict[tuple[str, str], Outcome] = {}
        """Results of cacheable calls."""
        self.abandoned: set[str] = set()
        """Calls whose body was left running, in its thread, when they were given up."""
        self.adapter = run.world.model_for(owner, model)
        self.toolset = run.world.tools_for(owner, tools)
        self.tool_ids = {name: number for number, name in enumerate(self.toolset)}
        self.model = ModelPort(self)
        self.tools = ToolPort(self)
        self.facts = FactPort(self)
        self._next_message = 0
        self._next_position = 0
        self._lock = threading.Lock()
        self._termination: Termination | None = None

    # --- what is recorded -------------------------------------------------------------------------------------------

    def emit(self, event: EventBase) -> None:
        """Record an event of this agent.

        Raises:
            TraceWriteError: it could not be written, and the run was told to stop then.
        """
        recorder = self.run.recorder
        if not recorder.emit(event, self.owner, self.iteration) and not recorder.sealed:
            self._on_lost(event)

    def emit_last(self, event: EventBase) -> None:
        """Record an event of an agent that has ended; a loss is counted, and stops nothing any more."""
        self.run.recorder.emit(event, self.owner, self.iteration)

    def leave_loop(self, state: KernelState) -> None:
        """Record where the loop ended; what follows is outside of it."""
        self.snapshot(state)
        self.iteration = None

    def define_tools(self) -> None:
        """Write the tool schemas once; requests refer to them."""
        if self.toolset:
            self.emit(ToolsDefined(first_id=0, tools=tuple(tool.spec for tool in self.toolset.values())))

    def add_message(self, role: Role, content: Content, **fields: Any) -> Message:  # noqa: ANN401 - of MessageAdded
        """Add a message with its own content to the thread's record, and return it."""
        message = Message(id=self._take_message_id(), role=role, content=content, **fields)
        self.emit(MessageAdded(id=message.id, role=role, content=content, **fields))
        return message

    def add_reply(self, response: LlmResponded) -> Message:
        """Add the model's answer to the thread's record; its content stands in the response already."""
        number = self._take_message_id()
        message = Message(id=number, role="assistant", content=response.text, tool_calls=response.tool_calls)
        self.emit(MessageAdded(id=number, role="assistant", ref=MessageRef(request=response.request)))
        return message

    def add_result(self, planned: PlannedCall, completed: ToolCallCompleted) -> Message:
        """Add a result to the thread's record; its content stands in the completed call already."""
        role: Role = "user" if planned.source == "text" else "tool"
        fields: dict[str, Any] = {"name": completed.tool}
        if role == "tool":
            fields["tool_call_id"] = completed.call_id
        message = Message(id=self._take_message_id(), role=role, content=completed.message_text(role), **fields)
        self.emit(MessageAdded(id=message.id, role=role, ref=MessageRef(call=completed.call_id), **fields))
        return message

    def nudge(self, thread: Thread, nudge: str, text: str) -> Thread:
        """Put a word of the kernel into the thread, and say so."""
        self.emit(NudgeIssued(nudge=nudge, text=text))
        return thread.add(self.add_message("user", text))

    def snapshot(self, state: KernelState) -> None:
        """Record where the loop stands."""
        ended = self.termination
        self.emit_last(
            KernelStateSnapshot(
                status=state.status,
                steps=len(state.steps),
                messages=len(state.thread.messages),
                usage=state.usage,
                cost_usd=state.cost_usd,
                terminated_by=ended.reason if ended else None,
                termination_rationale=ended.rationale if ended else None,
            )
        )

    # --- places in the turn -----------------------------------------------------------------------------------------

    def enter_iteration(self, iteration: int) -> None:
        """Start a turn: positions count from 0 again."""
        self.iteration = iteration
        self._next_position = 0

    def take_position(self) -> int:
        """Return the next place among the calls of this turn."""
        position = self._next_position
        self._next_position += 1
        return position

    def specs(self, names: list[str]) -> tuple[ToolSpec, ...]:
        """Return the specifications of these tools."""
        return tuple(self.toolset[name].spec for name in names)

    def tool_ranges(self, specs: tuple[ToolSpec, ...]) -> tuple[Range, ...]:
        """Return the ids of these tools as inclusive ranges."""
        ranges: list[Range] = []
        for number in (self.tool_ids[spec.name] for spec in specs):
            if ranges and ranges[-1][1] == number - 1:
                ranges[-1] = (ranges[-1][0], number)
            else:
                ranges.append((number, number))
        return tuple(ranges)

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
    ) -> bool:
        """End this agent: the one and only way. The first caller wins, from whatever thread; the others get False.

        From here on no call starts; the loop notices at its next step.
        """
        termination = Termination(reason, repair_json(output), rationale, source, failed, error, answer or {})
        with self._lock:
            if self._termination is not None:
                return False
            self._termination = termination
            return True

    @property
    def termination(self) -> Termination | None:
        """How this agent ended, or None while it runs."""
        return self._termination

    @property
    def ended(self) -> bool:
        """Whether this agent, or one that it works for, has ended."""
        return self._termination is not None or (self.parent is not None and self.parent.ended)

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
        )

    def bill(self, usage: Usage, cost_usd: float | None) -> None:
        """Charge what was spent below an agent to that agent; its loop adds it to the state between two steps."""
        self.agent.unbilled.append((usage, cost_usd))

    def _take_message_id(self) -> int:
        number = self._next_message
        self._next_message += 1
        return number

    def _on_lost(self, event: EventBase) -> None:
        if self.run.on_trace_error != "stop" or self.ended:
            return
        why = f"{event.kind} could not be written to the trace: {self.run.recorder.error}"
        session: Session | None = self
        while session is not None:  # what lies above ends too: a tool's body may catch what is raised here
            session.terminate("trace_error", failed=True, error=why)
            session = session.parent
        raise TraceWriteError(why)
