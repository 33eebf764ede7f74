"""What a replay is told to change is what it changes; what cannot be is an error that says what can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, Context
from playhead.compose.killswitches import tool_limit
from playhead.errors import MissingApiKeyError, UnknownModelError, UsageError
from playhead.replay import Overrides, ResultOverride, replay, reproduce
from playhead.testing import ScriptedModel, call, calls, text
from tests.kernel.runs import make_agent, record, record_agent
from tests.options import grouped
from tests.replay.small_runs import SCRIPT, lookup, recorded, write

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.diagnose.recording import Recording


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
        ("", ""),
    ],
)
async def test_the_system_prompt(change: Any, prompt: str, tmp_path: Path) -> None:
    """It is replaced, or changed by a patch; nothing else is."""
    recording = await recorded(tmp_path, system_prompt="Old one.")
    result = await replay(recording, {"system_prompt": change, "model": ScriptedModel(SCRIPT)}, trace=None)
    assert result.recording.header.agent.system_prompt == prompt
    if prompt:
        assert system_prompt_of(result) == prompt
    assert result.verdict == "same"


async def test_task_parameters_and_turns(tmp_path: Path) -> None:
    """Each reaches the model's requests and the header; None takes a parameter out, and Playhead's own prompt can be patched."""
    recording = await recorded(tmp_path, parameters={"temperature": 1, "seed": 7, "top_p": 0.5})
    model = ScriptedModel(SCRIPT)
    overrides = {
        "system_prompt": {"append": " Hurry."},
        "task": "Something else.",
        "temperature": 0.2,
        "parameters": {"seed": None, "top_p": 0.9, "stop": ["x"]},
        "max_iterations": 1,
        "model": model,
    }
    result = await replay(recording, overrides, trace=None)
    header = result.recording.header
    assert system_prompt_of(result) == f"{recording.root.message(0).content} Hurry."
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
    with pytest.raises(UsageError, match=r"'scripted/two' is no provider/model: .* Pass model="):
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
    assert "in another state of the world: other side effects had come before it" in result.stopped
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


# --- what cannot be ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sistem_prompt": "x"}, "Overrides has no field 'sistem_prompt'. Did you mean 'system_prompt'"),
        ({"system_prompt": 5}, "^system_prompt"),
        ({"system_prompt": {"appendix": "x"}}, "^system_prompt.appendix"),
        ({"system_prompt": {"replace": "x"}}, "^system_prompt.replace"),
        ({"system_prompt": {"replace": ["Odl", "New"]}}, "the prompt does not hold the text to replace, 'Odl'"),
        ({"task": 5}, "a task is text"),
        ({"model": 5}, "^model"),
        ({"model": "gpt"}, "names no provider"),
        ({"temperature": "hot"}, "^temperature"),
        ({"parameters": {"api_key": "x"}}, "api_key: not a request parameter"),
        ({"max_iterations": 0}, "^max_iterations"),
        ({"tool_results": "lookup"}, "^tool_results"),
        ({"tool_results": [{"result": 5}]}, "^tool: "),
        ({"tool_results": [{"tool": "lookup", "reslt": 5}]}, "no field 'reslt'. Did you mean 'result'"),
        ({"tool_results": [{"tool": "lookup", "result": 1, "error": "x"}]}, "a result and an error"),
        ({"tool_results": [{"tool": "lookup", "nth": -1}]}, "^nth"),
        ({"tool_results": {"lokup": 5}}, "the recording has no tool 'lokup'. Did you mean 'lookup'"),
        ({"tool_faults": {"lookup": "slow"}}, "fault: Input should be"),
        ({"tool_faults": {"lokup": "error"}}, "tool_faults: the recording has no"),
        ({"tools": {"lokup": None}}, "tools: the recording has no tool 'lokup'. Did you mean 'lookup'"),
        ({"tools": {"lookup": {"description": "x", "parameters": {}}}}, "tools.lookup.parameters"),
        ({"strategy": "reflexon"}, "there is no strategy 'reflexon'. Did you mean 'reflexion'"),
        ({"strategy": 7}, "strategy: Input should be an instance of Strategy"),
        ({"hooks": print}, "hooks must be a list"),
        ({"hooks": [tool_limit("lokup", 1)]}, "tool_limit: there is no tool 'lokup'"),
        ({"agents": {"x": {"task": "t"}}}, "AgentOverrides has no field 'task'"),
        (5, "overrides must be Overrides or a dict"),
    ],
)
async def test_what_cannot_be_overridden_is_an_error(given: Any, message: str, tmp_path: Path) -> None:
    """Nothing is recorded for it, and the message names what is wrong and what would be right."""
    recording = await recorded(tmp_path, meta_tools=("final-answer",))
    if isinstance(given, dict) and "model" not in given:
        given = {**given, "model": ScriptedModel(SCRIPT)}
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        await replay(recording, given, trace=tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_missing": "lenint"}, "a function or a model; no policy is 'lenint'. Did you mean 'lenient'"),
        ({"min_grounded": 2}, "min_grounded must be a share"),
        ({"trace": 5}, "trace must be a folder"),
        ({"rebind": {"KEY": "long enough"}}, "the recording redacts nothing as 'KEY'"),
        ({"rebind": {"KEY": "short"}}, "at least 6 characters"),
    ],
)
async def test_what_a_replay_cannot_be_told(options: Any, message: str, tmp_path: Path) -> None:
    """Its own arguments are looked at before anything runs."""
    recording = await recorded(tmp_path)
    with pytest.raises(UsageError, match=message):
        await replay(recording, {"model": ScriptedModel(SCRIPT)}, **{"trace": None, **options})


# --- who answers ------------------------------------------------------------------------------------------------------


QUIET: dict[str, Any] = {"rationale": False, "meta_tools": ()}


def namesakes(folder: Path | None) -> tuple[Agent, ScriptedModel, ScriptedModel]:
    """Return a root with an agent `helper` and an agent `boss` that has another `helper`, and the helpers' models."""
    outer = ScriptedModel([text("from outer")], name="scripted/outer")
    inner = ScriptedModel([text("from inner")], name="scripted/inner")
    boss = Agent(
        ScriptedModel([call("helper", task="z"), text("from boss")], name="scripted/boss"),
        **grouped(
            name="boss", tools=[Agent(inner, **grouped(name="helper", system_prompt="Other.", **QUIET))], **QUIET
        ),
    )
    turns = [call("helper", task="x"), call("boss", task="y"), text("done")]
    return make_agent(folder, turns, Agent(outer, **grouped(name="helper", **QUIET)), boss), outer, inner


