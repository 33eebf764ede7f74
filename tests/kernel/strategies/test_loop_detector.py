"""Loops that are noticed, and required tools that fail for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from playhead.compose.policies import LoopDetection
from playhead.compose.policies.loops import find_loop
from playhead.kernel.state import Step
from playhead.testing import call, text
from tests.kernel.runs import data, ending, make_agent
from tests.kernel.runs import ended as ended_as
from tests.kernel.strategies.stuck import SAME, STUCK, broken, lookup, strategies, stuck  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from pathlib import Path


class TestDetector:
    def test_the_defaults(self):
        """Those of X40; they are recorded."""
        agent = make_agent(None, [], loop_detection=True)
        (detection,) = agent.header.hooks
        assert (detection.role, detection.name) == ("policy", "detect_loops")
        assert (detection.settings or {})["detection"] == {
            "window": 6,
            "identical_calls": 3,
            "identical_thoughts": 2,
            "thinks_without_act": 3,
        }
        assert make_agent(None, []).header.hooks == ()

    @pytest.mark.parametrize(
        ("steps", "turn", "pattern"),
        [
            ("a0 a1 a2", 3, "calls"),
            ("a0 b1 a2 b3 a4", 5, "calls"),
            ("a0 b1 c2 d3 a4 b5 a6", 7, None),
            ("ta0 a0 ta1 a1", 2, "thoughts"),
            ("ta0 a0 ta1 b1", 2, None),
            ("ta0 ta1", 2, "thoughts"),
            ("ta0 a0 ta2 a2", 3, None),
            ("ta0 tb1", 2, None),
            ("a0", 4, "no-act"),
            ("a0", 3, None),
            ("", 3, "no-act"),
            ("", 2, None),
        ],
    )
    def test_patterns(self, steps: str, turn: int, pattern: str | None):
        """The same call three times among six steps, the same thought twice without anything new, three idle turns."""
        loop = find_loop(as_steps(steps), turn, LoopDetection())
        assert (loop and loop.pattern) == pattern

    def test_what_came_back_is_not_counted(self):
        """Observations take no room in the window, and the order of arguments makes no other call."""
        arguments = ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}')
        steps = []
        for turn in range(3):
            steps.append(Step(type="action", content=arguments[turn % 2], iteration=turn, tool="x"))
            steps.append(Step(type="observation", content=str(turn), iteration=turn, tool="x", ok=True))
        loop = find_loop(steps, 3, LoopDetection(window=3))
        assert loop is not None
        assert (loop.pattern, loop.what) == ("calls", "x was called 3 times with the same arguments")


def as_steps(words: str) -> list[Step]:
    """Return steps: `a0` is the call `a` in turn 0, `ta0` the thought `a`."""
    return [
        Step(type="thought", content=word[1], iteration=int(word[2]))
        if word[0] == "t"
        else Step(type="action", content="{}", iteration=int(word[1]), tool=word[0])
        for word in words.split()
    ]


class TestNudge:
    async def test_the_model_is_told_once_a_circle(self, tmp_path: Path):
        """Detection alone changes no strategy: it says what repeats, and how to change that; then it begins anew."""
        turns = [*SAME, *SAME[:2], text("42")]
        ran = await stuck(tmp_path, turns, loop_detection=True)
        assert ending(ran) == ended_as("done", "end_turn", "42", 6)
        (nudge,) = ran.events("nudge-issued")
        told = f"{STUCK[0].upper()}{STUCK[1:]}. It will not answer otherwise: use what it said, call something else, or answer."
        assert data(nudge) == {"nudge": "loop-detected", "text": told, "severity": "warn"}
        (decision,) = ran.events("decision-evaluated")
        assert decision.decision == "loop-detected: calls"
        assert decision.rationale.startswith(f"{STUCK}. Fix: compose=[switch_strategy()]")
        assert ran.model.requests[3].messages[-1].content == told

    async def test_limits_of_the_user(self, tmp_path: Path):
        """They are recorded, and hold."""
        detection = LoopDetection(identical_calls=2)
        ran = await stuck(tmp_path, [*SAME[:2], text("42")], loop_detection=detection)
        assert [event.nudge for event in ran.events("nudge-issued")] == ["loop-detected"]
        (tmp_path / "dict").mkdir()
        ran = await stuck(tmp_path / "dict", [*SAME, text("42")], loop_detection={"identical_calls": None})
        assert ran.events("nudge-issued") == []


class TestRequiredTools:
    async def test_one_that_fails_for_good_ends_the_run(self, tmp_path: Path):
        """The same error three times in a row: no turn more is spent, and the ending says why and what to do."""
        ran = await stuck(tmp_path, [call("broken")] * 9, broken, required_tools=["broken"])
        by_policy = {"terminated_source": "policy:require_tools"}
        assert ending(ran) == {**ended_as("done", "required_tools_missing", None, 3), **by_policy}
        because = ran.result.terminated_because
        assert because.startswith("broken, which is required, failed 3 times in a row with: error: no disk. Fix: ")
        assert not ran.result.success

    async def test_the_limit_is_the_users(self, tmp_path: Path):
        """None lets it go on to the last turn."""
        ran = await stuck(tmp_path, [call("broken")] * 9, broken, required_tools=["broken"], max_required_failures=1)
        assert (ran.result.terminated_by, ran.result.iterations) == ("required_tools_missing", 1)
        (tmp_path / "off").mkdir()
        ran = await stuck(
            tmp_path / "off",
            [call("broken")] * 9,
            broken,
            required_tools=["broken"],
            max_required_failures=None,
            max_iterations=5,
        )
        assert (ran.result.terminated_by, ran.result.iterations) == ("max_iterations", 5)
