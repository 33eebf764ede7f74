"""The typed events of a run's stream, and adapters for them. See `Agent.start`.

There are two densities: `tokens` streams the root agent's text and progress; `full` adds phases, thoughts, calls and
sub-agents. A stream ends with exactly one `StreamCompleted`, `StreamError` or `StreamCancelled`.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from playhead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Iterable

    from playhead.trace.values import JsonValue

Density = Literal["tokens", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvent:
    """The base class of the events of a stream."""

    owner: str = "root"
    """The agent: `root`, or the call that started a sub-agent, such as `root/researcher@3.0`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta(StreamEvent):
    """The next piece of the model's text; the whole text if the model does not stream or hooks must see it first."""

    text: str
    """The piece."""
    request: int = 0
    """The id of the request. Pieces of concurrent requests may interleave."""
    attempt: int = 0
    """The attempt number of that request."""
    purpose: str = "think"
    """The purpose of the request: `think`, `synthesis`, `critique`, …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDiscarded(StreamEvent):
    """Discard all pieces of this request and attempt so far: they are not part of an answer."""

    request: int
    """The request."""
    attempt: int
    """The attempt."""
    reason: str
    """The reason: the connection broke, the run ended, …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationProgress(StreamEvent):
    """A turn of the loop begins."""

    iteration: int
    """The turn, from 0."""
    max_iterations: int
    """The maximum number of turns."""
    tokens_used: int | None
    """Tokens used so far, including sub-agents; None as soon as an answer's tokens are unknown."""
    tools_called_this_step: tuple[str, ...] = ()
    """The tools called in the previous step, in starting order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPaused(StreamEvent):
    """The agent is paused before its next phase."""

    reason: str
    """The reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResumed(StreamEvent):
    """The agent continues."""

    reason: str
    """The reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseStarted(StreamEvent):
    """A phase of the loop begins; with density `full`."""

    phase: str
    """`think`, `act` or `observe`."""
    timestamp: int
    """Microseconds since the Unix epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseCompleted(StreamEvent):
    """A phase of the loop is over; with density `full`."""

    phase: str
    """`think`, `act` or `observe`."""
    duration_ms: float
    """The duration in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThoughtEmitted(StreamEvent):
    """The model wrote text in addition to its calls; with density `full`."""

    content: str
    """The text."""
    iteration: int | None = None
    """The turn, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallStarted(StreamEvent):
    """A call begins; with density `full`."""

    tool_name: str
    """The tool."""
    call_id: str
    """The call; unique in its agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallCompleted(StreamEvent):
    """A call is over; with density `full`."""

    tool_name: str
    """The tool."""
    call_id: str
    """The call; unique in its agent."""
    duration_ms: float
    """The duration in milliseconds."""
    success: bool
    """Whether it returned a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSummary:
    """Statistics of one tool's calls in the whole run."""

    tool_name: str
    """The tool."""
    calls: int
    """Calls that ended."""
    success_rate: float
    """The share of calls that returned a result, from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEnd(StreamEvent):
    """The common fields of the three final events."""

    task_id: str
    """The run's id."""
    output: JsonValue = None
    """The answer, or the best output so far, with secrets redacted as in the trace."""
    metadata: dict[str, JsonValue] = field(default_factory=dict)
    """`status`, `terminated_by`, `terminated_source`, `iterations`, `tokens`, `cost_usd`, `duration_ms`, `lost_events`
    (the number of events that could not be recorded or streamed); empty if the run did not begin."""
    agent_id: str | None = None
    """The agent's name."""
    tool_summary: tuple[ToolSummary, ...] = ()
    """One entry for each tool that was called, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCompleted(StreamEnd):
    """The run ended regularly: with an answer or at a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamError(StreamEnd):
    """The run has failed."""

    cause: str
    """What failed, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCancelled(StreamEnd):
    """The caller ended the run."""

    reason: str
    """The reason."""


def as_json(event: StreamEvent) -> dict[str, Any]:
    """Return an event as a JSON object; `type` is its class name."""
    return {"type": type(event).__name__, **asdict(event)}


async def to_sse(events: AsyncIterable[StreamEvent], *, heartbeat_s: float | None = None) -> AsyncIterator[bytes]:
    """Yield a run's events as server-sent events: `event:` is the class name, `data:` the fields as JSON.

    If the reader stops iterating, the run continues. Wrap the handle in `async with` to terminate it then.

    Args:
        events: a handle, or any async iterable of events.
        heartbeat_s: seconds of silence before a comment is sent to keep proxies from closing the connection.

    Raises:
        UsageError: the handle's events were already read, or `heartbeat_s` is not above 0.
    """
    if heartbeat_s is not None and not heartbeat_s > 0:
        raise UsageError(f"heartbeat_s is a number of seconds above 0; it is {heartbeat_s!r}")
    coming = aiter(events)
    while True:
        # Not cancelled for a heartbeat: that would end a generator, and the stream without its last event.
        coming_next = asyncio.ensure_future(anext(coming, None))
        try:
            while not (await asyncio.wait([coming_next], timeout=heartbeat_s))[0]:
                yield b": heartbeat\n\n"
        finally:
            coming_next.cancel()
        event = coming_next.result()
        if event is None:
            return
        yield _framed(event)


async def collect(events: AsyncIterable[StreamEvent]) -> list[StreamEvent]:
    """Wait until a run ends and return all its events."""
    return [event async for event in events]


def text_of(events: Iterable[StreamEvent], owner: str = "root") -> str:
    """Return the text of an agent's model, in request order, without discarded pieces."""
    texts: dict[tuple[int, int], str] = {}
    for event in events:
        if isinstance(event, TextDelta) and event.owner == owner:
            place = (event.request, event.attempt)
            texts[place] = texts.get(place, "") + event.text
        elif isinstance(event, TextDiscarded) and event.owner == owner:
            texts.pop((event.request, event.attempt), None)
    return "".join(texts[place] for place in sorted(texts))


def _framed(event: StreamEvent) -> bytes:
    # One line: JSON escapes every line break.
    data = json.dumps(as_json(event), ensure_ascii=False, separators=(",", ":"))
    return f"event: {type(event).__name__}\ndata: {data}\n\n".encode(errors="replace")
