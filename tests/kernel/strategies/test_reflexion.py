"""Reflexion: the critic's signals, the best answer, and honest ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, UsageError
from playhead.compose import killswitches as ks
from playhead.kernel.strategies import Reflexion
from playhead.testing import ScriptedModel, call, text
from tests.kernel.runs import data, ended, ending
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


def critiques(ran: Ran) -> list[tuple[str, bool, float | None]]:
    """Return what the events say of the critiques."""
    return [(each.text, each.satisfied, each.score) for each in ran.events("critique")]


def unsatisfied(output: Any, turns: int, because: str) -> tuple[dict[str, Any], str]:
    """Return how a run ends whose critic was never satisfied."""
    return ended("done", "unsatisfied", output, turns), because


def how(ran: Ran) -> tuple[dict[str, Any], str]:
    """Return how a run ended, and why."""
    return ending(ran), str(ran.result.terminated_because)


# --- the loop -----------------------------------------------------------------------------------------------------------


async def test_a_good_answer_costs_one_critique(tmp_path: Path):
    """Generate, criticise, end."""
    ran = await reflect(tmp_path, [text("42"), yes()])
    assert ending(ran) == ended("done", "end_turn", "42", 1)
    assert (ran.result.success, purposes(ran)) == (True, [GENERATE, CRITIQUE])
    assert critiques(ran) == [("Nothing is wrong with it.", True, 0.9)]
    assert ran.steps() == [("critique", None, "Nothing is wrong with it.")]


async def test_it_improves_until_the_critic_is_satisfied(tmp_path: Path):
    """The improved answer comes in the thread of the first, after what the critic said."""
    ran = await reflect(tmp_path, [call("lookup", key="a"), text("41"), no(3, "6 * 7 is not 41"), text("42"), yes()])
    assert ending(ran) == ended("done", "end_turn", "42", 3)
    assert purposes(ran) == [GENERATE, GENERATE, CRITIQUE, IMPROVE, CRITIQUE]
    improving = ran.model.requests[3].messages
    assert [message.role for message in improving] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert "- 6 * 7 is not 41" in improving[-1].content


async def test_the_critic_sees_the_answer_and_nothing_of_how_it_came_about(tmp_path: Path):
    """Its thread is the system prompt and one message; no tools are offered."""
    ran = await reflect(tmp_path, [call("lookup", key="a"), text("41"), no(), text("42"), yes()])
    for number, answer in ((2, "41"), (4, "42")):
        request = ran.model.requests[number]
        assert [message.role for message in request.messages] == ["system", "user"]
        assert f"Task:\nDo it.\n\nAnswer:\n{answer}\n\n" in request.messages[1].content
        assert "found a" not in request.messages[1].content
        assert request.tools == ()


async def test_one_answer_and_three_rounds(tmp_path: Path):
    """Never more; the last answer is judged, too, so that the best can be kept and the end be honest."""
    turns = [text("1"), no(2), text("2"), no(5), text("3"), no(7), text("4"), no(6)]
    ran = await reflect(tmp_path, turns)
    assert how(ran) == unsatisfied(
        "3", 4, "the critic was satisfied with none of 4 answers; the best of them, number 3, scored 0.70"
    )
    assert purposes(ran) == [GENERATE, CRITIQUE, *[IMPROVE, CRITIQUE] * 3]
    assert not ran.result.success


async def test_the_final_answer_tool_ends_a_pass(tmp_path: Path):
    """Its summary is kept; the call is answered in the thread that is improved."""
    turns = [
        call("lookup", key="a"),
        call("final-answer", output="41"),
        no(),
        call("final-answer", output="42", confidence="high"),
        yes(),
    ]
    ran = await reflect(tmp_path, turns, meta_tools=("final-answer",))
    assert ending(ran) == ended("done", "final_answer_tool", "42", 3)
    assert data(ran.events("final-answer")[0]) == {"output": "42", "confidence": "high"}
    asked = {call.id for message in ran.model.requests[3].messages for call in message.tool_calls}
    assert asked == {message.tool_call_id for message in ran.model.requests[3].messages if message.tool_call_id}


async def test_a_critic_that_is_not_understood_is_asked_again(tmp_path: Path):
    """In a stricter way, in its own thread; what was wrong is recorded."""
    ran = await reflect(tmp_path, [text("42"), text("Looks good to me."), yes()])
    assert ending(ran) == ended("done", "end_turn", "42", 1)
    assert purposes(ran) == [GENERATE, CRITIQUE, CRITIQUE]
    assert [data(each) for each in ran.events("structured-output-failed")] == [
        {"expected": "Judgement", "error": "it holds no JSON", "attempt": 0}
    ]


async def test_a_critic_that_is_never_understood(tmp_path: Path):
    """The answer is kept, and that nobody judged it is said."""
    ran = await reflect(tmp_path, [text("42"), *[text("Hm.")] * 3])
    assert how(ran) == unsatisfied("42", 1, "what the critic said of answer 1 could not be read")
    assert critiques(ran) == []
    later = await reflect(tmp_path / "later", [text("1"), no(), text("2"), *[text("Hm.")] * 3])
    assert how(later) == unsatisfied("2", 2, "what the critic said of answer 2 could not be read")


# --- the best answer ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ((0, 0, 0, 0), "1"),
        ((0, 5, 5, 3), "2"),
        ((9, 1, 1, 1), "1"),
        ((None, None, None, None), "4"),
        ((5, None, 6, 2), "3"),
    ],
    ids=["all zero", "the first of equals", "only worse ones", "no scores", "some scores"],
)
async def test_the_best_answer_is_kept(tmp_path: Path, scores: tuple[float | None, ...], best: str):
    """The highest score, of equal ones the first; where there are no scores, the newest."""
    turns = [each for number, score in enumerate(scores, 1) for each in (text(str(number)), no(score))]
    ran = await reflect(tmp_path, turns)
    assert (ran.result.terminated_by, ran.result.output) == ("unsatisfied", best)


# --- passes without an answer -----------------------------------------------------------------------------------------------


async def test_required_tools(tmp_path: Path):
    """The critic's yes does not count before they returned a result; a run without it does not claim an answer."""
    turns = [text("41"), yes(), call("lookup", key="a"), text("42"), yes()]
    ran = await reflect(tmp_path / "called", turns, required_tools=["lookup"])
    assert ending(ran) == ended("done", "end_turn", "42", 3)
    assert "The task requires this first: call lookup." in ran.model.requests[2].messages[-1].content
    ran = await reflect(tmp_path / "never", [text("1"), yes()], {"max_retries": 0}, required_tools=["lookup"])
    assert (ran.result.output, ran.result.terminated_by) == ("1", "unsatisfied")


