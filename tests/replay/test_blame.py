"""Blame: the part of a change that flipped the outcome is found, whichever it is; where there is none, nothing is blamed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, ResultOverride, UsageError, tool
from playhead.replay import blame as replay_blame
from playhead.replay.blame import find_cause
from playhead.replay.verdict import Measures
from playhead.testing import ScriptedModel, call, text
from tests.proving import sample

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROMPT = "You are a clerk.\n\nAnswer in one sentence.\n\nNever guess.\n\nUse metres."
NEW = "You are a clerk.\n\nAnswer briefly.\n\nUse metres.\n\nName your source.\n\nBe kind."
CHANGE: dict[str, Any] = {
    "parameters": {"temperature": 0.7, "seed": 4},
    "max_iterations": 7,
    "tools": {"lookup": {"description": "Find a height."}},
    "tool_results": [ResultOverride("lookup", result="9,000 feet")],
    "system_prompt": NEW,
}
PARTS = (
    "parameters[temperature]: + '0.7'",
    "parameters[seed]: + '4'",
    "max_iterations: + '7'",
    """tools[lookup]: + '{"description": "Find a height."}'""",
    """tool_results[0]: + '{"tool": "lookup", "arguments": null, "nth": null, "result": "9,000 feet", "error": null}'""",
    "system_prompt[1]: - 'Answer in one sentence.' + 'Answer briefly.'",
    "system_prompt[2]: - 'Never guess.'",
    "system_prompt[4]: + 'Name your source.'",
    "system_prompt[4]: + 'Be kind.'",
)


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look something up."""
    return "4,180 feet"


def seen(request: Any) -> set[int]:
    """Return which parts of the change a request shows."""
    system, parameters = str(request.messages[0].content), request.parameters
    signs = [
        parameters.get("temperature") == 0.7, parameters.get("seed") == 4, False,
        any(each.description == "Find a height." for each in request.tools),
        any("9,000" in str(each.content) for each in request.messages),
        "Answer briefly." in system, "Never guess." not in system, "Name your source." in system, "Be kind." in system,
    ]  # fmt: skip
    return {number for number, sign in enumerate(signs) if sign}


def answering(is_wrong: Callable[[set[int]], bool]) -> ScriptedModel:
    """Return a model that looks once, and answers wrongly under these circumstances."""

    def answer(request: Any) -> Any:
        if not any(each.role == "tool" for each in request.messages):
            return call("lookup", key="Zed")
        return text("wrong" if is_wrong(seen(request)) else "right")

    return ScriptedModel([answer] * 10_000)


