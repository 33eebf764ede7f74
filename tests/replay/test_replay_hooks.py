"""Hooks are code, and a recording has none: a replay calls them, is given others, or is refused before anything is asked."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, Context, PlayheadError, ResultOverride, load_recording, tool
from playhead.compose import Stop
from playhead.compose.killswitches import max_iterations
from playhead.compose.redaction import redact_results
from playhead.errors import NotReplayableError
from playhead.replay import replay, reproduce
from playhead.testing import ScriptedModel, call, text
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.compose import Block, Harness


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look something up."""
    return f"{key}: {key}@example.org"


def script() -> ScriptedModel:
    """Return a model that looks two things up."""
    return ScriptedModel([call("lookup", key="a"), call("lookup", key="b"), text("done")])


def redacted() -> Block:
    """Return the block that keeps addresses from the model."""
    return redact_results(lambda given: re.sub(r"\S+@\S+", "***", given))


async def record(folder: Path, *blocks: Block, **options: Any) -> Any:
    """Run an agent with these blocks, and return its recording and the agent."""
    agent = Agent(script(), **grouped(tools=[lookup], compose=blocks, trace=folder, rationale=False, **options))
    with suppress(PlayheadError):
        await agent.run("Go.", run_id="run")
    return load_recording(folder / "run.jsonl"), agent


def sent(model: ScriptedModel) -> list[str]:
    """Return the last message of each request."""
    return [str(request.messages[-1].content) for request in model.requests]


def tenant(harness: Harness) -> None:
    """Change each system prompt."""
    harness.on("prompt.system", lambda prompt, _: f"Acme. {prompt}", name="tenant")


def silent(harness: Harness) -> None:
    """Change nothing of any call."""
    harness.on("tool.call", lambda *_: None, name="silent")


def watching(harness: Harness) -> None:
    """Have to see every result."""
    harness.tap("tool.result", lambda *_: None, name="watching", required=True)


def failing(harness: Harness) -> None:
    """Fail at every request."""

    def fail(payload: Any, context: Any) -> None:
        raise LookupError("no")

    harness.tap("llm.request", fail, name="failing", required=True)


def gate(harness: Harness) -> None:
    """Have to be called before each turn."""
    harness.before("think", lambda _: None, name="gate", required=True)


def ending(harness: Harness) -> None:
    """End the run in its second turn."""
    harness.before("think", lambda context: Stop("enough") if context.iteration == 1 else None, name="ending")


@pytest.mark.parametrize("block", [tenant, silent, watching, failing, gate, ending])
async def test_what_steers_a_run_is_code_that_a_replay_has_to_be_given(tmp_path: Path, block: Block):
    """Transforms, required hooks and phase hooks that answered: without them nobody is asked; with `agent=` they are called."""
    recording, agent = await record(tmp_path, block)
    model = script()
    with pytest.raises(
        NotReplayableError, match=rf"hooks of root would do with anything new: {block.__name__}\. Give agent="
    ):
        await replay(recording, {"model": model}, on_missing="lenient", trace=tmp_path)
    assert model.requests == []
    with_code = await replay(recording, {"model": model}, agent=agent, trace=tmp_path)
    others = await replay(recording, {"model": script(), "hooks": [block]}, trace=tmp_path)
    for each in (with_code, others):
        assert (each.verdict, each.stopped, each.run.terminated_by) == ("same", None, recording.ending.terminated_by)
    assert (await reproduce(recording)).identical


async def test_what_hooks_keep_from_the_model_is_kept_from_the_replays_model(tmp_path: Path):
    """With its code, a redaction holds for frozen results and for what the caller puts in their place."""
    recording, agent = await record(tmp_path, redacted())
    model = script()
    given = {"model": model, "tool_results": [ResultOverride("lookup", {"key": "b"}, result="new@example.org")]}
    await replay(recording, given, agent=agent, trace=tmp_path)
    assert sent(model) == ["Go.", "a: ***", "***"]


async def test_hooks_that_steered_nothing_are_missed_aloud(tmp_path: Path):
    """What only watched changes no replay; what could have answered and never did is named in a note."""

    def block(harness: Harness) -> None:
        harness.tap("**", lambda *_: None, name="counter")
        harness.before("think", lambda _: None, name="asked")

    recording, _ = await record(tmp_path, block)
    outcome = await replay(recording, {"model": script()}, trace=tmp_path)
    assert (outcome.verdict, outcome.notes) == (
        "same",
        ("only agent= brings the code of asked (before think): the replay runs without",),
    )


async def test_what_is_rebuilt_from_the_header_needs_no_code(tmp_path: Path):
    """A killswitch of Playhead's ends the replay as it ended the run; the replay reproduces in its turn."""
    recording, _ = await record(tmp_path, max_iterations(2))
    first = await replay(recording, {"model": script()}, trace=tmp_path)
    assert (first.verdict, first.run.terminated_by) == ("same", "max_iterations")
    assert (await reproduce(first.recording)).identical


async def test_what_was_emitted_at_the_start_is_emitted_again(tmp_path: Path):
    """A message that a block put into the thread is there in the replay, without the block."""

    def hurry(harness: Harness) -> None:
        harness.emit("message.user", "Hurry.")

    recording, agent = await record(tmp_path, hurry)
    for given in (None, agent):
        model = script()
        outcome = await replay(recording, {"model": model}, agent=given, trace=tmp_path)
        assert [message.content for message in model.requests[0].messages[1:]] == ["Go.", "Hurry."]
        assert outcome.verdict == "same"


async def test_a_hook_of_the_caller_is_one_of_the_agents_below(tmp_path: Path):
    """A hook that is for agents below too stands in their headers: other hooks for the root are not enough."""
    turns = [call("lookup", key="a"), text("found")]
    child = Agent(
        ScriptedModel(turns, name="scripted/child"), name="child", tools=[lookup], context=Context(rationale=False)
    )
    above = [call("child", task="Look."), text("done")]
    agent = Agent(ScriptedModel(above, name="scripted/root"), tools=[child], compose=[redacted()], trace=tmp_path)
    await agent.run("Go.", run_id="run")
    live = ScriptedModel(turns)
    models: dict[str, Any] = {"model": ScriptedModel(above), "agents": {"child": {"model": live}}}
    with pytest.raises(NotReplayableError, match=r"hooks of root/child@0\.0 would do"):
        await replay(tmp_path / "run.jsonl", {**models, "hooks": []}, trace=tmp_path)
    outcome = await replay(tmp_path / "run.jsonl", models, agent=agent, trace=tmp_path)
    assert (outcome.stopped, sent(live)) == (None, ["Look.", "a: ***"])
