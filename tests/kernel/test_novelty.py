from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead import tool
from playhead.compose.policies.searching import MIN_WORDS, Words
from playhead.replay import reproduce
from playhead.testing import call, calls, text
from tests.kernel.runs import Ran, record

if TYPE_CHECKING:
    from pathlib import Path

OLD = "the lake is deep and cold and full of large grey fish today"
NEW = "alpha beta gamma delta epsilon zeta eta theta iota kappa"


@tool(read_only=True)
async def read(page: str) -> str:
    """Read a page."""
    if page == "bad":
        raise ValueError(OLD)
    return {"old": OLD, "new": NEW, "mixed": f"{OLD} besides alpha", "short": "yes"}[page]


@tool
async def save(page: str) -> str:
    """Save a page."""
    return f"saved {page}"


async def run_with(folder: Path, turns: list[Any], **options: Any) -> Ran:
    """Run an agent that looks for new words; its recording is reproduced from the file alone."""
    run = await record(folder, [*turns, text("done")], read, save, **{"novelty": 0.2, **options})
    assert (await reproduce(run.recording)).identical
    return run


def told(run: Ran) -> list[str]:
    """Return what the model was told for want of new words."""
    assert {event.nudge for event in run.events("nudge-issued")} <= {"novelty"}
    return [event.text for event in run.events("nudge-issued")]


def page(name: str) -> Any:
    """Return a call that reads this page."""
    return call("read", page=name)


NOTHING_NEW = (
    "Only 0% of the words in the last results are new. Searching on brings nothing more: give the answer in plain text."
)


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([page("old")], []),
        ([page("old"), page("old")], [NOTHING_NEW]),
        ([page("old"), page("old"), page("old")], [NOTHING_NEW] * 2),
        ([page("old"), page("new")], []),
        ([page("old"), page("new"), page("mixed")], [NOTHING_NEW.replace("0%", "7%")]),
        ([calls(page("old"), page("old"))], []),
        ([page("old"), calls(page("old"), page("new"))], []),
        ([page("short"), page("short")], []),
        ([page("old"), page("bad")], []),
        ([page("bad"), page("old")], []),
    ],
    ids=["first", "again", "twice", "new", "mixed", "one turn", "new beside old", "short", "failed", "after a failure"],
)
async def test_what_counts_as_nothing_new(tmp_path: Path, turns: list[Any], expected: list[str]):
    """The words of a turn's results against those of all turns before; failures and short results tell nothing."""
    assert told(await run_with(tmp_path, turns)) == expected


@pytest.mark.parametrize(("threshold", "words"), [(1, 1), (0.2, 1), (0.05, 0)])
async def test_the_threshold_is_recorded_and_counts(tmp_path: Path, threshold: float, words: int):
    """Seven words in a hundred are new: little for one, enough for another."""
    run = await run_with(tmp_path, [page("old"), page("new"), page("mixed")], novelty=threshold)
    assert [each.settings for each in run.recording.header.agent.hooks] == [{"least": threshold}]
    assert len(told(run)) == words


some_words = st.lists(st.sampled_from([f"w{number}" for number in range(40)]), max_size=60)


@given(st.lists(some_words, max_size=8))
def test_the_share(turns: list[list[str]]):
    """New words of the newest turn by all of its words; None for the first, and for few words."""
    novelty = Words()
    known: set[str] = set()
    for turn in turns:
        now = set(turn)
        expected = len(now - known) / len(now) if known and len(now) >= MIN_WORDS else None
        assert novelty.share_of_new([" ".join(turn)]) == expected
        known |= now
