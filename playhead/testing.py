"""For tests of agents: a scripted model, a clock that ticks, and assertions that say what they saw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.agent.streaming import StreamCompleted, StreamEnd, text_of
from playhead.diagnose.tokens import cost_text
from playhead.kernel.models.scripted import ScriptedModel, Turn, call, calls, error, text, with_match

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.agent.result import RunResult
    from playhead.agent.streaming import StreamEvent


class TickingClock:
    """A clock that moves by the same step each time it is read, so that two runs have the same times."""

    def __init__(self, start_us: int = 1_790_000_000_000_000, step_us: int = 1_000) -> None:
        self._now_us = start_us - step_us
        self._step_us = step_us

    def now_us(self) -> int:
        """Return the next tick in microseconds since the Unix epoch."""
        self._now_us += self._step_us
        return self._now_us


def assert_tool_called(result: RunResult, name: str, *, times: int | None = None) -> None:
    """Fail unless the run called this tool, exactly `times` times when that is given."""
    called = [step.tool for step in result.steps if step.type == "action"]
    count = called.count(name)
    assert count > 0 if times is None else count == times, f"{name} was called {count} times; calls: {called}"  # noqa: S101


def assert_step_count(result: RunResult, *, minimum: int = 0, maximum: int | None = None) -> None:
    """Fail unless the run took this many steps."""
    count = len(result.steps)
    assert count >= minimum and (maximum is None or count <= maximum), f"the run took {count} steps"  # noqa: S101, PT018


def assert_cost_under(result: RunResult, usd: float) -> None:
    """Fail unless the run cost less; a cost that is not known is not under anything."""
    cost, unknown = result.cost_usd, result.cost_unknown
    said = f"the run cost {cost_text(cost, unknown) or 'nobody knows what'}"
    assert cost is not None and not unknown and cost < usd, said  # noqa: S101, PT018


def assert_stream(
    events: Iterable[StreamEvent],
    *kinds: type[StreamEvent],
    end: type[StreamEnd] = StreamCompleted,
    text: str | None = None,
) -> None:
    """Fail unless these are all events of one run, with one end, which comes last.

    Args:
        events: the events, as `playhead.agent.streaming.collect` gives them.
        kinds: classes of events that came, each after the one before; others may have come between.
        end: the class of the last one: `StreamCompleted`, `StreamError` or `StreamCancelled`.
        text: what the root agent said; None: whatever it said.
    """
    found = list(events)
    names = [type(event).__name__ for event in found]
    ends = [event for event in found if isinstance(event, StreamEnd)]
    assert len(ends) == 1 and found[-1] is ends[0], f"a stream ends once, with its last event; it was: {names}"  # noqa: S101, PT018
    assert isinstance(found[-1], end), f"it ended with {found[-1]}, not with {end.__name__}"  # noqa: S101
    rest = iter(found)
    for kind in kinds:
        # Takes what comes before the event, too: the next kind is looked for after it.
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
