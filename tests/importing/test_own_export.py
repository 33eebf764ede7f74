"""A run that Playhead exported comes back as a recording that replays as the run itself would."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from playhead import Agent, load_recording, tool
from playhead.compose.killswitches import max_iterations
from playhead.errors import ModelRequestError, ModelUnavailableError
from playhead.replay import replay_sync
from playhead.testing import ScriptedModel, call, text
from playhead.trace.events import LlmResponded
from playhead.trace.recording import Recording, read_recording
from playhead.trace.types import Completion
from tests.importing.test_round_trip import GOLDEN, brought_back, exported
from tests.importing.traces import imported
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.importing.spans import ForeignSpan
    from playhead.trace.types import Prices, Request

FROM_SPANS: Final = [path for path in GOLDEN if not path.stem.startswith("code-action")]


class Recorded:
    """A model that answers what was asked before as it was answered then, and refuses everything else."""

    name = "scripted/recorded"
    secrets: Final[dict[str, str]] = {}

    def __init__(self, recording: Recording) -> None:
        self.unknown: list[Request] = []
        self._answers: dict[str, list[Any]] = defaultdict(list)
        for owner in recording.owners.values():
            for exchange in owner.exchanges:
                self._answers[_key(owner.request(exchange.requested))].append(exchange.outcome)

    async def complete(self, request: Request) -> Completion:
        outcome = next(iter(self._answers[_key(request)]), None)
        if outcome is None:
            self.unknown.append(request)
            raise ModelRequestError("this was never asked")
        if len(self._answers[_key(request)]) > 1:
            self._answers[_key(request)].pop(0)
        if not isinstance(outcome, LlmResponded):
            raise (ModelUnavailableError if outcome.retryable else ModelRequestError)(outcome.error.message)
        told = {name: getattr(outcome, name) for name in ("text", "thinking", "tool_calls", "finish_reason", "usage")}
        return Completion(**told)

    async def prices(self) -> Prices | None:
        return None


def _key(request: Request) -> str:
    said = [
        [each.role, str(each.content), [[c.id, c.name, str(c.arguments), c.raw_arguments] for c in each.tool_calls]]
        for each in request.messages
    ]
    return json.dumps([said, [spec.name for spec in request.tools]])


@pytest.mark.parametrize("path", FROM_SPANS, ids=[path.stem for path in FROM_SPANS])
def test_a_run_of_every_strategy_replays_as_it_ran(path: Path, tmp_path: Path):
    """It is `full`; given the recorded answers, a replay sends the recorded prompts alone, and ends as the run did."""
    recording = read_recording(path)
    back = brought_back(recording, tmp_path, max_messages=None)
    assert back.header.imported is not None
    assert (back.header.imported.replayability, back.header.imported.reasons) == ("full", ())
    model = Recorded(recording)
    result = replay_sync(back.path, {"model": model}, trace=None)
    assert model.unknown == []
    assert recording.ending is not None
    assert (result.run.output, result.run.terminated_by) == (recording.ending.output, recording.ending.terminated_by)


@tool
def pay(order: str) -> str:
    """Pay."""
    return f"paid {order}"


@tool(read_only=True)
def look(key: str) -> str:
    """Look."""
    return key


TURNS: Final = [call("look", key="a"), call("pay", order="7"), text("done")]


def run_back(agent: Agent, folder: Path, **options: Any) -> Recording:
    """Run an agent, and bring its spans back."""
    run = agent.run_sync("go")
    return brought_back(load_recording(run.run_id, folder), folder / "imported", **options)


def test_what_tools_declare_and_the_agents_settings_come_back(tmp_path: Path):
    """Which tools only read, how the agent goes about it, and its prompt are as they were."""
    agent = Agent(
        ScriptedModel(TURNS), tools=[look, pay], system_prompt="Be brief.", strategy="reactive", trace=tmp_path
    )
    back = run_back(agent, tmp_path)
    original = load_recording("latest", tmp_path)
    assert back.header.agent == original.header.agent.model_copy(update={"prices": back.header.agent.prices})
    assert {each.name: each.read_only for each in back.root.own_tools.values()} == {
        each.name: each.read_only for each in original.root.own_tools.values()
    }


@pytest.mark.parametrize(
    ("options", "decided"),
    [
        (
            {"compose": [lambda harness: harness.on("prompt.system", lambda prompt, _: prompt + "!")]},
            "emission-changed",
        ),
        ({"validators": [lambda output: output == "done"]}, "fact-recorded"),
        ({"compose": [max_iterations(1)]}, "killswitch-fired"),
    ],
    ids=["hook", "validator", "switch"],
)
def test_what_else_steered_a_run_is_said(tmp_path: Path, options: dict[str, Any], decided: str):
    """What hooks, validators and switches decided is not in spans: the run comes back as `tools-only`, with the reason."""
    back = run_back(Agent(ScriptedModel(TURNS), **grouped(tools=[look, pay], trace=tmp_path, **options)), tmp_path)
    assert back.header.imported is not None
    assert back.header.imported.replayability == "tools-only"
    assert any(decided in reason for reason in back.header.imported.reasons)


@pytest.mark.parametrize("kind", ["llm:", "tool:"])
def test_a_lost_span_is_missed(tmp_path: Path, kind: str):
    """A run of which one span did not arrive is not `full`."""
    run = Agent(ScriptedModel(TURNS), tools=[look, pay], trace=tmp_path).run_sync("go")
    spans = exported(load_recording(run.run_id, tmp_path), max_messages=None)
    for lost in [span for span in spans if span.name.startswith(kind)]:
        _, back = imported([span for span in spans if span is not lost], tmp_path / lost.span_id)
        assert back.header.imported is not None
        assert back.header.imported.replayability != "full"


@pytest.mark.parametrize("strategy", ["no such one", 7, None])
def test_a_forged_header_is_none(tmp_path: Path, strategy: Any):
    """Metadata that is no header of ours makes an import of another program's run, and nothing fails."""
    run = Agent(ScriptedModel(TURNS), tools=[look, pay], trace=tmp_path).run_sync("go")
    spans = exported(load_recording(run.run_id, tmp_path), max_messages=None)
    _, back = imported([_forged(span, strategy) for span in spans], tmp_path / "imported")
    assert back.header.agent.strategy in ("direct", "no such one")


def _forged(span: ForeignSpan, strategy: Any) -> ForeignSpan:
    said = json.loads(str(span.attributes["metadata"]))
    if "header" not in said["playhead"]:
        return span
    said["playhead"]["header"]["strategy"] = strategy
    return replace(span, attributes={**span.attributes, "metadata": json.dumps(said)})
