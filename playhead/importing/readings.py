"""What a span says, whatever the convention: a model call, a tool call, or an agent. None stands for what it does not say."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from playhead.importing.values import NOTHING

if TYPE_CHECKING:
    from playhead.trace.events import ErrorInfo
    from playhead.trace.types import Content, Role, ToolSpec
    from playhead.trace.usage import Usage
    from playhead.trace.values import JsonValue

Kind = Literal["model", "tool", "agent", "other"]
_T = TypeVar("_T", "ModelReading", "ToolReading", "AgentReading")


@dataclass(frozen=True, slots=True)
class ForeignCall:
    """A call that a model asked for."""

    id: str | None
    name: str
    arguments: dict[str, JsonValue] | None
    """None when they are no JSON object."""
    raw: str | None = None
    """The text of the arguments, when they are none."""


@dataclass(frozen=True, slots=True)
class ForeignMessage:
    """A message of a prompt, or an answer."""

    role: Role
    content: Content = ""
    calls: tuple[ForeignCall, ...] = ()
    call_id: str | None = None
    """In a result, the call that it answers."""
    name: str | None = None
    """In a result, the tool's name."""
    thinking: str | None = None
    lost: tuple[str, ...] = ()
    """Kinds of parts that have no place in a recording, such as `audio`."""
    known: bool = True
    """Whether its content is in the span: only that there is a message may be."""


@dataclass(frozen=True, slots=True)
class ModelReading:
    """A model call."""

    model: str | None = None
    answered_by: str | None = None
    """The model, as the provider calls it in its answer."""
    provider: str | None = None
    address: str | None = None
    parameters: dict[str, JsonValue] | None = None
    unrecorded: tuple[str, ...] = ()
    """Parameters that a recording does not hold, since they may be credentials."""
    messages: tuple[ForeignMessage, ...] | None = None
    answer: ForeignMessage | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    unread: tuple[str, ...] = ()
    """Attributes that should be numbers of tokens or a cost, and are none."""
    cost_usd: float | None = None
    tools: tuple[ToolSpec, ...] | None = None
    cut: int | None = None
    """Messages of the prompt that the span says it does not show."""


@dataclass(frozen=True, slots=True)
class ToolReading:
    """A tool call."""

    name: str | None = None
    call_id: str | None = None
    arguments: dict[str, JsonValue] | None = None
    raw: str | None = None
    """What was given, when it is no JSON object."""
    result: JsonValue = NOTHING
    description: str | None = None
    parameters: dict[str, Any] | None = None
    """JSON Schema of the arguments."""


@dataclass(frozen=True, slots=True)
class OwnAgent:
    """What a span of Playhead's own export says of its agent: all that a replay needs to run it in the same way."""

    header: dict[str, Any]
    """The agent's header without its name, model and examples, which the spans hold in other places."""
    tools: tuple[ToolSpec, ...]
    requests: int
    """Spans of model calls that the agent has."""
    calls: int
    """Spans of tool calls that it has."""
    decided: tuple[str, ...]
    """The kinds of events besides that steered it, such as `approval-decided`."""


@dataclass(frozen=True, slots=True)
class AgentReading:
    """An agent, or a program's outermost span."""

    name: str | None = None
    task: str | None = None
    output: JsonValue = NOTHING
    own: OwnAgent | None = None
    """What Playhead's own export says of it besides."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything that a span says."""

    kind: Kind
    convention: str | None = None
    model: ModelReading | None = None
    tool: ToolReading | None = None
    agent: AgentReading | None = None
    error: ErrorInfo | None = None
    """What went wrong, when its status says so."""


def merged(first: _T | None, second: _T | None) -> _T | None:
    """Return what the first says, and where it says nothing, what the second does."""
    if first is None or second is None:
        return first or second
    missing = {
        each.name: getattr(second, each.name)
        for each in fields(first)
        if (said := getattr(first, each.name)) is None or said is NOTHING or said == ()
    }
    return replace(first, **missing)
