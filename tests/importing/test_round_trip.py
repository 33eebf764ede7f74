"""Recording → spans → import → recording keeps every prompt, call, argument, result, usage and error."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from playhead import PlayheadError, load_recording
from playhead.importing.readers.otlp_protobuf import spans_of_message
from playhead.trace.events import LlmFailed, LlmResponded, ToolCallCompleted
from playhead.trace.recording import OwnerRecording, Recording, read_recording
from playhead.trace.spans import SpanOptions, spans_of
from playhead.trace.values import as_text
from tests.importing.traces import imported
from tests.replay.random_agents import Canary, random_agent

GOLDEN: Final = sorted((Path(__file__).parents[1] / "golden").glob("*.jsonl"))


def brought_back(recording: Recording, folder: Path, **options: Any) -> Recording:
    """Return what the import of a recording's spans gives."""
    made = list(spans_of(recording.records, SpanOptions(**options)))
    spans = list(spans_of_message(encode_spans(made).SerializeToString(), Counter()))
    return imported(spans, folder)[1]


def told(recording: Recording) -> dict[str, Any]:
    """Return everything that has to survive, by owner."""
    return {name: _owner(owner) for name, owner in recording.owners.items() if owner.exchanges or owner.calls}


def _owner(owner: OwnerRecording) -> dict[str, Any]:
    return {
        "prompts": [_prompt(owner, exchange) for exchange in owner.exchanges],
        "outcomes": [_outcome(exchange.outcome) for exchange in owner.exchanges],
        "calls": {call_id: _call(call) for call_id, call in owner.calls.items()},
        "output": None if owner.completed is None else as_text(owner.completed.output),
    }


def _prompt(owner: OwnerRecording, exchange: Any) -> Any:
    request = owner.request(exchange.requested)
    said = [
        (
            each.role,
            each.content,
            [(call.id, call.name, call.arguments, call.raw_arguments) for call in each.tool_calls],
            each.tool_call_id,
        )
        for each in request.messages
    ]
    return (
        said,
        [spec.name for spec in request.tools],
        request.parameters,
        request.model,
        request.number,
        request.attempt,
    )


def _outcome(outcome: Any) -> Any:
    if isinstance(outcome, LlmFailed):
        return outcome.error
    assert isinstance(outcome, LlmResponded)
    return (
        outcome.text,
        outcome.thinking,
        outcome.tool_calls,
        outcome.finish_reason,
        outcome.usage,
        outcome.cost_usd,
        outcome.model,
    )


def _call(call: Any) -> Any:
    completed: ToolCallCompleted | None = call.completed
    result = None if completed is None else (completed.ok, completed.observation(), completed.error)
    return call.started.tool, call.started.args, result


@pytest.mark.parametrize("path", GOLDEN, ids=[path.stem for path in GOLDEN])
def test_a_run_of_every_strategy_comes_back(path: Path, tmp_path: Path) -> None:
    """One run of each strategy, with sub-agents, healing, nudges and failures among them."""
    recording = read_recording(path)
    back = brought_back(recording, tmp_path, max_messages=None)
    assert told(back) == told(recording)
    assert back.ending is not None
    assert recording.ending is not None
    assert (back.ending.usage, back.ending.status) == (recording.ending.usage, recording.ending.status)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 100_000))
def test_random_runs_come_back(seed: int) -> None:
    """Whatever random agents did; what JSON cannot hold comes back as the text that the model was told."""
    with TemporaryDirectory() as folder:
        recording = _run_of(seed, Path(folder) / "runs")
        back = brought_back(recording, Path(folder) / "imported", max_messages=None)
        assert told(back) == told(recording)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 100_000), cap=st.integers(2, 6))
def test_prompts_that_were_cut_are_whole_again_or_said_not_to_be(seed: int, cap: int) -> None:
    """A span shows the newest messages alone: the others are known from the spans before, or counted; never made up."""
    with TemporaryDirectory() as folder:
        recording = _run_of(seed, Path(folder) / "runs")
        back = brought_back(recording, Path(folder) / "imported", max_messages=cap)
        assert back.header.imported is not None
        unseen = any("had and do not show" in note for note in back.header.imported.notes)
        for name, owner in back.owners.items():
            for ours, then in zip(owner.exchanges, recording.owners[name].exchanges, strict=True):
                now, before = _prompt(owner, ours)[0], _prompt(recording.owners[name], then)[0]
                assert now == before or (unseen and len(now) <= cap and all(each in before for each in now))


def _run_of(seed: int, folder: Path) -> Recording:
    async def run() -> None:
        with suppress(PlayheadError):
            await random_agent(seed, Canary(), trace=folder).run("Do it.", run_id="run")

    anyio.run(run)
    return load_recording(folder / "run.jsonl")
