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
ALL: Final = (NOTHING, PARTLY, WHOLE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the three runs."""
    folder = tmp_path_factory.mktemp("unknown")
    for name, (first, second) in TURNS.items():
        prompt: list[Any] = [("user", "How high is Zed?")]
        more: list[Any] = [*prompt, ("assistant", "Hm."), ("user", "Well?")]
        trace = Trace(trace_id=name.removeprefix("import-")).agent(1)
        trace.model(2, 1, prompt, ("assistant", "Hm."), **first).model(4, 1, more, ("assistant", "4,180."), **second)
        imported(trace.foreign(folder / name), folder / "traces")
    return folder / "traces"


TEXTS: Final[list[tuple[tuple[str, ...], tuple[str, ...]]]] = [
    (("show", NOTHING), ("1.0 ms, tokens not known: ", "2 turns, tokens not known: 4,180.")),
    (
        ("show", PARTLY),
        ("1.0 ms, 100+20 tokens: ", "1.0 ms, tokens not known: ", "2 turns, at least 100+20 tokens: 4,180."),
    ),
    (("show", WHOLE), ("2 turns, 200+40 tokens: 4,180.",)),
    (("diff", NOTHING, PARTLY), ("tokens in+out unknown at least 100+20 ? cost",)),
    (("diff", PARTLY, WHOLE), ("tokens in+out at least 100+20 200+40 ? cost",)),
    (
        ("backtest", "--switch", "max_iterations(1)", NOTHING),
        ("would save tokens not known, a cost that is not known, 1 request, 0 calls, ",),
    ),
    (
        ("backtest", "--switch", "max_iterations(1)", *ALL),
        (
            "Saved: at least 120 tokens, at least $0.2500, 3 requests",
            "of at least 360 tokens, at least $0.7500, 6 requests",
        ),
    ),
    (("list",), (" answered 999.0ms ? ", " answered 999.0ms 120+? ", " answered 999.0ms 240 ")),
]


@pytest.mark.parametrize(("command", "expected"), TEXTS, ids=[f"{given[0]}-{n}" for n, (given, _) in enumerate(TEXTS)])
def test_texts(folder: Path, command: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """What is known is stated, with what is not: of an answer, a run, a comparison and a sum."""
    shown = playhead(*command, "--trace-dir", folder, env={"COLUMNS": "200"}).stdout
    assert [each for each in expected if each not in " ".join(shown.split())] == []


def data(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return what a command says as JSON."""
    return objects(playhead(*arguments, "--trace-dir", folder, "--json"))


def test_json(folder: Path) -> None:
    """Null where nothing is known, and the number of answers that a sum leaves out."""
    found = {each["run_id"]: (each["total_tokens"], each["usage_unknown"]) for each in data(folder, "list")}
    assert found == {NOTHING: (None, 2), PARTLY: (120, 1), WHOLE: (240, 0)}
    unknown = [data(folder, "show", run)[-1]["data"]["usage"].get("unknown") for run in ALL]
    assert unknown == [2, 1, None]
    [diff] = data(folder, "diff", NOTHING, PARTLY)
    names = ("tokens_in", "tokens_out", "usage_unknown")
    assert [[diff[side][name] for name in names] for side in ("original", "replay")] == [[None, None, 2], [100, 20, 1]]
    assert (diff["tokens_delta"], diff["also_differs"]) == (None, [])
    *runs, summary = data(folder, "backtest", "--switch", "max_iterations(1)", *ALL)
    assert [each["saved"]["tokens"] for each in (*runs, summary)] == [None, None, 120, 120]
    assert (summary["took"]["tokens"], summary["took"]["usage_unknown"], summary["took"]["cost_usd"]) == (360, 3, 0.75)


@pytest.mark.parametrize(
    ("switch", "verdict"),
    [
        ("budget_limit(max_tokens=4000, output_cap=3000)", "unknown"),
        ("budget_limit(max_cost_usd=9, output_cap=9, prices={'openai/m-1': [1e-6, 1e-6]})", "unknown"),
        ("budget_limit(max_tokens=1)", "stopped"),  # before any answer
    ],
)
def test_backtest_of_a_budget(folder: Path, switch: str, verdict: str) -> None:
    """Whether a budget would have stopped a run is not known when that depends on an answer that nobody counted."""
    [run, _] = data(folder, "backtest", "--switch", switch, NOTHING)
    assert (run["verdict"], run["took"]["cost_usd"], run["took"]["cost_unknown"]) == (verdict, None, 2)


def test_only_the_tokens_of_the_answer(tmp_path: Path) -> None:
    """A span that counts the answer alone: the prompt's tokens are not 0."""
    answer = {"llm.token_count.completion": 20}
    trace = Trace().agent(1).model(2, 1, [("user", "Zed?")], ("assistant", "4,180."), **answer)
    _, recording = imported(trace.foreign(tmp_path), tmp_path)
    assert recording.ending is not None
    assert (recording.ending.usage.total_tokens, recording.ending.usage.unknown) == (20, 1)
    said = {"show": "1 turn, ?+20 tokens: 4,180.", "debrief": "| at least 20 tok |", "stats": "Tokens: ? in, 20 out."}
    for command, words in said.items():
        assert words in playhead(command, "latest", "--trace-dir", tmp_path, env={"COLUMNS": "200"}).stdout
