"""Where the loop of an agent stands, and who may change or stop it: what a session knows, in its parts."""

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
    """As an agent would have ended: `end_turn`, `final_answer_tool`, `max_iterations` …"""
    output: JsonValue = None
    """The answer, or the best there is."""
    answer: dict[str, Any] = field(default_factory=dict)
    """Format, summary and confidence, when the model gave them."""

    @property
    def answered(self) -> bool:
        """Whether the model gave an answer by itself."""
        return self.reason in ANSWERED

    @property
    def text(self) -> str:
        """The answer as text; empty when there is none."""
        return self.output if isinstance(self.output, str) else "" if self.output is None else str(self.output)


@dataclass
class Pass:
    """A pass that runs."""

    purpose: str
    """What its requests are for, such as `improve`."""
    last: int
    """The turn before which it ends."""
    tools: frozenset[str] | None = None
    """Names of the tools that are offered and may run; None for all."""
    step: str | None = None
    """The step of a plan that it carries out."""
    conclusion: Conclusion | None = None
    """How it ended, once it has."""


@dataclass
class Place:
    """Where the loop of one agent stands. The loop moves it, and nobody else."""

    strategy: str
    """The strategy that makes the output: another one than the header's where that one delegates."""
    iteration: int | None = None
    """Turn of the loop, from 0; None outside it."""
    turns: int = 0
    """Turns of the loop that have begun; one that a hook stopped before its first question has not."""
    phase: PhaseName | None = None
    """The phase that runs; None outside of any."""
    state: KernelState | None = None
    """The state at the last step."""
    inner: Pass | None = None
    """The pass that runs inside the strategy, if one does."""
    preamble: Thread = field(default_factory=Thread)
    """The messages that come before the task: the system prompt and the examples."""
    task: Content = ""
    """The task as the model is told it."""
    closed_by: Termination | None = None
    """The end that the state says, once it does."""
    started_us: int = 0
    """When the agent began to run, in microseconds since the Unix epoch."""
    loop_began: int = 0
    """The turn in which the loop that runs began: the agent's own, or that of a pass inside it."""
    _position: int = 0

    def begin(self, now_us: int) -> None:
        """Note when the agent begins to run."""
        self.started_us = now_us

    def take_task(self, task: Content, preamble: Thread | None = None) -> None:
        """Note what the model is told as its task, and the messages that come before it."""
        self.task, self.preamble = task, preamble or self.preamble

    def enter_loop(self, iteration: int) -> None:
        """Note the turn in which a loop begins."""
        self.loop_began = iteration

    def enter_iteration(self, iteration: int | None) -> None:
        """Start a turn: positions count from 0 again. None: the loop is over."""
        self.iteration = iteration
        self._position = 0
        if iteration is not None:
            self.turns = iteration

    def enter_phase(self, phase: PhaseName, state: KernelState | None = None) -> None:
        """Start a phase, with this state."""
        self.phase, self.state = phase, state or self.state

    def count_turn(self) -> None:
        """Count the turn: no hook keeps it from its first question."""
        self.turns = (self.iteration or 0) + 1

    def delegate(self, strategy: str) -> None:
        """Note that another strategy makes the output."""
        self.strategy = strategy

    def close(self, ended: Termination) -> None:
        """Note the end that the state says."""
        self.closed_by = ended

    def take_position(self) -> int:
        """Return the next place among the calls of this turn."""
        position = self._position
        self._position += 1
        return position

    @contextmanager
    def inside(self, inner: Pass) -> Iterator[None]:
        """Let a pass run inside the one that runs, or the agent's own loop."""
        outer, self.inner = self.inner, inner
        try:
            yield
        finally:
            self.inner = outer
