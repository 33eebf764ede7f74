"""Chain of thought: the thinking is recorded, and the output is the answer without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead.kernel.strategies.chain_of_thought import WITH_TAGS, split_thinking
from playhead.testing import text
from tests.kernel.runs import data, ended, ending
from tests.kernel.strategies.looking import broken, lookup, run

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
        ("<thinking>a</thinking>b<thinking>c</thinking>d", ("a\nb\nc", "d")),
        ("<thinking>6 * 7 = 42", ("6 * 7 = 42", "")),
        ("<thinking>a<thinking>b</thinking>c", ("a\nb", "c")),
        ("6 * 7</think>42", ("6 * 7", "42")),
    ],
)
def test_split_thinking(said: str, expected: tuple[str, str]):
    """The answer follows the last block, also where a tag is missing."""
    assert split_thinking(said) == expected


async def test_the_output_holds_no_thinking(tmp_path: Path):
    """The thinking is a thought in the trace and the steps; the system prompt asks for it."""
    ran = await think(tmp_path, [text("<thinking>6 * 7</thinking>\n42")])
    assert ending(ran) == ended("done", "end_turn", "42", 1)
    assert [data(each) for each in ran.events("thought")] == [{"request": 0, "text": "6 * 7"}]
    assert ran.steps() == [("thought", None, "6 * 7")]
    assert ran.model.requests[0].messages[0].content.endswith(WITH_TAGS)
