"""The loops of `examples/loops`, with the real SDKs: each is recorded, reproduced, replayed, diffed, stopped and exported."""

from __future__ import annotations

import importlib
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

import playhead
from playhead.compose.killswitches import budget_limit
from playhead.errors import RunEndedError
from tests.cli.command_line import playhead as command_line
from tests.instrument.providers import provider

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORMATS = {"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic", "graph": "openai-chat"}
LOOPS = [pytest.param(name, marks=[pytest.mark.frameworks] if name == "graph" else []) for name in FORMATS]


@pytest.fixture
def loop(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
    """Import a loop whose SDK speaks to a server on this machine; yield it, and the requests that reach the server."""
    with provider() as (url, asked):
        monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path))
        for name, value in {
            "OPENAI_API_KEY": "sk-secret-123456",
            "OPENAI_BASE_URL": f"{url}/v1",
            "ANTHROPIC_API_KEY": "sk-ant-secret-1234",
            "ANTHROPIC_BASE_URL": url,
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delitem(sys.modules, f"examples.loops.{request.param}", raising=False)
        yield importlib.import_module(f"examples.loops.{request.param}"), asked


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS, indirect=True)
def test_a_loop_does_all_that_an_agent_of_ours_does(
    loop: Any, request: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Recorded, reproduced without a server and without a tool, replayed with another prompt, diffed, exported."""
    program, asked = loop
    name = request.node.callspec.params["loop"]
    assert program.support("Order 7 arrived broken.") == "So order 7 is paid back."
    assert capsys.readouterr().out.count("tool: ") == 2
    recording = playhead.load_recording("latest")
    root = recording.root
    assert [call.started.tool for call in root.calls.values()] == ["status", "refund"]
    assert {call.started.source for call in root.calls.values()} == {"native"}
    wires = [each.requested.wire for each in root.exchanges]
    assert {each.format for each in wires if each} == {FORMATS[name]}
    assert recording.ending is not None
    assert recording.ending.usage.input_tokens == 120
    assert "secret" not in recording.path.read_text()
    assert len(asked) == 3

    assert recording.reproduce_sync(program=program.support).identical
    assert len(asked) == 3

    replayed = recording.replay_sync(program=program.support, system_prompt="Never refund.")
    assert replayed.run.output == "So order 7 arrived broken."
    assert len(asked) == 5
    assert all("Never refund." in json.dumps(each) for each in asked[3:])
    assert all("Refund what" not in json.dumps(each) for each in asked[3:])
    assert replayed.grounded == 1.0
    assert "tool: " not in capsys.readouterr().out

    assert command_line("debrief", recording.run_id).exit_code == 0
    diff = command_line("diff", recording.run_id, replayed.run.run_id)
    assert "refund" in diff.output
    exported = command_line("export", recording.run_id, "--format", "openinference-jsonl")
    spans = [json.loads(line)["name"] for line in exported.stdout.splitlines()]
    model = root.exchanges[0].requested.model
    assert sorted(spans) == sorted(["agent:support", *[f"llm:{model}"] * 3, "tool:status", "tool:refund"])


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS, indirect=True)
def test_a_budget_stops_a_loop(loop: Any) -> None:
    """The output cap of each request is lowered to what is left, and the last one is not sent."""
    program, asked = loop
    inside = program.support.__wrapped__
    with pytest.raises(RunEndedError):
        playhead.recorded(compose=[budget_limit(max_tokens=600)])(inside)("Order 7 arrived broken.")
    recording = playhead.load_recording("latest")
    assert recording.ending is not None
    assert recording.ending.terminated_by == "budget_limit"
    assert recording.ending.usage.total_tokens <= 600
    caps = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    assert all(0 < next(each[cap] for cap in caps if cap in each) <= 600 for each in asked)
