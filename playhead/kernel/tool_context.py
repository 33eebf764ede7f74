"""What a tool's body may know of the run it serves, and the recorded ports it may use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from playhead.trace.events import ToolCallLate
from playhead.trace.forks import computed_once

if TYPE_CHECKING:
    from playhead.kernel.model_port import ModelPort
    from playhead.kernel.session import Session
    from playhead.kernel.tool_port import ToolPort
    from playhead.kernel.tools import Outcome


@dataclass(frozen=True, eq=False)
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
        turn = "-" if self.iteration is None else self.iteration
        return f"{self.owner}/{self.tool}@{turn}.{self.position}"

    @property
    def cache(self) -> dict[tuple[str, str], tuple[Outcome, int]]:
        """Results of this agent's cacheable calls so far, and when each began."""
        return self.session.cache

    def now_us(self) -> int:
        """Return the time by the run's clock, in microseconds since the Unix epoch."""
        return self.session.run.recorder.clock.now_us()

    @computed_once
    def scope(self) -> Session:
        """The session under which this body's own calls are recorded."""
        scope = self.session.for_tool(self)
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
        self.session.abandoned.add(self.call_id)
        self.end()

    def end(self) -> None:
        """Note that the call is over: what its body has left running there ends too, and the ports refuse what it asks."""
        object.__setattr__(self, "ended", True)
        if "scope" in self.__dict__:
            self.scope.terminate("cancelled", failed=True)
            self.session.run.in_flight.leave(self.scope.owner)

    def report_late(self, ok: bool) -> None:  # noqa: FBT001 - a callback
        """Record that the body came back after its call had been given up."""
        run = self.session.run
        elapsed_ms = (run.recorder.clock.now_us() - self.started_us) / 1000
        late = ToolCallLate(call_id=self.call_id, tool=self.tool, ok=ok, duration_ms=elapsed_ms)
        run.recorder.emit(late, self.owner, self.iteration)
