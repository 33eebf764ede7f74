"""What a replay is told to change is what it changes; what cannot be is an error that says what can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, Context
from playhead.errors import UsageError
from playhead.replay import Overrides, ResultOverride, replay, reproduce
from playhead.testing import ScriptedModel, call, calls, text
from tests.replay.small_runs import SCRIPT, lookup, recorded, write

if TYPE_CHECKING:
    from pathlib import Path


def system_prompt_of(result: Any) -> str:
    """Return the system message that the replay's model was sent."""
    return str(result.recording.root.message(0).content)


@pytest.mark.parametrize(
    ("change", "prompt"),
    [
        ("New.", "New."),
        ({"append": " Now."}, "Old one. Now."),
        ({"replace": ["Old", "New"]}, "New one."),
        ({"replace": ["one", "two"], "append": "!"}, "Old two.!"),
        (str.upper, "OLD ONE."),
        ("", ""),
    ],
)
async def test_the_system_prompt(change: Any, prompt: str, tmp_path: Path) -> None:
    """It is replaced, or changed by a patch or a function; nothing else is."""
    recording = await recorded(tmp_path, system_prompt="Old one.")
    result = await replay(recording, {"system_prompt": change, "model": ScriptedModel(SCRIPT)}, trace=None)
    assert result.recording.header.agent.system_prompt == prompt
    if prompt:
        assert system_prompt_of(result) == prompt
    assert result.verdict == "same"


async def test_the_default_prompt_can_be_changed_too(tmp_path: Path) -> None:
    """A run without a prompt of its user's has Playhead's; a patch is put to that."""
    recording = await recorded(tmp_path)
    result = await replay(
        recording, {"system_prompt": {"append": " Hurry."}, "model": ScriptedModel(SCRIPT)}, trace=None
    )
    assert system_prompt_of(result) == f"{recording.root.message(0).content} Hurry."


async def test_task_parameters_and_turns(tmp_path: Path) -> None:
    """Each reaches the model's requests and the header; None takes a parameter out."""
    recording = await recorded(tmp_path, parameters={"temperature": 1, "seed": 7, "top_p": 0.5})
    model = ScriptedModel(SCRIPT)
    overrides = {
        "task": "Something else.",
        "temperature": 0.2,
        "parameters": {"seed": None, "top_p": 0.9, "stop": ["x"]},
        "max_iterations": 1,
        "model": model,
    }
    result = await replay(recording, overrides, trace=None)
    header = result.recording.header
    assert header.task == "Something else."
    assert header.agent.parameters == {"temperature": 0.2, "top_p": 0.9, "stop": ["x"]}
    assert model.requests[0].parameters == header.agent.parameters
    assert model.requests[0].messages[-1].content == "Something else."
    assert (result.run.terminated_by, result.run.iterations) == ("max_iterations", 1)
    assert header.overrides == {**overrides, "model": "scripted/model"}


async def test_a_model_override_is_a_substitution(tmp_path: Path) -> None:
    """It answers for every agent that was on the root's model; one on another model keeps it, and a note says so."""
    same = Agent(ScriptedModel([text("same found")], name="scripted/one"), name="same")
    other = Agent(ScriptedModel([text("other found")], name="scripted/two"), name="other")
    turns = [calls(call("same", task="s"), call("other", task="o")), text("done")]
    recording = await recorded(tmp_path, ScriptedModel(turns, name="scripted/one"), same, other)
    new = ScriptedModel([turns[0], text("new found"), text("new done")], name="scripted/new")
    with pytest.raises(UsageError, match=r"'scripted/two', an object of somebody's program; pass model="):
        await replay(recording, {"model": new}, trace=None)
    kept = ScriptedModel([text("kept found")], name="scripted/kept")
    result = await replay(recording, {"model": new, "agents": {"other": {"model": kept}}}, trace=None)
    models = {
        owner: recording.started.agent.model
        for owner, recording in result.recording.owners.items()
        if recording.started is not None
    }
    assert models == {"root": "scripted/new", "root/same@0.0": "scripted/new", "root/other@0.1": "scripted/kept"}
    assert result.notes == ("the agent other is answered by scripted/kept, live, not by scripted/new",)
    assert result.recording.header.overrides == {
        "model": "scripted/new",
        "agents": {"other": {"model": "scripted/kept"}},
    }


