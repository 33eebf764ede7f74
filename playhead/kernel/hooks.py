"""The port for hooks, which change or stop a run from outside the kernel, and the answers that hooks may return.

The kernel calls hooks at its chokepoints and phases; `playhead.compose` answers with registered functions, a replay with
recorded answers.
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
"""The phases, in the order of a run; think, act and observe repeat."""
LOOP_PHASES: Final[tuple[PhaseName, ...]] = ("think", "act", "observe")
"""The phases that repeat, and in which hooks may recover from an error."""
PHASE_OF: Final[dict[Status, PhaseName]] = {"thinking": "think", "acting": "act", "observing": "observe"}
"""The phase of each status that is not final."""
Timing = Literal["before", "after", "on-error"]


class Suppressed(Enum):
    """The type of `SUPPRESS`."""

    SUPPRESS = "suppress"


SUPPRESS: Final = Suppressed.SUPPRESS
"""A transform returns this to remove a payload."""


@dataclass(frozen=True)
class _End:
    reason: str = ""
    """The reason as text, for the result and the trace."""
    switch: str | None = None
    """Name of the killswitch that ends the run; None for a plain hook."""
    terminated_by: str = "hook_stop"
    """The reason code of the result."""


class Stop(_End):
    """End the run in order, with status `done` and the best output so far."""


@dataclass(frozen=True)
class Terminate(_End):
    """End the run as failed."""

    terminated_by: str = "hook_terminate"
    """The reason code of the result."""


@dataclass(frozen=True)
class Skip:
    """Skip the phase's own work, and inside the loop also the rest of the turn. Calls that did not run are answered as skipped."""

    reason: str = ""
    """The reason, which the model gets in place of the results."""


@dataclass(frozen=True)
class Recover:
    """Continue after an error, from this state. The failed turn counts; its open calls are answered as failed."""

    state: KernelState
    """The new state, made from the context's state with `transition`."""
    reason: str = ""
    """The reason, for the trace."""


@dataclass(frozen=True)
class Resume:
    """Reject the answer: the model gets the reason, and the run continues."""

    reason: str
    """The reason, which the model reads."""


@dataclass(frozen=True)
class Nudge:
    """Send the model a message; before `complete`, this also rejects its answer, and the loop continues."""

    text: str
    """The message."""
    name: str = "hook"
    """The nudge's tag is `nudge.<name>`; declare your own names with `declare_tag`."""
    severity: Literal["info", "warn", "critical"] = "info"
    """The severity, for readers of the trace."""
    otherwise: Stop | Terminate | None = None
    """Before `complete`, how the run ends if no turn is left or a hook removes the text; None means that the answer is accepted."""


@dataclass(frozen=True)
class Answer:
    """Replace the model's answer with another output; later hooks check the new output."""

    value: JsonValue


@dataclass(frozen=True)
class SwitchTo:
    """Let another strategy take over, with the steps and turns so far."""

    strategy: object
    """A strategy, such as `Reflexion(max_retries=1)`, or a strategy's name."""
    why: str = ""
    """The reason, which is passed to the new strategy."""


@dataclass(frozen=True)
class Unmet:
    """A requirement of a block that an answer does not meet yet."""

    what: str
    """What to do, in words for the model: `call search (2 more times)`."""
    tool: str | None = None
    """The tool to call, if a call is missing."""
    calls: int = 1
    """The number of results still required from the tool."""


PhaseAnswer = Stop | Terminate | Skip | Resume | Nudge | Answer | SwitchTo | Recover


class HookReply(NamedTuple):
    """A phase hook's answer, and the hook that gave it."""

    hook: str
    """The hook's name."""
    answer: PhaseAnswer
    """The answer."""
    policy: str | None = None
    """The built-in policy that the hook belongs to."""


class Wait(NamedTuple):
    """Wait, and ask again when `until` is set."""

    until: anyio.Event
    """Set when the answer may have changed."""
    undo: Callable[[], object] = lambda: None
    """Called when the wait is over."""


@dataclass(frozen=True)
class Refuse:
    """Do not run this call; the model gets the reason, and the run continues."""

    why: str
