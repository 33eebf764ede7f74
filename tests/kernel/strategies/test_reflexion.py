"""Reflexion, tree of thought, chain of thought: what golden recordings do not say of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead.compose import killswitches as ks
from playhead.kernel.strategies.chain_of_thought import split_thinking
from playhead.replay import reproduce
from playhead.testing import call, text
from tests.kernel.runs import ended, ending, record
from tests.kernel.strategies.looking import broken, lookup, run, score, thoughts

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kernel.runs import Ran


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


async def test_the_critic_sees_only_the_answer(tmp_path: Path):
    """Its thread is the system prompt and one message, without tools."""
    ran = await reflect(tmp_path, [call("lookup", key="a"), text("41"), no(), text("42"), yes()])
    for number, answer in ((2, "41"), (4, "42")):
        request = ran.model.requests[number]
        assert [message.role for message in request.messages] == ["system", "user"]
        assert f"Task:\nDo it.\n\nAnswer:\n{answer}\n\n" in request.messages[1].content
        assert "found a" not in request.messages[1].content
        assert request.tools == ()


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


async def test_a_switch_in_the_middle(tmp_path: Path):
    """A killswitch in the improving pass keeps the best answer so far."""
    limit = ks.tool_limit("lookup", 1)
    turns = [call("lookup", key="a"), text("1"), no(), call("lookup", key="b"), text("2")]
    ran = await reflect(tmp_path / "improve", turns, compose=[limit])
    assert (ran.result.terminated_by, ran.result.output) == ("tool_limit", "1")


SMALL = {"breadth": 2, "depth": 2}


async def think(folder: Path, turns: Any, *tools: Any, **options: Any) -> Any:
    """Run it on a script, and reproduce the recording from the file alone."""
    settings = {"strategy": "tree-of-thought", "strategy_settings": SMALL, **options}
    ran = await record(folder, turns, *tools, task="How high is Mount Zed?", **settings)
    reproduced = await reproduce(folder / "run.jsonl")
    assert reproduced.identical, reproduced.divergences
    return ran


def purposes(ran: Any) -> list[str]:
    """Return what the model was asked for, in order."""
    return [event.purpose for event in ran.events("llm-requested")]


@pytest.mark.parametrize(("breadth", "depth", "most"), [(3, 3, 28), (1, 1, 2)])
async def test_the_number_of_requests_is_bounded(tmp_path: Path, breadth: int, depth: int, most: int):
    """With every thought kept, the search makes as many requests as its page says."""

    def answer(request: Any) -> Any:
        asked = str(request.messages[-1].content)
        if "Propose" in asked:
            return thoughts(*["thought"] * 8)
        return score(8) if "How likely" in asked else text("done")

    settings = {"breadth": breadth, "depth": depth}
    ran = await think(tmp_path, [answer] * 40, strategy_settings=settings)
    assert len(purposes(ran)) - 1 == most


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("42", ("", "42")),
        ("<thinking>6 * 7</thinking>42", ("6 * 7", "42")),
        ("<THINKING> 6\n* 7 </Thinking>\n\n42 ", ("6\n* 7", "42")),
        ("<thinking>a</thinking>b<thinking>c</thinking>d", ("a\nb\nc", "d")),
        ("<thinking>6 * 7 = 42", ("6 * 7 = 42", "")),
        ("<thinking>a<thinking>b</thinking>c", ("a\nb", "c")),
        ("6 * 7</think>42", ("6 * 7", "42")),
    ],
)
def test_split_thinking(said: str, expected: tuple[str, str]):
    """The answer follows the last block, also where a tag is missing."""
    assert split_thinking(said) == expected
