"""Helpers for testing agents: a scripted model, a deterministic clock, and assertions with clear messages.

PYTEST_DONT_REWRITE: its assertions say what was wrong; pytest would add `assert False`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from playhead.agent.streaming import StreamCompleted, StreamEnd, text_of
from playhead.diagnose.parts import cost_text
from playhead.errors import ModelError, ModelRequestError, ModelUnavailableError
from playhead.kernel.models.base import TextPiece, ToolFormat
from playhead.trace.types import Completion, Message, Prices, Request, ToolCall, Usage

if TYPE_CHECKING:
    from playhead.agent.result import RunResult
    from playhead.agent.streaming import StreamEvent

Match = str | re.Pattern[str]
_WORD = re.compile(r"\s*\S+|\s+")
"""A word with the space before it, or trailing space."""


@dataclass(frozen=True)
class Turn:
    """One answer of the model."""

    text: str = ""
    """What it says."""
    calls: tuple[ToolCall, ...] = ()
    """The calls it asks for."""
    thinking: str | None = None
    """Its reasoning."""
    error: ModelError | None = None
    """Raised instead of answering."""
    match: Match | None = None
    """Answer only requests that contain this substring or match this compiled pattern. The longest match wins."""
    delay_s: float = 0.0
    """Delay before the answer, in seconds."""
    usage: Usage | None = None
    """Tokens used, also by a failure. The default for an answer is one per message in and one per word out."""
    finish_reason: str | None = None
    """`stop` or `tool_calls` by default."""


TurnLike = Turn | Callable[[Request], Turn]


def text(content: str, **fields: Any) -> Turn:  # noqa: ANN401 - fields of Turn
    """Return a turn with text."""
    return Turn(text=content, **fields)


def call(tool: str, /, **arguments: Any) -> Turn:  # noqa: ANN401 - the tool's own arguments
    """Return a turn that calls one tool."""
    return Turn(calls=(ToolCall(id="", name=tool, arguments=arguments),))


def calls(*turns: Turn, **fields: Any) -> Turn:  # noqa: ANN401 - fields of Turn
    """Return a turn that makes all the calls of these turns at once."""
    return Turn(calls=tuple(each for turn in turns for each in turn.calls), **fields)


def error(message: str, *, retryable: bool = False, **fields: Any) -> Turn:  # noqa: ANN401 - fields of Turn
    """Return a turn in which the provider fails. The agent retries a retryable failure."""
    return Turn(error=ModelUnavailableError(message) if retryable else ModelRequestError(message), **fields)


@dataclass
class ScriptedModel:
    """A model that answers from a list of turns, in order.

    A turn with a `match` answers every matching request, regardless of its position. A turn may also be a function
    from the request to a turn. The model raises an error when no turns are left.
    """

    turns: Sequence[TurnLike]
    name: str = "scripted/model"
    tool_format: ToolFormat = "native"
    """How tools are sent: `native` or `text`."""
    requests: list[Request] = field(default_factory=list)
    """All requests so far, for inspection in tests."""
    keep_requests: bool = True
    """Whether to keep requests. Each holds the whole thread, so memory grows with the square of the steps."""

    def __post_init__(self) -> None:
        self._matching = [turn for turn in self.turns if isinstance(turn, Turn) and turn.match is not None]
        self._queue = [turn for turn in self.turns if not (isinstance(turn, Turn) and turn.match is not None)]
        self._next = 0
        self._lock = threading.RLock()

    @property
    def secrets(self) -> Mapping[str, str]:
        """Return no secrets."""
        return {}

    async def prices(self) -> Prices | None:
        """Return a price of zero."""
        return Prices(input_usd=0.0, output_usd=0.0)

    async def complete(self, request: Request) -> Completion:
        """Answer with the turn that matches the request best, or with the next turn."""
        turn = self._turn_for(request)
        if turn.delay_s:
            await anyio.sleep(turn.delay_s)
        if turn.error is not None:
            failure = type(turn.error)(*turn.error.args)
            if turn.usage is not None:
                failure.usage = turn.usage
            raise failure
        return Completion(
            text=turn.text,
            thinking=turn.thinking,
            tool_calls=turn.calls,
            finish_reason=turn.finish_reason or ("tool_calls" if turn.calls else "stop"),
            usage=turn.usage or Usage(input_tokens=len(request.messages), output_tokens=len(turn.text.split()) + 1),
            cost_usd=0.0,
            model=self.name,
        )

    async def stream(self, request: Request) -> AsyncGenerator[TextPiece | Completion]:
        """Stream the answer of `complete` word by word, including a subclass's override."""
        completion = await self.complete(request)
        for word in _WORD.findall(completion.text):
            yield TextPiece(word)
            await anyio.lowlevel.checkpoint()
        yield completion

    def _turn_for(self, request: Request) -> Turn:
        with self._lock:
            if self.keep_requests:
                self.requests.append(request)
            turn = (self._best_match(request) if self._matching else None) or self._take()
        return turn if isinstance(turn, Turn) else turn(request)

    def _take(self) -> TurnLike:
        if self._next >= len(self._queue):
            raise ModelRequestError(f"the script has no more turns: all {len(self._queue)} are used")
        self._next += 1
        return self._queue[self._next - 1]

    def _best_match(self, request: Request) -> Turn | None:
        lengths = [(_match_length(turn.match, request.messages), turn) for turn in self._matching]
        best = max(lengths, key=lambda each: each[0])
        return best[1] if best[0] > 0 else None


