"""Killswitches over a real model (`make test-real`): counted exactly, cut off in time, killed from another process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from examples.tools import calculator, lookup
from playhead import Agent, load_recording
from playhead.compose.killswitches import budget_limit, timeout_after
from playhead.diagnose.integrity import check_trace
from playhead.kernel.models import resolve_model
from tests.again import reproduce_sync

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

API_BASE = os.environ.get("PLAYHEAD_TEST_API_BASE", "http://127.0.0.1:8091/v1")
MODEL = os.environ.get("PLAYHEAD_TEST_MODEL", "openai/qwen2.5-coder-1.5b")
TASK = "How high is Mount Zed in feet, and how much is that in metres?"


@pytest.fixture(autouse=True)
def _server() -> None:
    try:
        urllib.request.urlopen(f"{API_BASE}/models", timeout=5)
    except (urllib.error.URLError, OSError) as error:
        pytest.fail(f"no model server answers at {API_BASE} ({error}); start one, or set PLAYHEAD_TEST_API_BASE")


def agent(folder: Path, *compose: Any, **parameters: Any) -> Agent:
    """Return an agent on the real model."""
    return Agent(
        resolve_model(MODEL, api_base=API_BASE, api_key="not-needed"),
        tools=[lookup, calculator],
        parameters={"temperature": 0, "max_tokens": 250, **parameters},
        compose=compose,
        trace=folder,
    )


@pytest.mark.parametrize("limit", [600, 1_300, 2_000])
def test_a_budget_is_kept_to_the_token(tmp_path: Path, limit: int):
    """The server counts each prompt before it gets it: what is set aside for it is what it then says it had."""
    result = agent(tmp_path, budget_limit(max_tokens=limit)).run_sync(TASK, run_id="run")
    recording = load_recording("run", tmp_path)
    reserved: list[Any] = [record.event for record in recording.records if record.kind == "budget-reserved"]
    answered: list[Any] = [record.event for record in recording.records if record.kind == "llm-responded"]
    assert [(each.prompt_bound, each.prompt_tokens) for each in reserved] == [
        ("counted", each.usage.input_tokens) for each in answered
    ]
    assert all(a.usage.output_tokens <= r.output_cap for r, a in zip(reserved, answered, strict=True))
    assert result.usage.total_tokens <= limit
    assert result.terminated_by in ("budget_limit", "output_truncated", "final_answer", "final_answer_tool", "end_turn")
    assert reproduce_sync(recording).divergences == ()


def test_a_model_is_cut_off_in_the_middle_of_its_answer(tmp_path: Path):
    """The caller has its result within a quarter of a second of the limit, and the trace says what was cut."""
    warm = agent(tmp_path, max_tokens=1)
    warm.run_sync("Hi.", run_id="warm")  # litellm is imported, the server is awake
    cut = agent(tmp_path, timeout_after(1.0), max_tokens=2_000)
    began = time.monotonic()
    result = cut.run_sync("Write a story of a thousand words about a mountain.", run_id="cut")
    assert (result.terminated_by, result.status) == ("timeout_after", "done")
    assert time.monotonic() - began < 1.25
    recording = load_recording("cut", tmp_path)
    failed: Any = next(record.event for record in recording.records if record.kind == "llm-failed")
    assert failed.cancelled
    assert check_trace(recording.path).ok
    assert reproduce_sync(recording).divergences == ()


def test_a_run_is_killed_from_another_process(tmp_path: Path):
    """`playhead kill` ends a run that waits for the model, within two seconds."""
    env = {**os.environ, "PLAYHEAD_TRACE_DIR": str(tmp_path), "OPENAI_API_KEY": "not-needed"}
    arguments = ["Write a very long story.", "--model", MODEL, "--api-base", API_BASE, "--set", "max_tokens=4000"]
    running = subprocess.Popen(
        [sys.executable, "-m", "playhead", "run", *arguments, "--run-id", "run"],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with running:
        path = tmp_path / "run.jsonl"
        while not (path.exists() and b"llm-requested" in path.read_bytes()):
            time.sleep(0.05)
        time.sleep(0.5)
        began = time.monotonic()
        kill = [sys.executable, "-m", "playhead", "kill", "run", "--why", "long enough"]
        killed = subprocess.run(kill, env=env, capture_output=True, text=True, check=False)
        assert time.monotonic() - began < 2.0
        assert killed.returncode == 0, killed.stderr
        running.communicate(timeout=10)
    recording = load_recording("run", tmp_path)
    assert recording.ending is not None
    assert (recording.ending.terminated_by, recording.ending.terminated_because) == ("kill", "long enough")
