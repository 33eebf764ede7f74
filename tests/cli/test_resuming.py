"""`resume`: a run of the command line that died goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent
from playhead.replay import load_recording
from playhead.testing import ScriptedModel, text
from tests.cli.command_line import objects, playhead
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import ChatServer

pytestmark = pytest.mark.slow
GIVEN = ("--tools", "my_tools:lookup,calculator")


@pytest.fixture
def died(home: Path, chat: ChatServer, tools: None) -> Any:
    """A function that leaves of a run what was written after its nth event of a kind, and returns its trace."""
    answers = list(chat.answers)
    given = ("--api-base", chat.address, *GIVEN, "--run-id", "mine", "--no-rationale")
    done = playhead("run", "How high?", "--model", "ollama/m", *given)
    assert done.exit_code == 0, done.stderr
    path = home / ".playhead/traces/mine.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)

    def cut(kind: str, nth: int) -> Path:
        places = [place for place, line in enumerate(lines) if json.loads(line)["kind"] == kind]
        path.write_bytes(b"".join(lines[: places[nth] + 1]))
        answered = sum(b'"kind":"llm-responded"' in line for line in lines[: places[nth] + 1])
        chat.answers[:] = answers[answered:]
        chat.requests.clear()
        (home / "calculated").unlink()
        return path

    return cut


def test_it_goes_on(died: Any, chat: ChatServer, home: Path) -> None:
    """With what the recording says of the agent, and the tools that are given; the result is that of the whole run."""
    died("tool-call-completed", 1)
    done = playhead("resume", "mine", *GIVEN, "--api-base", chat.address, "--run-id", "on", "--json")
    assert done.exit_code == 0, done.stderr
    (result,) = objects(done)
    assert (result["success"], result["run_id"]) == (True, "on")
    assert load_recording("on").header.resumed_from == "mine"
    assert (home / "calculated").read_text().count("\n") == 1
    assert playhead("reproduce", "on").exit_code == 0
    again = playhead("resume", "mine", *GIVEN, "--api-base", chat.address)
    assert (again.exit_code, "has been resumed already" in again.stderr) == (2, True)


@pytest.mark.parametrize(
    ("said", "ran", "told"),
    [
        ("--answer={}=1274.5", 0, "1274.5"),
        ("--failed={}=no paper", 0, "error: no paper"),
        ("--did-not-happen={}", 1, "1274.064"),
    ],
)
def test_what_became_of_a_call(died: Any, chat: ChatServer, home: Path, said: str, ran: int, told: str) -> None:
    """Without a word it stops and names the call; with one it goes on, and the model is told that."""
    died("tool-call-started", -1)
    stopped = playhead("resume", "mine", *GIVEN, "--api-base", chat.address)
    assert (stopped.exit_code, "unresolved-call" in stopped.stderr, chat.requests) == (1, True, [])
    calls = load_recording("mine").root.calls
    key = next(name for name, call in calls.items() if call.completed is None)
    done = playhead("resume", "mine", *GIVEN, "--api-base", chat.address, said.format(key))
    assert done.exit_code == 0, done.stderr
    assert (home / "calculated").exists() is bool(ran)
    assert chat.requests[0]["messages"][-1]["content"] == told


def test_what_cannot_be_is_said(died: Any, chat: ChatServer) -> None:
    """Another server, other tools, an answer that is none: an error that says what to do, before anything happens."""
    died("tool-call-completed", 0)
    for arguments, code, message in (
        ((*GIVEN,), 2, "--api-base"),
        (("--tools", "my_tools:lookup", "--api-base", chat.address), 1, "tools"),
        ((*GIVEN, "--api-base", chat.address, "--answer", "call"), 2, "write NAME=VALUE"),
        ((*GIVEN, "--api-base", chat.address, "--did-not-happen", "call_9"), 2, "no call 'call_9'"),
    ):
        done = playhead("resume", "mine", *arguments)
        assert (done.exit_code, message in done.stderr) == (code, True), done.stderr
    assert chat.requests == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"facts": {"height": "feet"}}, "does not have (task_context)"),
        ({"fallbacks": [ScriptedModel([], name="ollama/other")]}, "models that take over"),
        ({"validators": [bool]}, "checks of its answer"),
    ],
)
def test_a_run_of_a_program(home: Path, given: Any, message: str) -> None:
    """What the command line cannot give the agent again is not left out without a word."""
    agent = Agent(ScriptedModel([text("Done.")], name="ollama/m"), **grouped(trace=home / ".playhead/traces", **given))
    path = agent.run_sync("How high?", run_id="mine").trace_path
    assert path is not None
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
    done = playhead("resume", "mine")
    assert (done.exit_code, message in done.stderr, "resume it there" in done.stderr) == (2, True, True), done.stderr
