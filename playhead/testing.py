"""For tests of agents: a scripted model, a clock that ticks, and assertions that say what they saw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.kernel.models.scripted import ScriptedModel, Turn, call, calls, error, text, with_match

if TYPE_CHECKING:
    from playhead.result import RunResult


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
    assert result.cost_usd is not None and result.cost_usd < usd, f"the run cost {result.cost_usd} US dollars"  # noqa: S101, PT018


__all__ = [
    "ScriptedModel",
    "TickingClock",
    "Turn",
    "assert_cost_under",
    "assert_step_count",
    "assert_tool_called",
    "call",
    "calls",
    "error",
    "text",
    "with_match",
]
