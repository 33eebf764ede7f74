"""`playhead backtest`: rows and a summary, as text and as JSON, and exit codes that say what could be told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from playhead import Agent, Context, tool
from playhead.testing import ScriptedModel, TickingClock, call, text
from playhead.trace.types import Usage
from tests.cli.command_line import objects, playhead
from tests.cli.recorded import record_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def runs(folder: Path) -> Path:
    """The folder that the commands read by default, with a long run and a short one."""

    @tool(read_only=True)
    async def search(query: str) -> str:
        """Search."""
        return f"nothing about {query}"

    usage = Usage(input_tokens=400, output_tokens=50)
    turns = [*(replace(call("search", query=each), usage=usage) for each in "abc"), text("No idea.", usage=usage)]
    agent = Agent(
        ScriptedModel(turns),
        tools=[search],
        trace=folder,
        clock=TickingClock,
        context=Context(rationale=False, meta_tools=()),
    )
    agent.run_sync("Find it.", run_id="long")
    record_run(folder, "short")
    return folder


def test_the_text(runs: Path):
    """A row for each run, why below it, and a summary: the whole output, in 80 cells."""
    result = playhead("backtest", "--switch", "tool_limit('search', 2)", "long", "short")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "long, end_turn: stopped by tool_limit in turn 2, which would save 450 tokens,",
        "  $0, 1 request, 1 call, 14.0ms",
        "    LOST: it ended well",
        "    at event 19 of root, 36.0ms after the start: 2 calls of search are all it",
        "      may have",
        "short, end_turn: untouched",
        "    no agent that ran had a tool 'search'. Known: final-answer, lookup.",
        "Switch: tool_limit('search', 2)",
        "Of 2 runs: 1 untouched, 1 stopped",
        "Of 2 that ended well: 1 lost",
        "Saved: 450 tokens, $0, 1 request, 1 call, 14.0ms, of 1,814 tokens, $0, 6",
        "  requests, 4 calls, 76.0ms",
    ]


def test_the_json(runs: Path):
    """An object for each run, and one for all of them; nothing else on stdout."""
    result = playhead("backtest", "--json", "--switch", "max_iterations(3)", "--switch", "tool_limit('*', 3)", "long")
    run, summary = objects(result)
    assert result.exit_code == 0
    assert (run["kind"], run["run_id"], run["verdict"], run["lost"]) == ("run", "long", "stopped", True)
    assert run["stop"]["switch"] == "max_iterations"
    assert run["stop"]["turn"] == 3
    assert (run["saved"]["tokens"], run["saved"]["requests"], run["saved"]["calls"]) == (450, 1, 0)
    assert (summary["kind"], summary["runs"], summary["stopped"], summary["lost"]) == ("summary", 1, 1, 1)
    assert summary["switches"] == ["max_iterations(3)", "tool_limit('*', 3)"]
    assert summary["saved"] == run["saved"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["long"], "backtest needs a --switch"),
        (["--switch", "budgetlimit(max_tokens=5)"], "Did you mean 'budget_limit'?"),
        (["--switch", "stop_when(f)"], "stop_when cannot be backtested: it is code of yours"),
        (["--switch", "max_iterations(\x1b[2J)"], "is not an expression"),
        (["--switch", "max_iterations(1)", "--last", "2", "long"], "name runs, or choose them with --last"),
    ],
)
def test_what_cannot_be_asked(runs: Path, arguments: list[str], said: str):
    """It is a usage error, said in one safe line."""
    result = playhead("backtest", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert "\x1b" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_nothing_can_be_told(runs: Path):
    """Open runs in which no switch fires: exit 4, and it is said of each."""
    path = runs / "long.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    result = playhead("backtest", "--switch", "max_iterations(9)", "long")
    assert result.exit_code == 4
    assert "the file has no end, and no switch fires in what it holds" in " ".join(result.stdout.split())
    assert "Of 1 run: 0 untouched, 0 stopped, 1 cannot be told" in result.stdout
