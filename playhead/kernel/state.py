"""The state of a loop: immutable, serialisable, changed only by `transition`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, field_serializer

from playhead.trace.events import ToolCallCompleted
from playhead.trace.types import Message, Range, Rationale, ToolCall, Usage, altered, with_ids
from playhead.trace.values import JsonValue

Status = Literal["thinking", "acting", "observing", "done", "failed"]
FINAL: frozenset[Status] = frozenset({"done", "failed"})


@dataclass(frozen=True, slots=True)
class Thread:
    """The messages that the next request will send, and their ids as ranges.

    No pydantic model, because that would look at every message again for each one that is added.
    """

    messages: tuple[Message, ...] = ()
    """The messages, in send order."""
    ranges: tuple[Range, ...] = ()
    """Their ids, as inclusive ranges in the same order; kept along so that no request has to walk the thread."""

    def add(self, *messages: Message | None) -> Thread:
        """Return the thread with these messages at its end; None stands for one that a hook removed."""
        new, ids = [], []
        for message in messages:
            if message is not None:
                new.append(message)
                ids.append(message.id)
        return Thread(self.messages + tuple(new), with_ids(self.ranges, ids))


@dataclass(frozen=True, slots=True)
class Step:
    """One thing the agent did: a thought, a call or what came back."""

    type: Literal["thought", "action", "observation", "plan", "reflection", "critique"]
    """What it is."""
    content: str
    """The thought, the arguments as JSON, or what the model was told."""
    iteration: int
    """Turn of the loop, from 0."""
    tool: str | None = None
    """The tool, for actions and observations."""
    call_id: str | None = None
    """The call, for actions and observations."""
    ok: bool | None = None
    """Whether the call succeeded, for observations."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that was asked for and has its place in the turn."""

    call: ToolCall
    """What the model asked for."""
    position: int
    """Place among the calls of the iteration, from 0."""
    source: Literal["native", "text", "plan", "tool"] = "native"
    """How it was asked for."""
    request: int | None = None
    """The request whose answer asked for it."""
    rationale: Rationale | None = None
    """The model's own reason."""
    step: str | None = None
    """The step of a plan that it is."""
    written: str | None = None
    """The text of a call in text whose JSON had to be repaired to be read."""
    cut_off: bool = False
    """Whether the reply was cut off, so that arguments which are not whole are not complete."""


class KernelState(BaseModel):
    """Everything a strategy knows, between two steps."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    task_id: str
    """The run's id."""
    strategy: str
    """The strategy's registered name."""
    status: Status = "thinking"
    """What comes next."""
    iteration: int = 0
    """Turn of the loop, from 0."""
    thread: Thread = Thread()
    """The messages so far."""
    steps: tuple[Step, ...] = ()
    """What was done so far."""
    tools_used: frozenset[str] = frozenset()
    """Tools that returned a result."""
    decision_log: tuple[str, ...] = ()
    """What controllers decided, in words."""
    usage: Usage = Field(default_factory=Usage)
    """Tokens of this agent's own model calls and of those below it."""
    cost_usd: float | None = 0.0
    """US dollars for `usage`; None when a price is not known."""
    pending: tuple[PlannedCall, ...] = ()
    """Calls that were asked for and not yet run."""
    completed: tuple[ToolCallCompleted, ...] = ()
    """Calls of this turn that ended and have not yet joined the thread."""
    output: JsonValue = None
    """The answer, once there is one; while a strategy runs, the best it has, which is kept when the run is stopped."""
    error: str | None = None
    """What broke, in a failed run."""
    meta: dict[str, JsonValue] = Field(default_factory=dict)
    """A strategy's own notes, as JSON."""

    @field_serializer("tools_used")
    def _sorted(self, names: frozenset[str]) -> list[str]:
        return sorted(names)

    @property
    def last_observation(self) -> str | None:
        """What the newest successful call returned, as the model was told: the best there is without an answer."""
        found = (step.content for step in reversed(self.steps) if step.type == "observation" and step.ok)
        return next(found, None)

    @property
    def best(self) -> JsonValue:
        """The best answer so far: what a strategy that runs holds for one, else the newest result.

        An answer with which it came to its end is none: hooks may not let it stand.
        """
        return self.last_observation if self.output is None or self.status in FINAL else self.output


_FIELDS = frozenset(KernelState.model_fields)


def transition(state: KernelState, **changes: Any) -> KernelState:  # noqa: ANN401 - the fields of the state
    """Return a new state with these fields changed: the only way to change one.

    Raises:
        TypeError: a field does not exist.
    """
    if not changes.keys() <= _FIELDS:
        unknown = changes.keys() - _FIELDS
        raise TypeError(f"KernelState has no {', '.join(sorted(unknown))}")
    return altered(state, changes)
