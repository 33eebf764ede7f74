"""Requests that fail: retries, failures as typed errors, and models that take over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, load_recording, tool
from playhead.errors import (
    ModelError,
    ModelUnavailableError,
)
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, call, error, text
from tests.kernel.runs import data, record
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path


BUSY = error("busy", retryable=True)
MODEL_EVENTS = ("llm-requested", "llm-responded", "llm-failed", "llm-retried")


async def test_each_attempt_is_an_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Two retryable failures and an answer: three attempts of one request, with doubling waits."""
    slept: list[float] = []

    async def sleep(_self: Any, seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("playhead.kernel.session.World.sleep", sleep)
    run = await record(tmp_path, [BUSY, BUSY, text("42")], retries=2, retry_delay_s=0.5)
    asked = {"request": 0, "model": "scripted/model", "messages": ((0, 1),)}
    failed = {
        "request": 0,
        "error": {"type": "ModelUnavailableError", "message": "busy"},
        "retryable": True,
        "cost_usd": 0.0,
    }
    answered = {"text": "42", "finish_reason": "stop", "usage": {"input_tokens": 2, "output_tokens": 2}}
    assert [(event.kind, data(event)) for event in run.events(*MODEL_EVENTS)] == [
        ("llm-requested", asked),
        ("llm-failed", failed),
        ("llm-retried", {"request": 0, "attempt": 1, "delay_s": 0.5}),
        ("llm-requested", {**asked, "attempt": 1}),
        ("llm-failed", {**failed, "attempt": 1}),
        ("llm-retried", {"request": 0, "attempt": 2, "delay_s": 1.0}),
        ("llm-requested", {**asked, "attempt": 2}),
        ("llm-responded", {"request": 0, "attempt": 2, **answered, "cost_usd": 0.0, "model": "scripted/model"}),
    ]
    assert slept == [0.5, 1.0]
    assert (run.result.output, run.result.iterations) == ("42", 1)
    assert all(event.latency_ms == 1.0 for event in run.events("llm-responded", "llm-failed"))


@pytest.mark.parametrize("retries", [0, 1])
async def test_the_last_attempt_fails(tmp_path: Path, retries: int):
    """After the last retry the failure is raised, with the result and the trace."""
    run = await record(tmp_path, [BUSY] * 9, retries=retries)
    kinds = [event.kind for event in run.events(*MODEL_EVENTS)]
    assert kinds == ["llm-requested", "llm-failed", *["llm-retried", "llm-requested", "llm-failed"] * retries]
    assert type(run.error) is ModelUnavailableError
    assert run.error.result is run.result
    assert run.error.trace_path == tmp_path / "run.jsonl"


@tool(read_only=True)
async def lookup(key: str) -> str:
    """Look up."""
    return f"found {key}"


def agent(folder: Path, *models: ScriptedModel, **options: Any) -> Agent:
    """Return an agent whose models take over from each other."""
    first, *others = models
    return Agent(
        first, **grouped(fallbacks=others, tools=[lookup], trace=folder, rationale=False, retry_delay_s=0.0, **options)
    )


def events_of(path: Path, *kinds: str) -> list[dict[str, Any]]:
    """Return these events of a run."""
    return [data(record.event) for record in load_recording(path).records if record.kind in kinds]


async def test_the_next_model_takes_over_for_good(tmp_path: Path):
    """The failed request and all later ones go to the next model, and attempts continue to count."""
    first = ScriptedModel([call("lookup", key="a"), *[error("busy", retryable=True)] * 2], name="x/first")
    second = ScriptedModel([call("lookup", key="b"), text("42")], name="x/second")
    result = await agent(tmp_path, first, second, retries=1).run("Do it.", run_id="run")
    assert result.output == "42"
    asked = events_of(tmp_path / "run.jsonl", "llm-requested")
    assert [(each["request"], each.get("attempt", 0), each["model"]) for each in asked] == [
        (0, 0, "x/first"),
        (1, 0, "x/first"),
        (1, 1, "x/first"),
        (1, 2, "x/second"),
        (2, 0, "x/second"),
    ]
    (event,) = events_of(tmp_path / "run.jsonl", "provider-fallback")
    assert event == {"from_model": "x/first", "to_model": "x/second", "reason": "busy", "attempt": 2}
    assert (await reproduce(tmp_path / "run.jsonl")).identical


async def test_fallback_after(tmp_path: Path):
    """`fallback_after` gives up a model before its retries are used up; the last model has all of them."""
    first = ScriptedModel([error("busy", retryable=True)] * 9, name="x/first")
    second = ScriptedModel([error("busy", retryable=True)] * 9, name="x/second")
    with pytest.raises(ModelError, match="busy"):
        await agent(tmp_path, first, second, retries=2, fallback_after=1).run("Do it.", run_id="run")
    assert (len(first.requests), len(second.requests)) == (1, 3)
    assert (await reproduce(tmp_path / "run.jsonl")).identical
