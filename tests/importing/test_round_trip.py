"""Recording → spans → import → recording keeps every prompt, call, argument, result, usage and error."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from playhead import PlayheadError, load_recording
from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.recording import OwnerRecording, Recording, read_recording
from playhead.errors import ModelRequestError, ModelUnavailableError, UsageError
from playhead.importing import import_spans
from playhead.importing.otlp import spans_of_message
from playhead.spans import SpanOptions, spans_of
from playhead.spans.encoding import encode
from playhead.trace.events import LlmFailed, LlmResponded, ToolCallCompleted
from playhead.trace.types import Completion
from playhead.trace.values import as_text
from tests.again import replay_sync
from tests.importing.traces import imported
from tests.proving import sample
from tests.replay.random_agents import Outside, random_agent

if TYPE_CHECKING:
    from playhead.importing.otlp import ForeignSpan
    from playhead.trace.types import Prices, Request

GOLDEN: Final = sorted((Path(__file__).parents[1] / "golden").glob("*.jsonl"))


def brought_back(recording: Recording, folder: Path, **options: Any) -> Recording:
    """Return what the import of a recording's spans gives."""
    return imported(exported(recording, **options), folder)[1]


def exported(recording: Recording, **options: Any) -> list[ForeignSpan]:
    """Return a recording's spans, as what is sent of them is read."""
    made = list(spans_of(recording.records, SpanOptions(**options)))
    return list(spans_of_message(encode(made), Counter()))


def told(recording: Recording) -> dict[str, Any]:
    """Return everything that has to survive, by owner; ids that two owners had have become two."""
    return {
        name: _with_given_ids(_owner(owner))
        for name, owner in recording.owners.items()
        if owner.exchanges or owner.calls
    }


def _with_given_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {_with_given_ids(name): _with_given_ids(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_with_given_ids, value))
    return re.sub(r"^(call_[0-9_]+)_[0-9a-f]{6}$", r"\1", value) if isinstance(value, str) else value


def _owner(owner: OwnerRecording) -> dict[str, Any]:
    return {
        "prompts": [_prompt(owner, exchange) for exchange in owner.exchanges],
        "outcomes": [_outcome(exchange.outcome) for exchange in owner.exchanges],
        "calls": {call_id: _call(call) for call_id, call in owner.calls.items()},
        "output": None if owner.completed is None else as_text(owner.completed.output),
    }


def _prompt(owner: OwnerRecording, exchange: Any) -> Any:
    request = owner.request(exchange.requested)
    said = [each.model_dump(include={"role", "content", "tool_calls", "tool_call_id"}) for each in request.messages]
    return said, [spec.name for spec in request.tools], request.parameters, request.model


def _outcome(outcome: Any) -> Any:
    if isinstance(outcome, LlmFailed):
        return outcome.error
    assert isinstance(outcome, LlmResponded)
    return outcome.model_dump(exclude={"request", "attempt", "latency_ms"})


def _call(call: Any) -> Any:
    completed: ToolCallCompleted | None = call.completed
    error = completed and completed.error and completed.error.message
    result = None if completed is None else (completed.ok, error or completed.observation())
    return call.started.tool, call.started.args, result


@pytest.mark.parametrize("path", GOLDEN, ids=[path.stem for path in GOLDEN])
def test_a_run_of_every_strategy_comes_back(path: Path, tmp_path: Path) -> None:
    """One run of each strategy, with sub-agents, repair, nudges and failures among them."""
    recording = read_recording(path)
    back = brought_back(recording, tmp_path, max_messages=None)
    assert told(back) == told(recording)
    assert back.ending is not None
    assert recording.ending is not None
    usage = back.ending.usage.model_copy(update={"unknown": recording.ending.usage.unknown})  # older: failed attempts
    assert (usage, back.ending.status) == (recording.ending.usage, recording.ending.status)
    assert back.ending.terminated_by == recording.ending.terminated_by
    assert build_debrief(back).outcome == build_debrief(recording).outcome
    assert require_right(back, recording) == (path.stem == "direct-tools")


@settings(max_examples=sample(20, 4), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 100_000), cap=st.integers(2, 6))
def test_prompts_that_were_cut_are_whole_again_or_said_not_to_be(seed: int, cap: int) -> None:
    """A span shows the first and the newest messages: the others are known from the spans before, or counted; never made up."""
    with TemporaryDirectory() as folder:
        recording = _run_of(seed, Path(folder) / "runs")
        back = brought_back(recording, Path(folder) / "imported", max_messages=cap)
        assert back.header.imported is not None
        unseen = any("messages of prompts are not in the spans" in reason for reason in back.header.imported.reasons)
        if _has_failed_calls(recording):
            return
        for name, owner in back.owners.items():
            for ours, then in zip(owner.exchanges, recording.owners[name].exchanges, strict=True):
                now, before = (
                    _with_own_ids(_prompt(*each)[0]) for each in ((owner, ours), (recording.owners[name], then))
                )
                assert now == before or (unseen and len(now) < len(before) and all(each in before for each in now))


