"""Hooks are code, and a replay has none; what they did in the recorded run is done again, or the replay says what it cannot."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, ToolResult, load_recording, reproduce, tool
from playhead.compose.killswitches import max_iterations
from playhead.compose.redaction import redact_results
from playhead.replay import replay
from playhead.testing import ScriptedModel, call, text
from playhead.trace.integrity import check_trace

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.compose import Block, Harness

SECRET = re.compile(r"\S+@\S+")


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look something up."""
    return f"{key}: {key}@example.org"


def script() -> ScriptedModel:
    """Return a model that looks two things up."""
    return ScriptedModel([call("lookup", key="a"), call("lookup", key="b"), text("done")])


def redacted() -> Block:
    """Return the block that keeps addresses from the model."""
    return redact_results(lambda given: SECRET.sub("***", given))


async def record(folder: Path, *blocks: Block, model: ScriptedModel | None = None, **options: Any) -> Any:
    """Run an agent with these blocks, and return its recording and the agent."""
    agent = Agent(model or script(), tools=[lookup], compose=blocks, trace=folder, rationale=False, **options)
    await agent.run("Go.", run_id="run")
    return load_recording(folder / "run.jsonl"), agent


def sent(model: ScriptedModel) -> list[str]:
    """Return the last message of each request."""
    return [str(request.messages[-1].content) for request in model.requests]


async def test_what_hooks_kept_from_the_model_is_kept_from_the_replays_model(tmp_path: Path):
    """Frozen results are redacted as they were, for the live model and for whoever reads the steps."""
    recording, _ = await record(tmp_path, redacted())
    model = script()
    outcome = await replay(recording, {"model": model}, trace=tmp_path)
    assert sent(model) == ["Go.", "a: ***", "b: ***"]
    assert [step.content for step in outcome.run.steps if step.type == "observation"] == ["a: ***", "b: ***"]
    assert (outcome.verdict, outcome.grounded, outcome.stopped) == ("same", 1.0, None)
    assert any("redact_results" in note for note in outcome.notes)


async def test_nothing_new_passes_a_required_hook_that_is_not_there(tmp_path: Path):
    """A result that the hook has never seen stops the replay before the model has it, under every policy."""
    recording, _ = await record(tmp_path, redacted())
    override = ToolResult("lookup", {"key": "b"}, result="new@example.org")
    for on_missing in ("strict", "lenient"):
        model = script()
        outcome = await replay(
            recording, {"model": model, "tool_results": [override]}, on_missing=on_missing, trace=tmp_path
        )
        assert sent(model) == ["Go.", "a: ***"]
        assert outcome.verdict == "inconclusive"
        assert outcome.stopped is not None
        assert "redact_results" in outcome.stopped
        assert "agent=" in outcome.stopped


async def test_with_the_code_its_hooks_are_asked(tmp_path: Path):
    """`agent=` brings the hooks: they see what is new, too; no tool's body runs."""
    recording, agent = await record(tmp_path, redacted())
    override = ToolResult("lookup", {"key": "b"}, result="new@example.org")
    model = script()
    outcome = await replay(recording, {"model": model, "tool_results": [override]}, agent=agent, trace=tmp_path)
    assert sent(model) == ["Go.", "a: ***", "***"]
    assert outcome.stopped is None


async def test_a_hook_that_is_not_required_is_missed_aloud(tmp_path: Path):
    """What a hook would have made of another prompt is not known: the replay goes on, and says so in notes and trace."""

    def tenant(harness: Harness) -> None:
        harness.on("prompt.system", lambda prompt, _: f"Acme. {prompt}", name="tenant")

    recording, _ = await record(tmp_path, tenant, system_prompt="Be brief.")
    same, other = script(), script()
    kept = await replay(recording, {"model": same}, trace=tmp_path)
    assert [request.messages[0].content for request in same.requests] == ["Acme. Be brief."] * 3
    assert (kept.verdict, kept.diff.first_divergence) == ("same", None)
    changed = await replay(recording, {"model": other, "system_prompt": "Be long."}, trace=tmp_path)
    assert other.requests[0].messages[0].content == "Be long."
    told = "tenant changed prompt.system when this was recorded, and was not asked about what is new in the replay"
    assert told in changed.notes
    assert told in [each.event.what for each in changed.recording.records if each.kind == "replay-diverged"]


async def test_a_killswitch_stops_the_replay_in_the_same_turn(tmp_path: Path):
    """A recorded stop is done again at its place, recorded as such, and said."""
    recording, _ = await record(tmp_path, max_iterations(1))
    outcome = await replay(recording, {"model": script()}, trace=tmp_path)
    assert (outcome.run.terminated_by, outcome.run.terminated_source) == ("max_iterations", "killswitch:max_iterations")
    assert any("the replay did the same" in note for note in outcome.notes)
    assert outcome.verdict == "same"


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


@pytest.mark.parametrize("on_missing", ["strict", "lenient"])
async def test_a_replay_with_repeated_hooks_is_a_recording_like_any_other(tmp_path: Path, on_missing: Any):
    """It is whole, it reproduces, and it can be replayed in its turn with the same care."""
    recording, _ = await record(tmp_path, redacted(), max_iterations(2))
    first = await replay(recording, {"model": script()}, on_missing=on_missing, trace=tmp_path)
    assert first.run.trace_path is not None
    assert check_trace(first.run.trace_path).ok
    assert (await reproduce(first.run.trace_path)).divergences == ()
    model = script()
    second = await replay(first.run.trace_path, {"model": model}, on_missing=on_missing, trace=tmp_path)
    assert sent(model) == ["Go.", "a: ***"]
    assert second.stopped is None
