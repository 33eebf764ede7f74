"""What may change or stop a run from outside: the port that hooks come through, and what a hook may answer.

The kernel asks at its chokepoints and at its phases; `playhead.compose` answers from registered functions, a replay from
a recording.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.trace.types import HookInfo

PhaseName = Literal[
    "bootstrap",
    "guardrail",
    "cost-route",
    "strategy-select",
    "think",
    "act",
    "observe",
    "verify",
    "memory-flush",
    "cost-track",
    "audit",
    "complete",
]
PHASES: Final[tuple[PhaseName, ...]] = get_args(PhaseName)
"""In the order of a run; think, act and observe repeat."""
LOOP_PHASES: Final[tuple[PhaseName, ...]] = ("think", "act", "observe")
"""Those that repeat, and in which an error may be survived."""
Timing = Literal["before", "after"]


class Suppressed(Enum):
    """The type of `SUPPRESS`."""

    SUPPRESS = "suppress"


SUPPRESS: Final = Suppressed.SUPPRESS
"""What a transform returns to remove a payload."""


@dataclass(frozen=True, slots=True)
class Stop:
    """End the run in order: status `done`, the best output so far is kept."""

    reason: str = ""
    """Why, for people; it stands in the result and in the trace."""
    switch: str | None = None
    """Name of the killswitch that says so; None for a plain hook."""
    terminated_by: str = "hook_stop"
    """The reason code of the result."""


@dataclass(frozen=True, slots=True)
class Terminate:
    """End the run as failed."""

    reason: str = ""
    """Why, for people; it stands in the result and in the trace."""
    switch: str | None = None
    """Name of the killswitch that says so; None for a plain hook."""
    terminated_by: str = "hook_terminate"
    """The reason code of the result."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Leave the phase's own work out; inside the loop the rest of the turn too. Calls not run are answered as skipped."""

    reason: str = ""
    """Why; the model is told in place of the results."""


@dataclass(frozen=True, slots=True)
class Recover:
    """Go on after an error, from this state. The turn that failed counts; its open calls are answered as failed."""

    state: KernelState
    """A state made from the one in the context, with `transition`."""
    reason: str = ""
    """Why, for people."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Do not end yet: the answer is not good enough. The model is told the reason and goes on."""

    reason: str
    """What the model is told."""


PhaseAnswer = Stop | Terminate | Skip | Resume


@dataclass(frozen=True, slots=True)
class Said:
    """What a phase hook wants, and who says so."""

    hook: str
    """The hook's name."""
    answer: PhaseAnswer
    """What it wants."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """How a run goes on after an error, and who says so."""

    hook: str
    """The hook's name."""
    state: KernelState
    """The state to go on from."""
    reason: str = ""
    """Why."""


class Hooks(Protocol):
    """What a session asks when something may be changed or stopped. A session without hooks has None, and asks nothing."""

    def info(self) -> tuple[HookInfo, ...]:
        """Return what is registered, as the header of a trace says it."""
        ...

    def below(self, own: Hooks | None) -> Hooks | None:
        """Return the hooks of an agent that is called by this one and has hooks of its own."""
        ...

    def seeds(self) -> tuple[tuple[str, Any], ...]:
        """Return the tags and payloads to emit when the agent starts."""
        ...

    def wants(self, tag: str) -> bool:
        """Return whether anybody listens to this tag."""
        ...

    async def offer(
        self,
        session: Session,
        tag: str,
        payload: Any,  # noqa: ANN401 - by tag
        key: str,
        details: Mapping[str, Any],
    ) -> Any:  # noqa: ANN401 - as the payload, or SUPPRESS
        """Return what the transforms make of a payload; taps have seen it then."""
        ...

    def at_phase(self, phase: PhaseName) -> bool:
        """Return whether anything is to be asked before, after or at an error of this phase."""
        ...

    async def ask(self, session: Session, phase: PhaseName, timing: Timing, state: KernelState) -> Said | None:
        """Return what the first hook that wants to steer says."""
        ...

    async def ask_after_error(
        self, session: Session, phase: PhaseName, state: KernelState, error: Exception
    ) -> Recovery | None:
        """Return how to go on after an error, or None."""
        ...
