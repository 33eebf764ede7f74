"""What may change or stop a run from outside: the port that hooks come through, and what a hook may answer.

The kernel asks at its chokepoints and at its phases; `playhead.compose` answers from registered functions, a replay from
a recording.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from collections.abc import Callable

    import anyio

    from playhead.kernel.state import KernelState, Status
    from playhead.trace.values import JsonValue

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
PHASE_OF: Final[dict[Status, PhaseName]] = {"thinking": "think", "acting": "act", "observing": "observe"}
"""The phase of each status that is not final."""
Timing = Literal["before", "after", "on-error"]


class Suppressed(Enum):
    """The type of `SUPPRESS`."""

    SUPPRESS = "suppress"


SUPPRESS: Final = Suppressed.SUPPRESS
"""What a transform returns to remove a payload."""


@dataclass(frozen=True)
class _End:
    reason: str = ""
    """Why, for people; it stands in the result and in the trace."""
    switch: str | None = None
    """Name of the killswitch that says so; None for a plain hook."""
    terminated_by: str = "hook_stop"
    """The reason code of the result."""


class Stop(_End):
    """End the run in order: status `done`, the best output so far is kept."""


@dataclass(frozen=True)
class Terminate(_End):
    """End the run as failed."""

    terminated_by: str = "hook_terminate"
    """The reason code of the result."""


@dataclass(frozen=True)
class Skip:
    """Leave the phase's own work out; inside the loop the rest of the turn too. Calls not run are answered as skipped."""

    reason: str = ""
    """Why; the model is told in place of the results."""


@dataclass(frozen=True)
class Recover:
    """Go on after an error, from this state. The turn that failed counts; its open calls are answered as failed."""

    state: KernelState
    """A state made from the one in the context, with `transition`."""
    reason: str = ""
    """Why, for people."""


@dataclass(frozen=True)
class Resume:
    """Do not end yet: the answer is not good enough. The model is told the reason and goes on."""

    reason: str
    """What the model is told."""


@dataclass(frozen=True)
class Nudge:
    """Tell the model something; before `complete` that also sends its answer back, and the loop goes on."""

    text: str
    """What the model is told."""
    name: str = "hook"
    """Its tag is `nudge.<name>`; one of your own is made known with `declare_tag`."""
    severity: Literal["info", "warn", "critical"] = "info"
    """How grave it is."""
    otherwise: Stop | Terminate | None = None
    """Before `complete`, how the run ends when no turn is left or a hook removes the text; None: the answer stands."""


@dataclass(frozen=True)
class Answer:
    """Another output in place of the model's answer; the hooks after this one are asked about it."""

    value: JsonValue


@dataclass(frozen=True)
class SwitchTo:
    """Another strategy takes over, with the steps and turns so far."""

    strategy: object
    """A strategy, such as `Reflexion(max_retries=1)`, or the name of one."""
    why: str = ""
    """Why; the strategy that takes over is told."""


@dataclass(frozen=True)
class Unmet:
    """Something that a block still requires before an answer may stand."""

    what: str
    """What is to be done, as the model is told it: `call search (2 more times)`."""
    tool: str | None = None
    """The tool that is to be called, if that is what is missing."""
    calls: int = 1
    """Results that the tool still has to return."""


PhaseAnswer = Stop | Terminate | Skip | Resume | Nudge | Answer | SwitchTo | Recover


class Said(NamedTuple):
    """What a phase hook wants, and who says so."""

    hook: str
    """The hook's name."""
    answer: PhaseAnswer
    """What it wants."""
    policy: str | None = None
    """The policy of Playhead's own that the hook belongs to."""


class Wait(NamedTuple):
    """Not now: ask again when this is set."""

    until: anyio.Event
    """Set when it may have changed."""
    undo: Callable[[], object] = lambda: None
    """Called when nobody waits for that any more."""


@dataclass(frozen=True)
class Refuse:
    """This call does not run; the model is told why, and the run goes on."""

    why: str
