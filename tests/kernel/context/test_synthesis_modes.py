from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import UsageError, context_profile, tool
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, call, text
from tests.compose.hooked import sent
from tests.kernel.runs import Ran, make_agent, record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@tool(read_only=True)
async def look(key: str) -> str:
    """Look."""
    return f"found {key}"


def profile(**changes: Any) -> Any:
    """Return a profile that puts two turns together at a time."""
    numbers = {"compact_after_steps": 2, "full_detail_steps": 1, "prior_work_chars": 500, "argument_chars": 400}
    return context_profile("mid", **{**numbers, **changes})


async def run_with(folder: Path, model: Any, **options: Any) -> Ran:
    """Run an agent, reproduced from its file alone: none of the caller's functions is at hand there."""
    run = await record(folder, model, look, **{"compression": False, **options})
    assert sent(run) == run.model.requests
    reproduced = await reproduce(run.recording)
    assert reproduced.identical, reproduced.divergences
    return run


def modes(run: Ran) -> list[str]:
    """Return how old turns were put together."""
    return [event.mode for event in run.events("context-synthesized")]


def looks(keys: list[str]) -> list[Any]:
    """Return a call for each."""
    return [call("look", key=key) for key in keys]


@pytest.mark.parametrize(("length", "expected"), [(1, ["fast"]), (350, ["deep"])])
async def test_auto(tmp_path: Path, length: int, expected: list[str]):
    """By rule as long as nothing has to be left out, else in the model's words, at the temperature of the profile."""
    keys = [letter * length for letter in "abc"]
    said = [text("The model's words.")] if expected == ["deep"] else []
    run = await run_with(
        tmp_path, [*looks(keys), *said, text("done")], profile=profile(synthesis="auto", synthesis_temperature=0.25)
    )
    assert modes(run) == expected
    asked = [event.parameters for event in run.events("llm-requested") if event.purpose == "context-synthesis"]
    assert asked == [{"temperature": 0.25}] * len(said)


async def words(work: str) -> str:
    """Return what is to stand for old turns."""
    return f"  {work.count('found')} results, in the caller's words\n"


@pytest.mark.parametrize("function", [words, lambda work: f"{work.count('found')} results, in the caller's words"])
async def test_custom(tmp_path: Path, function: Callable[[str], Any]):
    """A function of the caller's, sync or async, says what stands for old turns; what it said is a fact."""
    run = await run_with(tmp_path, [*looks(["a", "b", "c"]), text("done")], profile=profile(), synthesizer=function)
    assert modes(run) == ["custom"]
    told = next(str(each.content) for each in run.model.requests[-1].messages if "[Prior work" in str(each.content))
    assert told.endswith("So far:\n2 results, in the caller's words\nOther calls: look (2)")
    assert [event.rationale for event in run.events("curator-decision")] == ["in the caller's words"] * 2
    assert [fact.name for fact in run.events("fact-recorded")] == ["context-synthesis"]


def _raises(_: str) -> str:
    raise KeyError("x")


@pytest.mark.parametrize(
    ("function", "why"),
    [(_raises, "it raised KeyError: "), (lambda _: 3, "it returned int, not text")],
    ids=["raises", "no text"],
)
async def test_a_function_that_fails(tmp_path: Path, function: Any, why: str):
    """Old turns are put together by rule, and that is said."""
    run = await run_with(tmp_path, [*looks(["a", "b", "c"]), text("done")], profile=profile(), synthesizer=function)
    assert modes(run) == ["fast"]
    (decided,) = run.events("decision-evaluated")
    assert decided.decision == "old turns are put together by rule"
    assert decided.rationale.startswith(f"the synthesizer failed: {why}")


@pytest.mark.parametrize(("strategy", "expected"), [("reactive", ["fast"]), ("direct", [])])
async def test_by_strategy(tmp_path: Path, strategy: str, expected: list[str]):
    """What is said of a strategy stands before what is said of all."""
    modes_of = profile(synthesis="off", synthesis_by_strategy={"react": "fast"})
    run = await run_with(
        tmp_path, [*looks(["a", "b", "c"]), text("done")], profile=modes_of, strategy=strategy, max_iterations=10
    )
    assert modes(run) == expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_agent(None, [], synthesizer=words), "synthesizer puts old turns together, which only"),
        (lambda: make_agent(None, [], profile=profile(synthesis="custom")), 'the profile says synthesis="custom"'),
        (lambda: make_agent(None, ScriptedModel([]), profile=profile(), synthesizer=3), "synthesizer"),
        (lambda: profile(synthesis_by_strategy={"reflection": "off"}), "there is no strategy 'reflection'"),
        (lambda: profile(synthesis="slow"), "synthesis: Input should be 'auto', 'fast', 'deep', 'off' or 'custom'"),
    ],
)
def test_what_cannot_be(make: Any, message: str):
    """Is an error that says what can."""
    with pytest.raises(UsageError) as raised:
        make()
    assert str(raised.value).startswith(message)
