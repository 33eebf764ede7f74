"""A run as lines: exactly these, in eighty columns, without colour."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead import Agent, Context, tool
from playhead.diagnose.run_summary import RunSummary
from playhead.diagnose.runs import RunList, unique_beginnings
from playhead.diagnose.timeline import HEADING, Timeline
from playhead.testing import ScriptedModel, TickingClock, call, calls, text
from playhead.trace.events import LlmResponded, Thought
from playhead.trace.line import Record
from playhead.trace.reader import Problem, scan
from tests.diagnose.recordings import printed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.trace.events import EventBase

GOLDEN = Path(__file__).with_name("timeline.txt")
"""Rewritten, to be looked at and committed, by: PLAYHEAD_GOLDEN=write python -m pytest tests/diagnose"""


def timeline(items: Iterable[Record | Problem], width: int = 80) -> str:
    """Return the lines of these events."""
    return printed(HEADING, *Timeline().rows(items), width=width)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A run with a failed call and a sub-agent, in which every moment takes a millisecond."""

    @tool
    async def lookup(key: str) -> str:
        """Look a fact up."""
        raise LookupError(f"nothing under {key!r}")

    helper = Agent(ScriptedModel([text("4,180 feet")]), name="helper", context=Context(rationale=False), trace=None)
    reason = '<rationale call="1">{"why": "the table has heights", "confidence": 0.9}</rationale>'
    turns = [
        calls(call("lookup", key="Mt Zed"), text=f"I look it up. {reason}"),
        call("helper", task="Mount Zed?"),
        text("4,180 feet."),
    ]
    agent = Agent(
        ScriptedModel(turns), name="guide", tools=[lookup, helper], system_prompt="Be brief, and take every height from the table.", trace=tmp_path,
        clock=TickingClock,
    )  # fmt: skip
    agent.run_sync("How high is Mount Zed?", run_id="golden")
    return tmp_path / "golden.jsonl"


def test_the_lines_of_a_run(recorded: Path) -> None:
    """One line for each event, and below a call the reason that the model stated for it."""
    shown = timeline(scan(recorded))
    if os.environ.get("PLAYHEAD_GOLDEN") == "write":
        GOLDEN.write_text(shown, encoding="utf-8")
    assert shown == GOLDEN.read_text(encoding="utf-8")


def record(seq: int, event: EventBase, owner: str = "root", ts: int = 0) -> Record:
    """Return an event with its envelope."""
    return Record(seq, ts, owner, None, event)


def test_problems_stand_at_their_place(recorded: Path) -> None:
    """What is wrong with the file is shown where it is wrong."""
    lines = recorded.read_bytes().splitlines(keepends=True)
    recorded.write_bytes(b"".join([*lines[:2], *lines[3:5], b"nonsense\n", lines[5][:40]]))
    shown = [line[:44] if "!!" in line else line[:51] for line in timeline(scan(recorded)).splitlines()[1:]]
    assert shown == [
        "   0    0.000  +0.000     run-started           gui",
        "   1    0.002  +0.002     tools-defined         loo",
        "   !! line 3: chain: event 3 or the line bef",
        "   !! line 3: gap: 1 events are missing befo",
        "   3    0.004  +0.002     message-added         1 u",
        "   4    0.006  +0.002  0  llm-requested         req",
        "   !! line 5: bad-line: it is not in the for",
        "   !! line 6: truncated: it ends after 40 by",
    ]


def test_a_thought_that_is_the_whole_answer_shows_the_answer() -> None:
    """The trace does not write the text twice; the timeline finds it, for the owner it belongs to."""
    items = [
        record(0, LlmResponded(request=3, text="Let me see.")),
        record(1, LlmResponded(request=3, text="Not mine."), owner="root/other@0.0"),
        record(2, Thought(request=3)),
        record(3, Thought(request=2)),
    ]
    rows = [line.split(maxsplit=4)[-1] for line in timeline(items).splitlines()[3:]]
    assert rows == ["Let me see.", "the text of answer 2"]


@given(st.sets(st.text("abAB-", min_size=1, max_size=8), max_size=12))
def test_a_short_id_means_one_run(run_ids: set[str]) -> None:
    """Whatever the ids are, and whatever the case: it is the id itself, or begins no other one."""
    for run_id, short in unique_beginnings(run_ids).items():
        assert run_id.startswith(short)
        others = {each for each in run_ids if each.upper().startswith(short.upper())} - {run_id}
        assert short == run_id or not others


def test_recent_runs_as_a_table() -> None:
    """One line for a run, how it ended, what it took; nothing raw, nothing that breaks the columns."""
    spent: dict[str, Any] = {"total_tokens": 1234, "usage_unknown": 1, "duration_ms": 75_200.0}
    ids = ("01M805JA8A8TJ9T483VW0962CT", "a-run", "b" * 90, "killed")
    runs = [
        RunSummary(
            ids[0], Path("x"), 0, "a", "m/x", "Do it\x1b[2J", "done", terminated_by="end_turn", cost_usd=0.5, **spent
        ),
        RunSummary(ids[1], Path("x"), 10**30, None, None, None, "unreadable", total_tokens=10**12),
        RunSummary(ids[2], Path("x"), None, None, None, None, "\x1b"),
        RunSummary(ids[3], Path("x"), 0, "a", "m/x", "Go", "done", terminated_by="kill\x1b", duration_ms=61.0),
        RunSummary("edit", Path("x"), 0, "a", "m", "Go", "done", sound=False, cost_usd=1234.5, cost_unknown=2, **spent),
    ]
    start = f"{datetime.fromtimestamp(0, UTC).astimezone():%m-%d %H:%M}"
    day = start[:5]
    assert printed(RunList(runs), width=80).splitlines() == [
        "RUN   BEGAN  ENDED              TIME     COST  AGENT  TASK",
        f"01M8  {day}  answered          1m15s  $0.5000  a      Do it\\x1b[2J",
        "a-ru  ?      unreadable            -        -  -      -",
        "bbbb  -      unreadable            -        -  -      -",
        f"kill  {day}  stopped: kill…   61.0ms       $?  a      Go",
        f"edit  {day}  damaged           1m15s  $1234+?  a      Go",
    ]
    now = datetime.now(UTC)
    just_now = replace(runs[0], started_us=int(now.timestamp() * 1e6))
    assert f"  {now.astimezone():%H:%M}  answered" in printed(RunList([just_now]), width=80)
    heading, row = printed(RunList(runs[:1]), width=150).splitlines()
    assert heading.split() == ["RUN", "STARTED", "ENDED", "TIME", "TOKENS", "COST", "AGENT", "MODEL", "TASK"]
    assert " ".join(row.split()) == f"{ids[0]} {start} answered 1m15s 1234+? $0.5000 a m/x Do it\\x1b[2J"