# --- what else ends it ------------------------------------------------------------------------------------------------------


async def test_the_turns_of_the_agent(tmp_path: Path):
    """In the middle of a pass: the best answer so far is kept, not the newest result."""
    turns = [text("1"), no(), call("lookup", key="a"), call("lookup", key="b")]
    ran = await reflect(tmp_path, turns, max_iterations=3)
    assert ending(ran) == ended("done", "max_iterations", "1", 3)


async def test_a_switch_in_the_middle(tmp_path: Path):
    """Before the improving pass, or in it: the best answer so far is kept."""
    cut = []
    for tokens in range(1_000, 2_400, 100):
        budget = ks.budget_limit(max_tokens=tokens, output_cap=50)
        turns = [call("lookup", key="a"), text("1"), no(), text("2"), yes()]
        ran = await reflect(tmp_path / str(tokens), turns, compose=[budget])
        if ran.result.terminated_by == "budget_limit" and purposes(ran)[-1:] == [CRITIQUE]:
            cut.append(ran.result.output)
    assert set(cut) == {"1"}
    limit = ks.tool_limit("lookup", 1)
    turns = [call("lookup", key="a"), text("1"), no(), call("lookup", key="b"), text("2")]
    ran = await reflect(tmp_path / "improve", turns, compose=[limit])
    assert (ran.result.terminated_by, ran.result.output) == ("tool_limit", "1")


async def test_a_run_that_is_told_to_go_on(tmp_path: Path):
    """A hook that resumes it gets another answer with another critique."""
    from playhead.compose import Resume

    resumed: list[bool] = []

    def once(_: Any) -> Resume | None:
        resumed.append(True)
        return Resume("Once more.") if len(resumed) == 1 else None

    turns = [text("1"), yes(), text("2"), yes()]
    ran = await reflect(tmp_path, turns, compose=[lambda harness: harness.before("complete", once)])
    assert ending(ran) == ended("done", "end_turn", "2", 2)
    assert purposes(ran) == [GENERATE, CRITIQUE] * 2


# --- settings ---------------------------------------------------------------------------------------------------------------


def test_the_settings_and_their_defaults():
    """Those of the catalogue; the header holds them all, and a wrong one is refused when the agent is made."""
    assert Reflexion().recorded() == {
        "max_retries": 3,
        "kernel_max_iterations": 3,
    }
    agent = Agent(ScriptedModel([]), strategy="reflect", trace=None)
    assert (agent.header.strategy, agent.header.max_iterations) == ("reflexion", 20)
    assert agent.header.strategy_settings == Reflexion().recorded()
    for wrong in ({"max_retrys": 1}, {"max_retries": -1}, {"kernel_max_iterations": 0}):
        with pytest.raises(UsageError, match="reflexion"):
            Reflexion(**wrong)