async def test_an_agent_below_the_root_can_be_changed_by_name(tmp_path: Path) -> None:
    """Its prompt, model, parameters and turns; the root's stay as they were."""
    child = Agent(ScriptedModel([text("found")]), name="child", system_prompt="Search.")
    turns = [call("child", task="t"), text("done")]
    recording = await recorded(tmp_path, turns, child)
    changed = ScriptedModel([text("found too")], name="scripted/child")
    overrides = {
        "model": ScriptedModel(turns),
        "agents": {"child": {"system_prompt": {"append": " Well."}, "model": changed, "temperature": 0}},
    }
    result = await replay(recording, overrides, trace=None)
    started = result.recording.owners["root/child@0.0"].started
    assert started is not None
    assert (started.agent.system_prompt, started.agent.parameters) == ("Search. Well.", {"temperature": 0})
    assert started.agent.model == "scripted/child"
    assert result.recording.header.agent.parameters == {}
    with pytest.raises(UsageError, match=r"the recording has no agent 'chidl'. Did you mean 'child'"):
        await replay(recording, {"agents": {"chidl": {}}, "model": ScriptedModel([])}, trace=None)
    with pytest.raises(UsageError, match="AgentOverrides has no field 'task'"):
        Overrides(agents={"child": {"task": "other"}})


async def test_an_overridden_result_answers_the_calls_it_means(tmp_path: Path) -> None:
    """By tool, by arguments, by number; what it answers instead is used up, and what fitted nothing is said."""
    turns = [call("lookup", key="a"), call("lookup", key="a"), call("lookup", key="b"), text("done")]
    recording = await recorded(tmp_path, turns)
    results = [
        ResultOverride("lookup", {"key": "a"}, result="second a", nth=1),
        ResultOverride("lookup", {"key": "b"}, error="no b today"),
        {"tool": "lookup", "arguments": {"key": "c"}, "result": "c"},
        ResultOverride("lookup", {"key": "a"}, result="ninth a", nth=8),
    ]
    result = await replay(recording, {"tool_results": results, "model": ScriptedModel(turns)}, trace=None)
    observations = [step.content for step in result.run.steps if step.type == "observation"]
    assert observations == ["value of a", "second a", "error: no b today"]
    assert dict(result.rungs) == {"exact": 1, "override": 2}
    # Nobody doubts what he said himself, so it counts against the share and not for the verdict.
    assert (result.grounded, result.verdict) == (1 / 3, "same")
    assert result.notes == (
        "the override of lookup was not used: it fitted 0 calls of the replay",
        "the override of call 8 of lookup was not used: it fitted 2 calls of the replay",
    )
    assert result.recording.header.overrides["tool_results"] == [
        {"tool": "lookup", "arguments": {"key": "a"}, "nth": 1, "result": "second a"},
        {"tool": "lookup", "arguments": {"key": "b"}, "error": "no b today"},
        {"tool": "lookup", "arguments": {"key": "c"}, "result": "c"},
        {"tool": "lookup", "arguments": {"key": "a"}, "nth": 8, "result": "ninth a"},
    ]
    short = await replay(recording, {"tool_results": {"lookup": 5}, "model": ScriptedModel(turns)}, trace=None)
    assert [step.content for step in short.run.steps if step.type == "observation"] == ["5", "5", "5"]


async def test_an_overridden_side_effect_leaves_the_state_unknown(tmp_path: Path) -> None:
    """What was recorded after a write whose answer is changed is stale; a changed read changes nothing."""
    turns = [call("lookup", key="a"), call("write", key="a"), call("lookup", key="b"), text("done")]
    recording = await recorded(tmp_path, turns, lookup, write)
    model = ScriptedModel(turns)
    result = await replay(recording, {"tool_results": {"write": "failed"}, "model": model}, trace=None)
    assert result.stopped is not None
    assert "in the replay it is write by root (override: what it did is not known)" in result.stopped
    assert (result.verdict, result.run.terminated_by) == ("inconclusive", "replay_stopped")
    read = ResultOverride("lookup", {"key": "a"}, result="x")
    result = await replay(recording, {"tool_results": [read], "model": ScriptedModel(turns)}, trace=None)
    assert dict(result.rungs) == {"override": 1, "exact": 2}


async def test_an_agents_answer_can_be_overridden(tmp_path: Path) -> None:
    """It is not entered then, and the replay's recording reproduces."""
    child = Agent(ScriptedModel([text("found")]), name="child", context=Context(meta_tools=()))
    turns = [call("child", task="t"), text("done")]
    recording = await recorded(tmp_path, turns, child)
    result = await replay(
        recording, {"tool_results": {"child": "nothing"}, "model": ScriptedModel(turns)}, trace=tmp_path
    )
    assert list(result.recording.owners) == ["root"]
    assert dict(result.rungs) == {"override": 1}
    assert (await reproduce(result.recording)).identical
