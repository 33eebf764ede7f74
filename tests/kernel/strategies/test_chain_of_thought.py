"""Chain of thought: thinking is split off, and only the answer leaves."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.kernel.react import EMPTY_REPLY
from playhead.kernel.strategies.chain_of_thought import WITH_TAGS, split_thinking
from playhead.testing import call, calls, error, text
from tests.kernel.runs import data, ended, ending
from tests.kernel.strategies.looking import broken, lookup, run
from tests.proving import bound

if TYPE_CHECKING:
    from pathlib import Path


async def think(folder: Path, turns: Any, settings: dict[str, Any] | None = None, **options: Any):
    """Run it."""
    return await run(folder, turns, lookup, broken, strategy="chain-of-thought", strategy_settings=settings, **options)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("42", ("", "42")),
        ("<thinking>6 * 7</thinking>42", ("6 * 7", "42")),
        ("<THINKING> 6\n* 7 </Thinking>\n\n42 ", ("6\n* 7", "42")),
        ("<think>6 * 7</think>42", ("6 * 7", "42")),
        ("It is <thinking>6 * 7</thinking> 42", ("It is\n6 * 7", "42")),
        ("<thinking>a</thinking>b<thinking>c</thinking>d", ("a\nb\nc", "d")),
        ("<thinking>a<thinking>b</thinking>c</thinking>d", ("a\nb\nc", "d")),
        ("<thinking>6 * 7 = 42", ("6 * 7 = 42", "")),
        ("<thinking>a<thinking>b</thinking>c", ("a\nb", "c")),
        ("6 * 7</think>42", ("6 * 7", "42")),
        ("<thinking></thinking>42", ("", "42")),
        ("<thinking >42", ("", "<thinking >42")),
        ("", ("", "")),
    ],
)
def test_what_is_thinking(said: str, expected: tuple[str, str]):
    """The answer is what stands after the last block, which may be not closed, or not opened."""
    assert split_thinking(said) == expected


@given(st.lists(st.sampled_from(["<thinking>", "</thinking>", "<think>", "</think>", "a", "b c", "<", "\n"])))
def test_nothing_is_lost(parts: list[str]):
    """Every word of a text is thinking or answer, once."""
    thought, rest = split_thinking("".join(parts))
    words = "".join("".join(part for part in parts if "think" not in part).split())
    assert sorted("".join(f"{thought}{rest}".split())) == sorted(words)


def test_it_takes_linear_time():
    """A hostile text of nothing but tags is read in a moment."""
    began = time.perf_counter()
    split_thinking("<thinking>" * 100_000)
    split_thinking("<" * 1_000_000)
    assert time.perf_counter() - began < bound(2)


async def test_only_the_answer_leaves(tmp_path: Path):
    """The thinking is a thought of the trace and of the steps; the model is told how to think in the system prompt."""
    ran = await think(tmp_path, [text("<thinking>6 * 7</thinking>\n42")])
    assert ending(ran) == ended("done", "end_turn", "42", 1)
    assert [data(each) for each in ran.events("thought")] == [{"request": 0, "text": "6 * 7"}]
    assert ran.steps() == [("thought", None, "6 * 7")]
    assert ran.model.requests[0].messages[0].content.endswith(WITH_TAGS)


async def test_it_thinks_before_each_call(tmp_path: Path):
    """What stands beside the calls and outside of the tags is a thought, too, as in any loop."""
    turns = [
        calls(call("lookup", key="a"), text="<thinking>I need a</thinking>Looking."),
        text("<thinking>so</thinking>42"),
    ]
    ran = await think(tmp_path, turns)
    assert ending(ran) == ended("done", "end_turn", "42", 2)
    assert ran.steps() == [
        ("thought", None, "I need a"),
        ("thought", None, "Looking."),
        ("action", "lookup", '{"key": "a"}'),
        ("observation", "lookup", "found a"),
        ("thought", None, "so"),
    ]
    assert [data(each)["text"] for each in ran.events("thought")] == ["I need a", "Looking.", "so"]


async def test_a_call_in_the_text_counts_outside_of_the_thinking(tmp_path: Path):
    """A call that the model only thinks of does not run."""
    thought_of = (
        '<thinking>{"name": "broken", "arguments": {}} or so</thinking>{"name": "lookup", "arguments": {"key": "a"}}'
    )
    ran = await think(tmp_path, [text(thought_of), text("42")])
    assert [each.tool for each in ran.events("tool-call-started")] == ["lookup"]


@pytest.mark.parametrize("said", ["<thinking>a</thinking>", "<thinking>6 * 7 = 42"], ids=["closed", "not closed"])
async def test_only_thinking_is_no_answer(tmp_path: Path, said: str):
    """The model is asked for the answer."""
    ran = await think(tmp_path, [text(said), text("42")])
    assert ending(ran) == ended("done", "end_turn", "42", 2)
    assert [data(each) for each in ran.events("nudge-issued")] == [{"nudge": "empty-reply", "text": EMPTY_REPLY}]


async def test_one_that_never_answers(tmp_path: Path):
    """It has no answer, and says so: the thinking is in the steps."""
    ran = await think(tmp_path, [text("<thinking>hm")] * 5, max_iterations=3)
    assert ending(ran) == ended("done", "max_iterations", None, 3)
    assert [step.content for step in ran.result.steps] == ["hm"] * 3


async def test_thinking_that_was_cut(tmp_path: Path):
    """A block that the provider cut is no answer, and asking again would be cut again."""
    ran = await think(tmp_path, [text("<thinking>6 times", finish_reason="length")])
    assert ending(ran) == ended("done", "output_truncated", None, 1)


async def test_the_provider_s_own_thinking(tmp_path: Path):
    """What a reasoning model thinks by itself is a step like any other; it stands in the answer's event already."""
    ran = await think(tmp_path, [text("42", thinking="I assume base 10 because it is usual.")])
    assert ran.steps() == [("thought", None, "I assume base 10 because it is usual.")]
    assert ran.events("thought") == []


async def test_required_tools_are_asked_for(tmp_path: Path):
    """As in any loop."""
    turns = [text("<thinking>easy</thinking>42"), call("lookup", key="a"), text("43")]
    ran = await think(tmp_path, turns, required_tools=["lookup"])
    assert ending(ran) == ended("done", "end_turn", "43", 3)


async def test_a_model_that_fails(tmp_path: Path):
    """The newest result is kept."""
    ran = await think(tmp_path, [call("lookup", key="a"), error("no such model")])
    assert (ran.result.status, ran.result.terminated_by, ran.result.output) == ("failed", "llm_error", "found a")
