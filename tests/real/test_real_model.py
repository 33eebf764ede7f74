"""A real model on a real server (`make test-real`): recorded, seen on the wire, checked and reproduced.

The server is the one at PLAYHEAD_TEST_API_BASE, or http://127.0.0.1:8091/v1; see docs/guides/real-models.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from playhead.kernel.models.openai_format import to_openai
from playhead.replay import load_recording
from tests.answering import answering
from tests.cli.conftest import chatting, saying

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

API_BASE = os.environ.get("PLAYHEAD_TEST_API_BASE", "http://127.0.0.1:8091/v1")
MODEL = os.environ.get("PLAYHEAD_TEST_MODEL", "openai/qwen2.5-coder-1.5b")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def wire() -> Any:
    """Stand between Playhead and the server, and keep every body that passes."""
    try:
        urllib.request.urlopen(f"{API_BASE}/models", timeout=5)
    except (urllib.error.URLError, OSError) as error:
        pytest.fail(f"no model server answers at {API_BASE} ({error}); start one, or set PLAYHEAD_TEST_API_BASE")
    bodies: list[dict[str, Any]] = []

    def forward(path: str, _: Any, body: bytes) -> tuple[int, dict[str, str], list[bytes]]:
        bodies.append(json.loads(body))
        request = urllib.request.Request(
            API_BASE.removesuffix("/v1") + path, body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=300) as answer:
            return 200, {}, [answer.read()]

    with answering(forward) as address:
        yield f"{address}/v1", bodies


def playhead(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user would."""
    return subprocess.run(
        [sys.executable, "-m", "playhead", *arguments],
        cwd=ROOT,
        env={**os.environ, "PLAYHEAD_TRACE_DIR": str(folder), "OPENAI_API_KEY": "not-needed"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_real_run_is_recorded_as_it_went_over_the_wire_and_reproduced(wire: Any, tmp_path: Path) -> None:
    """The file holds the requests that a real server got, and `show`, `check` and `reproduce` work on it."""
    address, bodies = wire
    task = "How high is Mount Zed in feet, and how much is that in metres?"
    ran = playhead(
        tmp_path, "run", task, "--model", MODEL, "--tools", "examples.tools:lookup,calculator", "--api-base", address,
        "--set", "temperature=0", "--set", "max_tokens=250", "--max-iterations", "5",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    recording = load_recording("latest", tmp_path)
    recorded = [recording.root.request(exchange.requested) for exchange in recording.root.exchanges]
    expected = [{**to_openai(request), "model": MODEL.split("/", 1)[1]} for request in recorded]
    assert bodies == expected
    assert len(bodies) >= 2
    assert {call.started.tool for call in recording.root.calls.values()} >= {"lookup"}
    for command in ("show", "check", "reproduce"):
        done = playhead(tmp_path, command, "latest")
        assert done.returncode == 0, done.stdout + done.stderr
    assert playhead(tmp_path, "reproduce", "latest").stdout.startswith(f"identical: {len(recording.records)} events")


def test_a_real_run_is_replayed_diffed_and_debriefed(wire: Any, tmp_path: Path) -> None:
    """The main job, end to end: without an override the same is asked again, another prompt is sent and compared.

    At temperature 0 llama.cpp may still answer otherwise the second time (its cache changes how it adds up): then the diff
    has to say where, and the verdict must not be `same`.
    """
    address, bodies = wire
    ran = playhead(
        tmp_path, "run", "How high is Mount Zed in feet?", "--model", MODEL, "--tools", "examples.tools:lookup",
        "--api-base", address, "--set", "temperature=0", "--set", "max_tokens=200", "--max-iterations", "3",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    original, sent = load_recording("latest", tmp_path), list(bodies)

    bodies.clear()
    again = playhead(tmp_path, "replay", original.run_id, "--api-base", address, "--json")
    assert bodies[0] == sent[0]
    outcome = json.loads(again.stdout)
    if outcome["diff"]["first_divergence"] is None:
        assert (again.returncode, outcome["verdict"], bodies) == (0, "same", sent)
        assert outcome["grounded"] in (None, 1.0)  # None: the model called no tool
    else:
        assert outcome["diff"]["first_divergence"]["kind"] == "llm-responded"
        assert (again.returncode, outcome["stopped"] is None) in ((0, True), (4, False))
    assert playhead(tmp_path, "diff", "latest", "--replays").returncode == (0 if outcome["diff"]["identical"] else 1)

    bodies.clear()
    prompt = "Reply in one short sentence. Use the tool lookup for every fact."
    changed = playhead(
        tmp_path, "replay", original.run_id, "--system-prompt", prompt, "--api-base", address, "--on-missing", "lenient"
    )
    assert changed.returncode in (0, 4), changed.stdout + changed.stderr
    assert bodies[0]["messages"][0]["content"].startswith(prompt)
    assert "Changed" in changed.stdout
    replayed = load_recording("latest", tmp_path / "replays")
    assert (replayed.header.replay_of, replayed.header.overrides) == (original.run_id, {"system_prompt": prompt})
    for command in ("check", "reproduce", "debrief", "stats"):
        done = playhead(tmp_path, command, replayed.run_id)
        assert done.returncode == 0, done.stdout + done.stderr


def test_one_decision_is_asked_of_two_served_models(wire: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`replay --only K --models A,B --repeat 3` asks a real server and a scripted one, and counts what each would have done."""
    address, bodies = wire
    looked = saying("", lookup={"key": "Mount Zed"})
    with chatting(looked, looked, saying("No idea.")) as scripted:
        monkeypatch.setenv("OPENAI_API_BASE", address)
        monkeypatch.setenv("OLLAMA_HOST", scripted.address)
        asked = ("--only", "0", "--models", f"{MODEL},ollama/m", "--repeat", "3", "--set", "temperature=0", "--json")
        made = playhead(tmp_path, "replay", "traces/several-tools.jsonl", *asked)
    decisions = [json.loads(line) for line in made.stdout.splitlines()]
    assert made.returncode == 0, made.stderr
    assert [(each["model"], each["count"]) for each in decisions] == [
        ("recorded", 1),
        (MODEL, 3),
        ("ollama/m", 2),
        ("ollama/m", 1),
    ]
    assert decisions[0]["calls"] == decisions[2]["calls"] == [["lookup", {"key": "Mount Zed"}]]
    assert (len(bodies), decisions[3]["text"]) == (3, "No idea.")
