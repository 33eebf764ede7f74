"""An import whose spans hold no tokens, or not all of them: no command says 0 of what nobody counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.cli.command_line import objects, playhead
from tests.importing.traces import TRACE, Trace, imported

if TYPE_CHECKING:
    from pathlib import Path

COUNTED: Final = {"llm.token_count.prompt": 100, "llm.token_count.completion": 20, "llm.cost.total": 0.25}
NOTHING, PARTLY, WHOLE = (f"import-{TRACE[:-1]}{number}" for number in range(3))
TURNS: Final = {NOTHING: ({}, {}), PARTLY: (COUNTED, {}), WHOLE: (COUNTED, COUNTED)}
"""What the spans of both model calls of each run say of tokens."""
BUDGET: Final = ("--switch", "budget_limit(max_tokens=20000)")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the three runs."""
    monkeypatch.setenv("COLUMNS", "160")
    for name, (first, second) in TURNS.items():
        prompt: list[Any] = [("user", "How high is Zed?")]
        more: list[Any] = [*prompt, ("assistant", "Hm."), ("user", "Well?")]
        trace = Trace(trace_id=name.removeprefix("import-")).agent(1)
        trace.model(2, 1, prompt, ("assistant", "Hm."), **first).model(4, 1, more, ("assistant", "4,180."), **second)
        imported(trace.foreign(tmp_path / name), tmp_path / "traces")
    return tmp_path / "traces"


def text(folder: Path, *arguments: str) -> str:
    """Return what a command says, each space once."""
    return " ".join(playhead(*arguments, "--trace-dir", folder, env={"COLUMNS": "200"}).stdout.split())


def data(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return what a command says as JSON."""
    return objects(playhead(*arguments, "--trace-dir", folder, "--json"))


@pytest.mark.parametrize(
    ("run", "said", "total"),
    [
        (NOTHING, ["tokens not known", "tokens not known"], "tokens not known"),
        (PARTLY, ["100+20 tokens", "tokens not known"], "at least 100+20 tokens"),
        (WHOLE, ["100+20 tokens", "100+20 tokens"], "200+40 tokens"),
    ],
    ids=["nothing", "partly", "whole"],
)
def test_show(folder: Path, run: str, said: list[str], total: str) -> None:
    """Each answer and the end say what is known; the JSON is the line, whose sums say how many answers they leave out."""
    shown = text(folder, "show", run)
    assert [f"1.0 ms, {each}: " in shown for each in said] == [True, True]
    assert f"2 turns, {total}: 4,180." in shown
    *_, end = data(folder, "show", run)
    assert end["data"]["usage"].get("unknown") == {NOTHING: 2, PARTLY: 1, WHOLE: None}[run]


def test_diff(folder: Path) -> None:
    """What is not known is not compared: no difference, and none that is said to be 0."""
    assert "tokens in+out unknown at least 100+20 ? cost" in text(folder, "diff", NOTHING, PARTLY)
    assert "tokens in+out at least 100+20 200+40 ? cost" in text(folder, "diff", PARTLY, WHOLE)
    [found] = data(folder, "diff", NOTHING, PARTLY)
    names = ("tokens_in", "tokens_out", "usage_unknown")
    original, replay = ([found[side][name] for name in names] for side in ("original", "replay"))
    assert (original, replay) == ([None, None, 2], [100, 20, 1])
    assert (found["tokens_delta"], found["also_differs"]) == (None, [])


def test_backtest_of_a_small_budget(folder: Path) -> None:
    """That it would have stopped is not said either, when that hangs on an answer that nobody counted."""
    [run, _] = data(folder, "backtest", "--switch", "budget_limit(max_tokens=4000, output_cap=3000)", NOTHING)
    assert (run["verdict"], run["stop"], run["lost"]) == ("unknown", None, False)
    [run, _] = data(folder, "backtest", "--switch", "budget_limit(max_tokens=1)", NOTHING)
    assert (run["verdict"], run["stop"]["request"]) == ("stopped", 0)  # before any answer


def test_backtest_of_another_switch(folder: Path) -> None:
    """One that counts no tokens is judged as ever; what is saved, and what that was of, say what is not known."""
    shown = text(folder, "backtest", "--switch", "max_iterations(1)", NOTHING)
    assert "would save tokens not known, a cost that is not known, 1 request, 0 calls, " in shown
    shown = text(folder, "backtest", "--switch", "max_iterations(1)", NOTHING, PARTLY, WHOLE)
    assert "Saved: at least 120 tokens, at least $0.2500, 3 requests" in shown
    assert "of at least 360 tokens, at least $0.7500, 6 requests" in shown
    *runs, summary = data(folder, "backtest", "--switch", "max_iterations(1)", NOTHING, PARTLY, WHOLE)
    assert [each["saved"]["tokens"] for each in (*runs, summary)] == [None, None, 120, 120]
    assert (summary["took"]["tokens"], summary["took"]["usage_unknown"], summary["took"]["cost_usd"]) == (360, 3, 0.75)


def test_a_budget_of_dollars_with_prices(folder: Path) -> None:
    """Tokens that nobody counted cost no 0 dollars by a price that is given."""
    switch = "budget_limit(max_cost_usd=9, output_cap=9, prices={'openai/m-1': [1e-6, 1e-6]})"
    [run, _] = data(folder, "backtest", "--switch", switch, NOTHING)
    assert (run["verdict"], run["took"]["cost_usd"], run["took"]["cost_unknown"]) == ("unknown", None, True)


def test_only_the_tokens_of_the_answer(tmp_path: Path) -> None:
    """A span that counts the answer alone: no prompt is of no token."""
    answer = {"llm.token_count.completion": 20}
    trace = Trace().agent(1).model(2, 1, [("user", "Zed?")], ("assistant", "4,180."), **answer)
    run, recording = imported(trace.foreign(tmp_path), tmp_path / "traces")
    assert recording.ending is not None
    assert (recording.ending.usage.total_tokens, recording.ending.usage.unknown) == (20, 1)
    assert "1 turn, ?+20 tokens: 4,180." in text(run.path.parent, "show", "latest")
    assert "| at least 20 tok |" in text(run.path.parent, "debrief", "latest")
    assert "Tokens: ? in, 20 out." in text(run.path.parent, "stats", "latest")
    assert data(run.path.parent, "list")[0]["total_tokens"] == 20


def test_list(folder: Path) -> None:
    """`?` where nothing is known, and behind a number of which a part is not; null and a count in the JSON."""
    shown = text(folder, "list")
    assert [f" answered 999.0ms {tokens} " in shown for tokens in ("?", "120+?", "240")] == [True, True, True]
    found = {each["run_id"]: (each["total_tokens"], each["usage_unknown"]) for each in data(folder, "list")}
    assert found == {NOTHING: (None, 2), PARTLY: (120, 1), WHOLE: (240, 0)}