async def recorded_family(folder: Path, root: str, child: str) -> Recording:
    """Return a recording of a root and an agent below it, which says that they were on these models."""
    agent = Agent(ScriptedModel([text("found")], name=child), **grouped(name="child", **QUIET))
    turns = ScriptedModel([call("child", task="t"), text("done")], name=root)
    return (await record(folder, turns, agent)).recording


async def test_agents_that_share_a_name_are_answered_by_their_own_models(tmp_path: Path) -> None:
    """With `agent=` each namesake asks the model that its code gives it."""
    recorded, *_ = namesakes(tmp_path)
    recording = (await record_agent(recorded, tmp_path)).recording
    agent, outer, inner = namesakes(None)
    result = await replay(recording, agent=agent, trace=None)
    assert (len(outer.requests), len(inner.requests)) == (1, 1)
    assert (result.verdict, result.stopped) == ("same", None)
    models = {name: owner.started.agent.model for name, owner in result.recording.owners.items() if owner.started}
    assert models == {
        "root": "scripted/model",
        "root/helper@0.0": "scripted/outer",
        "root/boss@1.0": "scripted/boss",
        "root/boss@1.0/helper@0.0": "scripted/inner",
    }


async def test_a_change_by_a_name_that_two_agents_share_is_refused(tmp_path: Path) -> None:
    """Nothing says which of them is meant, in code as in a recording."""
    agent, *_ = namesakes(tmp_path)
    recording = (await record_agent(agent, tmp_path)).recording
    overrides = {"agents": {"helper": {"temperature": 0}}, "model": ScriptedModel([])}
    for given in (None, agent):
        with pytest.raises(UsageError, match="agents: 2 agents are called 'helper'; give agent="):
            await replay(recording, overrides, agent=given, trace=None)


async def test_one_address_is_for_one_provider(tmp_path: Path) -> None:
    """Models of two providers cannot share an address: one of them would be sent what is the other's."""
    recording = await recorded_family(tmp_path, "openai/root", "openai/child")
    overrides = {"model": "openai/a", "agents": {"child": {"model": "groq/b"}}}
    with pytest.raises(UsageError, match=r"api_base= is for one provider, and .* models of groq, openai"):
        await replay(recording, overrides, api_base="http://127.0.0.1:9/v1", trace=None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overrides", "error", "message"),
    [
        ({"model": "openai/gpt-4o-mini"}, MissingApiKeyError, "no API key for openai/gpt-4o-mini: set OPENAI_API_KEY"),
        (
            {"model": "opnai/gpt-4o-mini"},
            UnknownModelError,
            "Did you mean 'openai/gpt-4o-mini'?",
        ),
        ({}, MissingApiKeyError, "no API key for openai/root"),
    ],
)
async def test_a_replay_that_cannot_ask_its_model_leaves_no_trace(
    overrides: Any, error: type[Exception], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known without a network is said before the run starts, so `latest` goes on meaning what it meant."""
    for name in ("OPENAI_API_KEY", "GROQ_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "GROQ_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    recording = await recorded_family(tmp_path, "openai/root", "openai/root")
    records: list[Any] = []
    with pytest.raises(error, match=message):
        await replay(recording, overrides, trace=tmp_path / "new", on_record=records.append)
    assert not (tmp_path / "new").exists()
    assert records == []
