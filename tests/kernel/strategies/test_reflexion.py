"""Reflexion: the critic, the best answer, and honest endings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead.compose import killswitches as ks
from playhead.testing import call, text
from tests.kernel.runs import ended, ending
from tests.kernel.strategies.looking import broken, lookup, purposes, run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kernel.runs import Ran

GENERATE, CRITIQUE, IMPROVE = "generate", "critique", "improve"


def no(score: float | None = 4, *issues: str) -> Any:
    """Return a critique that wants more."""
    said = {"issues": issues or ["wrong"], "suggestion": "", "score": score, "satisfied": False}
    return text(json.dumps({name: value for name, value in said.items() if value is not None}))


def yes(score: float = 9) -> Any:
    """Return a critique that is satisfied."""
    return text(json.dumps({"issues": [], "suggestion": "", "score": score, "satisfied": True}))


async def reflect(folder: Path, turns: Any, settings: dict[str, Any] | None = None, **options: Any) -> Ran:
    """Run it."""
    return await run(folder, turns, lookup, broken, strategy="reflexion", strategy_settings=settings, **options)


def unsatisfied(output: Any, turns: int, because: str) -> tuple[dict[str, Any], str]:
    """Return how a run ends whose critic was never satisfied."""
    return ended("done", "unsatisfied", output, turns), because


def how(ran: Ran) -> tuple[dict[str, Any], str]:
    """Return how a run ended, and why."""
    return ending(ran), str(ran.result.terminated_because)


# --- the loop ---------------------------------------------------------------------------------------------------------


async def test_it_improves_until_the_critic_is_satisfied(tmp_path: Path):
    """The improved answer continues the thread of the first, after the critic's words."""
    ran = await reflect(tmp_path, [call("lookup", key="a"), text("41"), no(3, "6 * 7 is not 41"), text("42"), yes()])
    assert ending(ran) == ended("done", "end_turn", "42", 3)
    assert purposes(ran) == [GENERATE, GENERATE, CRITIQUE, IMPROVE, CRITIQUE]
    improving = ran.model.requests[3].messages
    assert [message.role for message in improving] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert "- 6 * 7 is not 41" in improving[-1].content


async def test_the_critic_sees_only_the_answer(tmp_path: Path):
    """Its thread is the system prompt and one message, without tools."""
    ran = await reflect(tmp_path, [call("lookup", key="a"), text("41"), no(), text("42"), yes()])
    for number, answer in ((2, "41"), (4, "42")):
        request = ran.model.requests[number]
        assert [message.role for message in request.messages] == ["system", "user"]
        assert f"Task:\nDo it.\n\nAnswer:\n{answer}\n\n" in request.messages[1].content
        assert "found a" not in request.messages[1].content
        assert request.tools == ()


async def test_three_rounds_by_default(tmp_path: Path):
    """The last answer is judged too; the best one is the output, and the run is no success."""
    turns = [text("1"), no(2), text("2"), no(5), text("3"), no(7), text("4"), no(6)]
    ran = await reflect(tmp_path, turns)
    assert how(ran) == unsatisfied(
        "3", 4, "the critic was satisfied with none of 4 answers; the best of them, number 3, scored 0.70"
    )
    assert purposes(ran) == [GENERATE, CRITIQUE, *[IMPROVE, CRITIQUE] * 3]
    assert not ran.result.success


# --- the best answer --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ((0, 5, 5, 3), "2"),
        ((None, None, None, None), "4"),
        ((5, None, 6, 2), "3"),
    ],
    ids=["the first of equals", "no scores", "some scores"],
)
async def test_the_best_answer_is_kept(tmp_path: Path, scores: tuple[float | None, ...], best: str):
    """The highest score wins, the first of equal ones, and without scores the newest."""
    turns = [each for number, score in enumerate(scores, 1) for each in (text(str(number)), no(score))]
    ran = await reflect(tmp_path, turns)
    assert (ran.result.terminated_by, ran.result.output) == ("unsatisfied", best)


# --- what else ends it ------------------------------------------------------------------------------------------------


async def test_a_switch_in_the_middle(tmp_path: Path):
    """A killswitch in the improving pass keeps the best answer so far."""
    limit = ks.tool_limit("lookup", 1)
    turns = [call("lookup", key="a"), text("1"), no(), call("lookup", key="b"), text("2")]
    ran = await reflect(tmp_path / "improve", turns, compose=[limit])
    assert (ran.result.terminated_by, ran.result.output) == ("tool_limit", "1")