def _with_own_ids(messages: Any) -> Any:
    """Return messages with the ids that calls have in their owner: in spans, those of a sub-agent end with a hash of its name."""
    return json.loads(re.sub(r"(call_\d+_\d+)_[0-9a-f]{6}", r"\1", json.dumps(messages)))


def _has_failed_calls(recording: Recording) -> bool:
    """Return whether a model call failed: an import makes the next attempt a request of its own, and numbers it so."""
    exchanges = (exchange for owner in recording.owners.values() for exchange in owner.exchanges)
    return any(not isinstance(exchange.outcome, LlmResponded) for exchange in exchanges)


class Recorded:
    """A model that repeats the recorded answer to every recorded request, and refuses any other request."""

    name = "scripted/recorded"
    secrets: Final[dict[str, str]] = {}

    def __init__(self, recording: Recording) -> None:
        self.unknown: list[Request] = []
        self._answers: dict[str, list[Any]] = defaultdict(list)
        for owner in recording.owners.values():
            for exchange in owner.exchanges:
                self._answers[_key(owner.request(exchange.requested))].append(exchange.outcome)

    async def complete(self, request: Request) -> Completion:
        outcomes = self._answers[_key(request)]
        if not outcomes:
            self.unknown.append(request)
            raise ModelRequestError("this was never asked")
        outcome = outcomes.pop(0) if len(outcomes) > 1 else outcomes[0]
        if not isinstance(outcome, LlmResponded):
            raise (ModelUnavailableError if outcome.retryable else ModelRequestError)(outcome.error.message)
        names = ("text", "thinking", "tool_calls", "finish_reason", "usage")
        return Completion(**{name: getattr(outcome, name) for name in names})

    async def prices(self) -> Prices | None:
        return None


def _key(request: Request) -> str:
    said = [
        [each.role, str(each.content), [[c.id, c.name, str(c.arguments), c.raw_arguments] for c in each.tool_calls]]
        for each in request.messages
    ]
    return json.dumps([said, [spec.name for spec in request.tools]])


def require_right(back: Recording, recording: Recording) -> bool:
    """Require that an import which is `full` replays as the run ran, and return whether it is."""
    assert back.header.imported is not None
    if back.header.imported.replayability != "full":
        return False
    model = Recorded(recording)
    try:
        result = replay_sync(back.path, {"model": model}, trace=None)
    except UsageError:  # agents below with models of their own: a refusal is not a wrong result
        return False
    assert model.unknown == []
    assert recording.ending is not None
    assert (result.run.output, result.run.terminated_by) == (recording.ending.output, recording.ending.terminated_by)
    return True


@pytest.mark.slow
@settings(max_examples=sample(60, 8), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 100_000))
def test_random_runs_come_back_and_none_is_wrongly_full(seed: int) -> None:
    """Whatever random agents did; the replay of a `full` import sends the recorded prompts alone, and ends as the run did."""
    with TemporaryDirectory() as folder:
        recording = _run_of(seed, Path(folder) / "runs")
        back = brought_back(recording, Path(folder) / "imported", max_messages=None)
        assert told(back) == told(recording) or _has_failed_calls(recording)
        require_right(back, recording)


@settings(max_examples=sample(15, 4), deadline=None, suppress_health_check=list(HealthCheck))
@example(seed=241, with_ids=False, order=Random(0))  # two sub-agents of one task that did other things
@given(seed=st.integers(0, 100_000), with_ids=st.booleans(), order=st.randoms(use_true_random=False))
def test_a_clock_of_milliseconds_loses_nothing_unsaid(seed: int, with_ids: bool, order: Random) -> None:
    """Spans of one moment in any order: each call has its own result, or the report does not say that a replay is sound."""
    with TemporaryDirectory() as folder:
        recording = _run_of(seed, Path(folder) / "runs")
        spans = [_coarse(span, with_ids) for span in exported(recording, max_messages=None)]
        order.shuffle(spans)
        [run] = import_spans(spans, Path(folder) / "imported", format_name="otlp-json")
        back = read_recording(run.path)
        if run.replayability == "full":
            assert _what_was_done(back) == _what_was_done(recording)


def _coarse(span: ForeignSpan, with_ids: bool) -> ForeignSpan:
    attributes = {name: value for name, value in span.attributes.items() if with_ids or name != "tool.id"}
    end_ns = None if span.end_ns is None else span.end_ns // 10**6 * 10**6
    return replace(span, start_ns=span.start_ns // 10**6 * 10**6, end_ns=end_ns, attributes=attributes)


def _what_was_done(recording: Recording) -> dict[str, Any]:
    """Return prompts, answers and calls of every owner; the order of calls of one turn is no matter."""
    return {
        name: (each["prompts"], each["outcomes"], Counter(map(repr, each["calls"].values())))
        for name, each in told(recording).items()
    }


def _run_of(seed: int, folder: Path) -> Recording:
    async def run() -> None:
        with suppress(PlayheadError):
            await random_agent(seed, Outside(), trace=folder).run("Do it.", run_id="run")

    anyio.run(run)
    return load_recording(folder / "run.jsonl")
