"""Runs whose provider counts no tokens, or not those of every answer: recorded, reproduced, replayed, backtested, told."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from rich.console import Console

from playhead import tool
from playhead.agent.streaming import IterationProgress, StreamCompleted, collect
from playhead.cli.outcome import ending_line, result_as_json, result_rows
from playhead.cli.progress import Progress
from playhead.compose.killswitches.expressions import parse_switch
from playhead.diagnose.statistics import run_statistics
from playhead.replay import replay, reproduce
from playhead.replay.backtest import backtest
from playhead.testing import ScriptedModel, call, text
from playhead.trace.types import Usage
from tests.cli.command_line import objects, playhead
from tests.kernel.runs import make_agent, record

if TYPE_CHECKING:
    from pathlib import Path


SILENT: Final = Usage()
COUNTED: Final = Usage(input_tokens=100, output_tokens=20)
AT_LEAST: Final = COUNTED.model_copy(update={"unknown": 1})


@tool(read_only=True)
def look(key: str) -> str:
    """Look a fact up."""
    return f"{key}: 42"


def script(first: Usage, second: Usage) -> list[Any]:
    """Return a call and an answer with these tokens."""
    return [replace(call("look", key="a"), usage=first), text("42", usage=second)]


async def test_what_is_recorded(tmp_path: Path) -> None:
    """An answer of no prompt's tokens is one that nobody counted; sums say how many they leave out, and are reproduced."""
    run = await record(tmp_path, script(COUNTED, SILENT), look)
    assert [event.usage for event in run.events("llm-responded")] == [COUNTED, Usage(unknown=1)]
    assert run.result.usage == AT_LEAST
    assert [event.usage for event in run.events("run-completed")] == [AT_LEAST]
    again = await reproduce(run.recording)
    assert (again.identical, again.divergences) == (True, ())


async def test_a_run_that_is_counted_says_nothing_of_it(tmp_path: Path) -> None:
    """The line of a run whose provider counts is what it ever was."""
    run = await record(tmp_path, script(COUNTED, COUNTED), look)
    assert b"unknown" not in run.recording.path.read_bytes()


async def test_a_sub_agent(tmp_path: Path) -> None:
    """What it leaves out, the agent above leaves out, too."""
    helper = make_agent(tmp_path, [text("42", usage=SILENT)], name="helper")
    turns = [replace(call("helper", task="Look."), usage=COUNTED), text("42", usage=COUNTED)]
    run = await record(tmp_path, turns, helper.as_tool())
    assert run.result.usage == Usage(input_tokens=200, output_tokens=40, unknown=1)
    figures = {each.agent: each.usage_unknown for each in run_statistics([run.recording]).agents}
    assert sorted(figures.values()) == [0, 1]


@pytest.mark.parametrize(
    ("second", "line", "tokens", "shown"),
    [
        (SILENT, "at least 120 tokens", "tokens  at least 100 in, 20 out, cost $0", (100, 20, 1)),
        (COUNTED, "240 tokens", "tokens  200 in, 40 out, cost $0", (200, 40, 0)),
    ],
    ids=["partly", "whole"],
)
async def test_what_run_tells(tmp_path: Path, second: Usage, line: str, tokens: str, shown: tuple[int, ...]) -> None:
    """The last line of the progress, the result, and its JSON."""
    run = await record(tmp_path, script(COUNTED, second), look)
    [end] = run.events("run-completed")
    assert ending_line(end).endswith(f"{line}, cost $0")
    out = io.StringIO()
    Console(file=out, width=100, color_system=None).print(*result_rows(run.result))
    assert tokens in out.getvalue()
    usage = result_as_json(run.result)["usage"]
    assert tuple(usage[name] for name in ("input_tokens", "output_tokens", "unknown")) == shown


async def test_what_run_tells_of_nothing(tmp_path: Path) -> None:
    """Null is not 0."""
    run = await record(tmp_path, script(SILENT, SILENT), look)
    [end] = run.events("run-completed")
    assert ending_line(end).endswith("tokens not known, cost $0")
    assert result_as_json(run.result)["usage"] == {
        **dict.fromkeys(COUNTED.model_dump(exclude={"not_believed"})),
        "unknown": 2,
    }


async def test_the_status_line(tmp_path: Path) -> None:
    """`?` where nothing is known, and behind the tokens that are."""
    for name, first, said in (("none", SILENT, "? tokens"), ("part", COUNTED, "120+? tokens")):
        run = await record(tmp_path / name, script(first, SILENT), look)
        progress = Progress(Console(file=io.StringIO(), width=80))
        for each in run.recording.records:
            progress(each)
        assert f"  {said}  $0" in progress.status()


async def test_what_is_streamed(tmp_path: Path) -> None:
    """None once the tokens of an answer are not known, as for a cost."""
    found = await collect(make_agent(tmp_path, script(SILENT, COUNTED), look).start("Do it."))
    assert [each.tokens_used for each in found if isinstance(each, IterationProgress)] == [0, None]
    assert isinstance(found[-1], StreamCompleted)
    assert found[-1].metadata["tokens"] is None


async def test_what_a_chat_says(tmp_path: Path) -> None:
    """None for a reply of which not all is counted."""
    chat = make_agent(tmp_path, [text("Hello.", usage=SILENT), text("Bye.", usage=COUNTED)], look).session()
    assert ((await chat.chat("Hello!")).tokens, (await chat.chat("Bye!")).tokens) == (None, 120)


async def test_a_replay(tmp_path: Path) -> None:
    """What the replay's model does not count is not known there, and no difference to the original is made up."""
    run = await record(tmp_path / "traces", script(COUNTED, COUNTED), look)
    model = ScriptedModel(script(SILENT, COUNTED))
    done = await replay(run.recording, {"model": model}, trace=tmp_path / "traces")
    assert (done.run.usage, done.diff.tokens_delta, "tokens" in done.diff.also_differs) == (AT_LEAST, None, False)
    result = playhead("diff", "run", done.run.run_id, "--trace-dir", tmp_path / "traces", env={"COLUMNS": "120"})
    assert "tokens in+out 200+40 at least 100+20" in " ".join(result.stdout.split())
    found = {each["run_id"]: each["usage_unknown"] for each in objects(playhead("list", "--replays", "--trace-dir", tmp_path / "traces", "--json"))}  # fmt: skip
    assert found == {"run": 0, done.run.run_id: 1}


async def test_a_budget_that_the_run_had(tmp_path: Path) -> None:
    """It counts what was set aside for an answer that the provider does not count, live and in a backtest."""
    switch = parse_switch("budget_limit(max_tokens=9000, output_cap=500)")
    run = await record(tmp_path, script(SILENT, SILENT), look, compose=[switch.block])
    told = backtest(run.recording, [switch])
    assert (told.verdict, told.took.tokens, told.took.usage_unknown) == ("untouched", None, 2)


async def test_a_budget_that_may_have_cut_an_answer(tmp_path: Path) -> None:
    """Without one nobody knows how long the answers were, which it would have cut; with their tokens it is known."""
    switch = parse_switch("budget_limit(max_tokens=9000, output_cap=500)")
    run = await record(tmp_path / "none", script(SILENT, SILENT), look)
    told = backtest(run.recording, [switch])
    assert (told.verdict, told.why_unknown and told.why_unknown[:40]) == (
        "unknown", "the tokens of the answer to request 0 of",
    )  # fmt: skip
    half = await record(tmp_path / "half", script(COUNTED, Usage(output_tokens=20)), look)
    assert backtest(half.recording, [switch]).verdict == "untouched"
