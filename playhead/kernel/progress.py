"""The progress of an agent's loop, and of a pass inside it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from playhead.kernel.state import Thread
from playhead.trace.format import ANSWERED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.kernel.hooks import PhaseName
    from playhead.kernel.lifecycle.termination import Termination
    from playhead.kernel.state import KernelState
    from playhead.trace.types import Content
    from playhead.trace.values import JsonValue


@dataclass(frozen=True)
class Conclusion:
    """How a pass ended."""

    reason: str
    """A reason code of an agent's end: `end_turn`, `final_answer_tool`, `max_iterations` …"""
    output: JsonValue = None
    """The answer, or the best output so far."""
    answer: dict[str, Any] = field(default_factory=dict)
    """Format, summary and confidence, if the model gave them."""

    @property
    def answered(self) -> bool:
        """Whether the model gave an answer."""
        return self.reason in ANSWERED

    @property
    def text(self) -> str:
        """The answer as text; empty without one."""
        return self.output if isinstance(self.output, str) else "" if self.output is None else str(self.output)


@dataclass
class Pass:
    """A pass in progress."""

    purpose: str
    """The purpose of its requests, such as `improve`."""
    last: int
    """The turn before which it ends."""
    tools: frozenset[str] | None = None
    """Names of the tools that are offered and may run; None for all."""
    step: str | None = None
    """The plan step that it carries out."""
    conclusion: Conclusion | None = None
    """How it ended; None while it runs."""


@dataclass
class Progress:
    """The progress of one agent's loop."""

    strategy: str
    """The strategy that produces the output: not the header's, where that one delegates."""
    iteration: int | None = None
    """Turn of the loop, from 0; None outside it."""
    turns: int = 0
    """Turns that have begun; not one that a hook stopped before its first request."""
    phase: PhaseName | None = None
    """The current phase; None outside of any."""
    state: KernelState | None = None
    """The state at the last step."""
    inner: Pass | None = None
    """The pass in progress inside the strategy; None without one."""
    preamble: Thread = field(default_factory=Thread)
    """The messages before the task: the system prompt and the examples."""
    task: Content = ""
    """The task, as given to the model."""
    closed_by: Termination | None = None
    """The termination that the final state was made for; None before."""
    started_us: int = 0
    """When the agent began to run, in microseconds since the Unix epoch."""
    loop_began: int = 0
    """The turn in which the current loop began: the agent's own, or that of a pass."""
    _position: int = 0

    def begin(self, now_us: int) -> None:
        """Start the agent's run."""
        self.started_us = now_us

    def take_task(self, task: Content, preamble: Thread | None = None) -> None:
        """Set the task, as given to the model, and the messages before it."""
        self.task, self.preamble = task, preamble or self.preamble

    def enter_loop(self, iteration: int) -> None:
        """Start a loop at this turn."""
        self.loop_began = iteration

    def enter_iteration(self, iteration: int | None) -> None:
        """Start a turn, in which positions count from 0; None after the loop."""
        self.iteration = iteration
        self._position = 0
        if iteration is not None:
            self.turns = iteration

    def enter_phase(self, phase: PhaseName, state: KernelState | None = None) -> None:
        """Start a phase with this state, or with the last one."""
        self.phase, self.state = phase, state or self.state

    def count_turn(self) -> None:
        """Count the current turn as begun."""
        self.turns = (self.iteration or 0) + 1

    def delegate(self, strategy: str) -> None:
        """Name the strategy that produces the output from now on."""
        self.strategy = strategy

    def close(self, ended: Termination) -> None:
        """Name the termination that the final state is made for."""
        self.closed_by = ended

    def take_position(self) -> int:
        """Return the position of the next call of this turn."""
        position = self._position
        self._position += 1
        return position

    @contextmanager
    def inside(self, inner: Pass) -> Iterator[None]:
        """Run a pass inside this block, inside the current pass or the agent's own loop."""
        outer, self.inner = self.inner, inner
        try:
            yield
        finally:
            self.inner = outer
