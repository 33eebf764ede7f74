"""Hooks are code, and a replay has none; what they did in the recorded run is done again, or the replay says what it cannot."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, Context, PlayheadError, ResultOverride, load_recording, tool
from playhead.compose.killswitches import max_iterations
from playhead.compose.redaction import redact_results
from playhead.diagnose.integrity import check_trace
from playhead.errors import NotReplayableError
from playhead.replay import replay, reproduce
from playhead.testing import ScriptedModel, call, calls, text
from playhead.trace.events import ReplayDiverged, ReplayServed
from playhead.trace.types import Message, Request
from tests.kernel.runs import record as record_run
from tests.options import grouped
from tests.replay.small_runs import lookup as find
from tests.replay.small_runs import write

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.compose import Block, Harness
    from playhead.replay import ReplayResult


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
    agent = Agent(
        model or script(), **grouped(tools=[lookup], compose=blocks, trace=folder, rationale=False, **options)
    )
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
    override = ResultOverride("lookup", {"key": "b"}, result="new@example.org")
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
    told = "tenant changed prompt.system in the recorded run, and was not called for what is new in the replay"
    assert told in changed.notes
    assert told in [each.event.what for each in changed.recording.records if isinstance(each.event, ReplayDiverged)]


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


# --- a change belongs to its place --------------------------------------------------------------------------------------


def remind(harness: Harness) -> None:
    """Change two things of every request: a parameter, and a message at the end."""

    def add(request: Request, _: Any) -> Request:
        last = Message(id=10**6, role="user", content="Be quick.")
        return replace(request, messages=(*request.messages, last))

    harness.on("llm.request", lambda request, _: replace(request, parameters={"temperature": 0.5}), name="warm")
    harness.on("llm.request", add, name="remind")


def second_of_equal_results(harness: Harness) -> None:
    """Hide the second of two results that say the same."""

    def hide(message: Message, context: Any) -> Message | None:
        return message.model_copy(update={"content": "hidden"}) if context.iteration == 1 else None

    harness.on("message.tool-result", hide, name="hide")


@pytest.mark.parametrize("block", [remind, second_of_equal_results])
async def test_what_a_hook_changed_at_a_place_is_changed_there_and_nowhere_else(tmp_path: Path, block: Block):
    """Without an override the model of the replay is sent what the recorded one was sent, request by request."""
    turns = [call("lookup", key="a"), call("lookup", key="a"), text("done")]
    before, after = ScriptedModel(turns), ScriptedModel(turns)
    recording, _ = await record(tmp_path, block, model=before)
    outcome = await replay(recording, {"model": after}, trace=tmp_path)
    assert outcome.stopped is None

    def said(model: ScriptedModel) -> list[Any]:
        return [
            (request.parameters, [(each.role, each.content) for each in request.messages]) for request in model.requests
        ]

    assert said(after) == said(before)
    assert (outcome.verdict, outcome.diff.first_divergence) == ("same", None)


# --- what a required hook has not let pass, or not seen -------------------------------------------------------------------


@pytest.mark.parametrize("tag", ["prompt.system", "llm.request", "tool.call", "tool.result", "answer.final"])
@pytest.mark.parametrize("role", ["on", "tap"])
async def test_what_a_required_hook_failed_at_passes_no_replay(tmp_path: Path, tag: Any, role: str):
    """The replay stops where the run did: nothing leaves, and nobody says `same`."""

    def block(harness: Harness) -> None:
        def fail(payload: Any, context: Any) -> None:
            raise LookupError("no")

        getattr(harness, role)(tag, fail, name="scanner", required=True)

    with suppress(PlayheadError):
        await record(tmp_path, block)
    recording = load_recording(tmp_path / "run.jsonl")
    assert recording.ending is not None
    assert recording.ending.terminated_by == "hook_failed"
    outcome = await replay(recording, {"model": script()}, on_missing="lenient", trace=tmp_path)
    assert (outcome.verdict, outcome.run.output) == ("inconclusive", None)
    assert outcome.stopped is not None
    assert "scanner" in outcome.stopped


@pytest.mark.parametrize("timing", ["before", "after"])
@pytest.mark.parametrize("phase", ["think", "verify", "complete"])
async def test_a_required_gate_is_not_passed_without_its_code(tmp_path: Path, timing: str, phase: Any):
    """A phase hook that has to be called cannot be, so a replay without its code is refused; with the code it is called."""

    def block(harness: Harness) -> None:
        getattr(harness, timing)(phase, lambda _: None, name="gate", required=True)

    recording, agent = await record(tmp_path, block)
    with pytest.raises(NotReplayableError, match=f"required hook gate has to be called {timing} {phase} of root"):
        await replay(recording, {"model": script()}, trace=tmp_path)
    with_code = await replay(recording, {"model": script()}, agent=agent, trace=tmp_path)
    assert (with_code.verdict, with_code.stopped) == ("same", None)


@pytest.mark.parametrize("pattern", ["message.tool-result", "message.*", "**", lambda tag: tag.startswith("message")])
async def test_a_guard_that_had_nothing_to_change_still_guards(tmp_path: Path, pattern: Any):
    """That a hook left everything alone says nothing of what is new: it stops the replay all the same."""

    def block(harness: Harness) -> None:
        harness.on(pattern, lambda *_: None, name="scanner", required=True)

    recording, _ = await record(tmp_path, block)
    same = script()
    unchanged = await replay(recording, {"model": same}, trace=tmp_path)
    assert (unchanged.verdict, unchanged.stopped) == ("same", None)
    override = ResultOverride(
        "lookup", {"key": "a"}, result="Go."
    )  # which stands in the recording, as the user's message
    outcome = await replay(recording, {"model": script(), "tool_results": [override]}, trace=tmp_path)
    assert outcome.stopped is not None
    assert "scanner" in outcome.stopped


async def test_a_guard_of_the_caller_guards_the_agents_below(tmp_path: Path):
    """A hook that is for agents below too stands in their headers, and nothing new passes it there."""
    turns = [call("lookup", key="a"), text("found")]
    child = Agent(
        ScriptedModel(turns, name="scripted/child"), name="child", tools=[lookup], context=Context(rationale=False)
    )
    above = [call("child", task="Look."), text("done")]
    agent = Agent(
        ScriptedModel(above, name="scripted/root"),
        tools=[child],
        compose=[redacted()],
        trace=tmp_path,
        context=Context(rationale=False),
    )
    await agent.run("Go.", run_id="run")
    recording = load_recording(tmp_path / "run.jsonl")
    live = ScriptedModel(turns)
    models: dict[str, Any] = {"model": ScriptedModel(above), "agents": {"child": {"model": live}}}
    override = ResultOverride("lookup", result="new@example.org")
    outcome = await replay(recording, {**models, "tool_results": [override]}, trace=tmp_path)
    assert sent(live) == ["Look."]
    assert outcome.stopped is not None
    assert "redact_results" in outcome.stopped


# --- calls that hooks rewrote -----------------------------------------------------------------------------------------


def renaming(**keys: str) -> Any:
    """Return a block that looks up other keys than it is asked for."""

    def block(harness: Harness) -> None:
        def other(asked: Any, _: Any) -> Any:
            key = keys.get(asked.arguments["key"])
            return asked.model_copy(update={"arguments": {"key": key}}) if key else None

        harness.on("tool.call", other, name="renaming")

    return block


def served(result: ReplayResult) -> list[tuple[str, int | None]]:
    """Return rung and source of each answer."""
    events = [each.event for each in result.recording.records]
    return [(each.rung, each.source_seq) for each in events if isinstance(each, ReplayServed)]


def observed_in(steps: Any) -> list[str]:
    """Return what the recorded model was told."""
    return [content for kind, _, content in steps if kind == "observation"]


def observed(result: ReplayResult) -> list[str]:
    """Return what the model was told."""
    return [step.content for step in result.run.steps if step.type == "observation"]


ORDERS = ["abc", "cba", "bca", "cab", "bac", "acb"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("which", [find, write])
async def test_calls_that_hooks_rewrote_get_what_was_recorded_for_what_ran(
    order: str, which: Any, tmp_path: Path
) -> None:
    """In any order, beside each other or not; no call keeps what it does not ask for any more."""
    name = which.spec.name
    asked = [calls(*[call(name, key=key) for key in "abc"]), text("done")]
    run = await record_run(tmp_path, asked, which, compose=[renaming(a="b", b="z")])
    again = [calls(*[call(name, key=key) for key in order]), text("done")]
    result = await replay(run.recording, {"model": ScriptedModel(again)}, on_missing="lenient", trace=None)
    answer = dict(zip("abc", observed_in(run.steps()), strict=True))
    assert observed(result) == [answer[key] for key in order]
    sources = [source for _, source in served(result)]
    assert len(set(sources)) == len(order)
    if which is find:
        assert {rung for rung, _ in served(result)} <= {"exact", "reordered"}
