"""Tree of thought: the search, its pruning, and the use of its best path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import tool
from playhead.replay import reproduce
from playhead.testing import call, text
from playhead.trace.types import Alternative
from tests.kernel.runs import ended as ended_as
from tests.kernel.runs import ending, record
from tests.kernel.strategies.looking import score, thoughts

if TYPE_CHECKING:
    from pathlib import Path

TWO = thoughts("Look it up.", "Guess.")
SMALL = {"breadth": 2, "depth": 2}


@tool(read_only=True)
async def lookup(key: str) -> str:
    """Look a fact up."""
    return f"found {key}"


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


def sent(ran: Any, number: int) -> str:
    """Return the prompt of a request."""
    return str(ran.model.requests[number].messages[-1].content)


async def test_the_best_path_is_used(tmp_path: Path):
    """Every child has a score, children below the threshold are pruned, and tools run only after the search."""
    turns = [
        TWO,
        score(8),
        score(3),
        thoughts("By name.", "By place."),
        score(4),
        score(9),
        call("lookup", key="Mount Zed"),
        text("4,180 feet"),
    ]
    ran = await think(tmp_path, turns, lookup, strategy_settings={**SMALL, "good_enough": None})
    assert ending(ran) == ended_as("done", "end_turn", "4,180 feet", 2)
    assert purposes(ran) == [
        "expand",
        *["score"] * 2,
        "expand",
        *["score"] * 2,
        *["think"] * 2,
    ]
    assert [(event.name, event.text) for event in ran.events("thought")] == [
        ("1", "Look it up."),
        ("2", "Guess."),
        ("1.1", "By name."),
        ("1.2", "By place."),
    ]
    assert [(event.thought, event.text, event.score, event.satisfied) for event in ran.events("critique")] == [
        ("1", "8", 0.8, True),
        ("2", "3", 0.3, False),
        ("1.1", "4", 0.4, False),
        ("1.2", "9", 0.9, True),
    ]
    assert [(event.kept, event.alternatives) for event in ran.events("alternatives-considered")] == [
        (("1",), (Alternative(name="2", option="Guess.", rejected_because="score 0.30: it is below 0.50"),)),
        (("1.2",), (Alternative(name="1.1", option="By name.", rejected_because="score 0.40: it is below 0.50"),)),
    ]
    phases = [event for event in ran.recording.records if event.kind.startswith("phase-")]
    assert [(each.kind, each.event.phase, each.event.number) for each in phases] == [
        (kind, "depth", depth) for depth in (1, 2) for kind in ("phase-entered", "phase-completed")
    ]
    assert "1. Look it up.\n2. By place." in sent(ran, 6)
    assert ran.result.strategy_used == "tree-of-thought"
    assert [request.tools for request in ran.model.requests[:6]] == [()] * 6
    assert [spec.name for spec in ran.model.requests[6].tools] == ["lookup"]
    assert "- lookup: Look a fact up." in sent(ran, 0)


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
