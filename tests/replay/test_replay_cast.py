"""Who answers in a replay: each agent its own model, a key only its own provider, and nothing starts without either."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent
from playhead.errors import MissingApiKeyError, UnknownModelError, UsageError
from playhead.replay import replay
from playhead.testing import ScriptedModel, call, text
from tests.kernel.runs import make_agent, record, record_agent
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.recording import Recording

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
        with pytest.raises(UsageError, match="agents: 2 different agents are called 'helper', and nothing says which"):
            await replay(recording, overrides, agent=given, trace=None)


async def test_one_address_is_for_one_provider(tmp_path: Path) -> None:
    """Models of two providers cannot share an address: one of them would be sent what is the other's."""
    recording = await recorded_family(tmp_path, "openai/root", "openai/child")
    overrides = {"model": "openai/a", "agents": {"child": {"model": "groq/b"}}}
    with pytest.raises(UsageError, match=r"api_base= is for one provider, and .* models of 2: groq, openai"):
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
