"""The state of a loop: immutable, serialisable, changed only by `transition`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, field_serializer

from playhead.trace.base import altered
from playhead.trace.events import ToolCallCompleted
from playhead.trace.types import Message, Range, Rationale, ToolCall, Usage, with_ids
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
    """Their ids, as inclusive ranges in the same order."""

    def add(self, *messages: Message | None) -> Thread:
        """Return the thread with these messages at its end; None is a message that a hook removed."""
        new, ids = [], []
        for message in messages:
            if message is not None:
                new.append(message)
                ids.append(message.id)
        return Thread(self.messages + tuple(new), with_ids(self.ranges, ids))


@dataclass(frozen=True, slots=True)
class Step:
    """One thing the agent did: a thought, a call, a result."""

    type: Literal["thought", "action", "observation", "plan", "reflection", "critique"]
    """The kind of step."""
    content: str
    """The thought, the arguments as JSON, or the result as the model sees it."""
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
    """A call with its position in the turn."""

    call: ToolCall
    """The call as the model wrote it."""
    position: int
    """Position among the calls of the turn, from 0."""
    source: Literal["native", "text", "plan", "tool", "program"] = "native"
    """The origin of the call."""
    request: int | None = None
    """The request whose answer has the call."""
    rationale: Rationale | None = None
    """The model's own reason."""
    step: str | None = None
    """The plan step that it carries out."""
    written: str | None = None
    """The original text of a call whose JSON was repaired."""
    cut_off: bool = False
    """Whether the reply was cut off, so that the arguments may be incomplete."""
    strand: int | None = None
    """In a recorded program: the thread or task that made the call."""
    turn: int | None = None
    """In a recorded program, where other threads begin turns meanwhile: that in which the call was made."""


class KernelState(BaseModel):
    """The whole state of a strategy between two steps."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    task_id: str
    """The run's id."""
    strategy: str
    """The strategy's registered name."""
    status: Status = "thinking"
    """The next phase, or how the loop ended."""
    iteration: int = 0
    """Turn of the loop, from 0."""
    thread: Thread = Thread()
    """The messages so far."""
    steps: tuple[Step, ...] = ()
    """The steps so far."""
    tools_used: frozenset[str] = frozenset()
    """Tools that returned a result."""
    decision_log: tuple[str, ...] = ()
    """Decisions about the strategy, in words."""
    usage: Usage = Field(default_factory=Usage)
    """Tokens of the agent's model calls and of those of agents below it."""
    cost_usd: float | None = 0.0
    """US dollars for `usage`, as far as prices are known; None if nothing is known of them."""
    pending: tuple[PlannedCall, ...] = ()
    """Calls that have not run yet."""
    completed: tuple[ToolCallCompleted, ...] = ()
    """Results of this turn that have not joined the thread yet."""
    output: JsonValue = None
    """The answer; while a strategy runs, its best output so far, which a stopped run returns."""
    error: str | None = None
    """The error of a failed run."""
    meta: dict[str, JsonValue] = Field(default_factory=dict)
    """A strategy's own notes, as JSON."""

    @field_serializer("tools_used")
    def _sorted(self, names: frozenset[str]) -> list[str]:
        return sorted(names)

    @property
    def last_observation(self) -> str | None:
        """The newest successful result, as the model sees it."""
        found = (step.content for step in reversed(self.steps) if step.type == "observation" and step.ok)
        return next(found, None)

    @property
    def best(self) -> JsonValue:
        """The best output so far: the strategy's own, else the newest result.

        The output of a final state does not count, because hooks may reject it.
        """
        return self.last_observation if self.output is None or self.status in FINAL else self.output


_FIELDS = frozenset(KernelState.model_fields)


def transition(state: KernelState, **changes: Any) -> KernelState:  # noqa: ANN401 - the fields of the state
    """Return a new state with these fields changed: the only way to change a state.

    Raises:
        TypeError: a field does not exist.
    """
    if not changes.keys() <= _FIELDS:
        unknown = changes.keys() - _FIELDS
        raise TypeError(f"KernelState has no {', '.join(sorted(unknown))}")
    return altered(state, changes)