def _match_length(match: Match | None, messages: tuple[Message, ...]) -> int:
    texts = [message.content for message in messages if isinstance(message.content, str)]
    if isinstance(match, str):
        return len(match) if any(match in each for each in texts) else 0
    found = [hit for each in texts if match is not None and (hit := match.search(each))]
    return max((len(hit[0]) for hit in found), default=0)


def with_match(turn: Turn, match: Match) -> Turn:
    """Return the turn, which may be used again for the next matching request."""
    return replace(turn, match=match)


class TickingClock:
    """A clock that advances by a fixed step on each read, so that runs have reproducible times."""

    def __init__(self, start_us: int = 1_790_000_000_000_000, step_us: int = 1_000) -> None:
        self._now_us = start_us - step_us
        self._step_us = step_us

    def now_us(self) -> int:
        """Return the next tick in microseconds since the Unix epoch."""
        self._now_us += self._step_us
        return self._now_us


def assert_tool_called(result: RunResult, name: str, *, times: int | None = None) -> None:
    """Assert that the run called this tool, exactly `times` times if given."""
    called = [step.tool for step in result.steps if step.type == "action"]
    count = called.count(name)
    assert count > 0 if times is None else count == times, f"{name} was called {count} times; calls: {called}"  # noqa: S101


def assert_step_count(result: RunResult, *, minimum: int = 0, maximum: int | None = None) -> None:
    """Assert that the run took this many steps."""
    count = len(result.steps)
    assert count >= minimum and (maximum is None or count <= maximum), f"the run took {count} steps"  # noqa: S101, PT018


def assert_cost_under(result: RunResult, usd: float) -> None:
    """Assert that the run cost less than this. An unknown cost fails the assertion."""
    cost, unknown = result.cost_usd, result.cost_unknown
    said = f"the run cost {cost_text(cost, unknown) or 'nobody knows what'}"
    assert cost is not None and not unknown and cost < usd, said  # noqa: S101, PT018


def assert_stream(
    events: Iterable[StreamEvent],
    *kinds: type[StreamEvent],
    end: type[StreamEnd] = StreamCompleted,
    text: str | None = None,
) -> None:
    """Assert that these are the complete events of one run, with exactly one final event at the end.

    Args:
        events: the events, as returned by `playhead.agent.streaming.collect`.
        kinds: event classes that must occur in this order; other events may occur in between.
        end: the class of the final event: `StreamCompleted`, `StreamError` or `StreamCancelled`.
        text: the expected text of the root agent; None accepts any text.
    """
    found = list(events)
    names = [type(event).__name__ for event in found]
    ends = [event for event in found if isinstance(event, StreamEnd)]
    assert len(ends) == 1 and found[-1] is ends[0], f"a stream ends once, with its last event; it was: {names}"  # noqa: S101, PT018
    assert isinstance(found[-1], end), f"it ended with {found[-1]}, not with {end.__name__}"  # noqa: S101
    rest = iter(found)
    for kind in kinds:
        # `in` consumes the iterator up to the event, so the next kind is searched after it.
        assert any(isinstance(event, kind) for event in rest), f"no {kind.__name__} came in its place; it was: {names}"  # noqa: S101
    said = text_of(found)
    assert text is None or said == text, f"the agent said {said!r}, not {text!r}"  # noqa: S101


__all__ = [
    "ScriptedModel",
    "TickingClock",
    "Turn",
    "assert_cost_under",
    "assert_step_count",
    "assert_stream",
    "assert_tool_called",
    "call",
    "calls",
    "error",
    "text",
    "with_match",
]