def made_of(changes: Any) -> set[int]:
    """Return which parts of the change are made."""
    system, parameters = changes.get("system_prompt", PROMPT), changes.get("parameters", {})
    signs = [
        "temperature" in parameters, "seed" in parameters, False, "tools" in changes, "tool_results" in changes,
        "Answer briefly." in system, "Never guess." not in system, "Name your source." in system, "Be kind." in system,
    ]  # fmt: skip
    return {number for number, sign in enumerate(signs) if sign}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that answered right."""
    agent = Agent(
        answering(lambda _: False), tools=[lookup], system_prompt=PROMPT, trace=tmp_path_factory.mktemp("traces")
    )
    path = agent.run_sync("How high is Zed?", run_id="run").trace_path
    assert path is not None
    return path


def blame(path: Path, is_wrong: Callable[[set[int]], bool], **options: Any) -> Any:
    """Find what made a model answer wrongly."""
    return find_cause(path, baseline={"model": answering(is_wrong)}, trace=None, **{**CHANGE, **options})


VISIBLE = [0, 1, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("cause", VISIBLE)
def test_a_single_cause_is_found(recorded: Path, cause: int) -> None:
    """Whatever part a deterministic model minds, that part and no other one is blamed, after one replay of each part."""
    found = blame(recorded, lambda parts: cause in parts)
    assert (found.verdict, [[found.parts.index(part) for part in each] for each in found.causes]) == (
        "cause",
        [[cause]],
    )
    assert found.replays == len(found.tested) <= 2 + len(found.parts) + 1
    assert tuple(map(str, found.parts)) == PARTS


@pytest.mark.parametrize("seed", range(sample(60, 8)))
def test_parts_that_do_it_only_together_are_found(recorded: Path, seed: int) -> None:
    """Two or three parts that flip the outcome together, and none alone: no single cause, and exactly they."""
    causes = set(random.Random(seed).sample(VISIBLE, 2 + seed % 2))
    found = blame(recorded, lambda parts: causes <= parts)
    assert (found.verdict, [{found.parts.index(part) for part in each} for each in found.causes]) == (
        "together",
        [causes],
    )
    assert found.reason.startswith("no single cause, but together: ")


def test_each_of_several_causes_is_named(recorded: Path) -> None:
    """Two parts that flip it alone, and a pair beside them: each smallest set is a cause."""
    found = blame(recorded, lambda parts: 1 in parts or 4 in parts or {5, 8} <= parts)
    assert [{found.parts.index(part) for part in each} for each in found.causes] == [{1}, {4}, {5, 8}]


@pytest.mark.parametrize("is_wrong", [lambda _: False, lambda _: True, lambda parts: len(parts) == 1])
def test_nothing_is_blamed_where_the_change_flips_nothing(recorded: Path, is_wrong: Any) -> None:
    """Right with and without it, wrong with and without it, or wrong only with a part that the change makes good again."""
    found = blame(recorded, is_wrong)
    assert (found.verdict, found.causes, found.replays) == ("none", (), 2)
    assert "does not flip the outcome" in found.reason


def test_what_is_not_known_is_said(recorded: Path) -> None:
    """Replays that stop at a call that was not recorded tell nothing, and neither do too few; nothing changed is an error."""

    def lost(_: Any) -> Any:
        return call("lookup", key="other")

    stopped = find_cause(recorded, baseline={"model": ScriptedModel([lost] * 9)}, temperature=1, trace=None)
    assert (stopped.verdict, stopped.causes, stopped.replays) == ("unknown", (), 2)
    assert stopped.reason.endswith("the outcome of 2 replays is not known: the replay was stopped: replay_stopped")

    def alone(request: Any) -> Any:
        made = seen(request) & {0, 1}
        return lost(request) if made == {0} else text("wrong" if made == {0, 1} else "right")

    both = {"temperature": 0.7, "seed": 4}
    half = find_cause(recorded, baseline={"model": ScriptedModel([alone] * 9)}, parameters=both, trace=None)
    assert (half.verdict, half.causes, half.reason[:16]) == ("unknown", (half.parts,), "perhaps together")
    unnamed = find_cause(recorded, temperature=1, trace=None)
    assert (unnamed.verdict, "Pass model=" in unnamed.reason) == ("unknown", True)
    for wrong in ({"repeats": 2}, {"repeats": True}, {"success": "fine"}):
        with pytest.raises(UsageError):
            blame(recorded, lambda _: True, **wrong)
    with pytest.raises(UsageError, match="nothing is changed"):
        find_cause(recorded, trace=None)


def test_changes_of_an_agent_below_have_parts_too(tmp_path: Path) -> None:
    """A changed sub-agent is a part by its name."""

    def above(request: Any) -> Any:
        told = [str(each.content) for each in request.messages if each.role == "tool"]
        return text(told[0]) if told else call("child", task="Look.")

    def below(request: Any) -> Any:
        return text("wrong" if "Guess." in str(request.messages[0].content) else "right")

    child = Agent(ScriptedModel([below] * 99, name="scripted/child"), name="child", system_prompt="Look.")
    agent = Agent(ScriptedModel([above] * 99), tools=[child], trace=tmp_path)
    path = agent.run_sync("How high?", run_id="run").trace_path
    assert path is not None
    change = {"child": {"system_prompt": "Guess.", "temperature": 0.1}}
    found = find_cause(path, agent=agent, agents=change, temperature=0.5, trace=None)
    assert [str(part) for each in found.causes for part in each] == [
        """agents[child]: + '{"system_prompt": "Guess.", "temperature": 0.1}'"""
    ]


def test_planted_rates_are_found_at_the_stated_repeats(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 8 repeats, a part that moves successes from 90 % to 10 % is blamed in 9 of 10 cases, and nothing in 19 of 20 without."""
    chance, right, cases = random.Random(7), {True: 0, False: 0}, sample(300, 60)
    for flips in (True, False):
        for case in range(cases):
            cause = VISIBLE[case % len(VISIBLE)]

            def run_job(job: Any, cause: int = cause, flips: bool = flips) -> Measures:
                share = 0.1 if flips and cause in made_of(job.changes) else 0.9
                return Measures("run", "changed", job.key[2], success=chance.random() < share)

            monkeypatch.setattr(replay_blame, "run_jobs", lambda jobs, *_: map(run_job, jobs))
            found = find_cause(recorded, repeats=8, **CHANGE)
            blamed = [[found.parts.index(part) for part in each] for each in found.causes]
            right[flips] += blamed == ([[cause]] if flips else [])
    assert right[True] >= 0.9 * cases, right
    assert right[False] >= 0.95 * cases, right
