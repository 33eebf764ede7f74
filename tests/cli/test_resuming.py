"""`resume`: a run that died goes on, with the agent of a module."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead.replay import load_recording
from tests.cli.command_line import objects, playhead

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import ChatServer

pytestmark = pytest.mark.slow
GIVEN = ("--agent", "my_tools:agent")
AGENTS = """
from playhead import Agent, Context, Ollama

model = Ollama("ollama/m", api_base={!r})
agent = Agent(model, tools=[lookup, calculator], context=Context(rationale=False))
other = Agent(model, tools=[lookup], context=Context(rationale=False))
"""


@pytest.fixture
def died(home: Path, chat: ChatServer, tools: None) -> Any:
    """A function that leaves of a run what was written after its nth event of a kind, and returns its trace."""
    answers = list(chat.answers)
    with (home / "my_tools.py").open("a") as file:
        file.write(AGENTS.format(chat.address))
    tool_names = ("--tools", "my_tools:lookup,calculator", "--no-rationale")
    given = ("--api-base", chat.address, *tool_names, "--run-id", "mine")
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
    """With the agent that is given; the result is that of the whole run."""
    died("tool-call-completed", 1)
    done = playhead("resume", "mine", *GIVEN, "--run-id", "on", "--json")
    assert done.exit_code == 0, done.stderr
    (result,) = objects(done)
    assert (result["success"], result["run_id"]) == (True, "on")
    assert load_recording("on").header.resumed_from == "mine"
    assert (home / "calculated").read_text().count("\n") == 1
    assert playhead("reproduce", "on").exit_code == 0
    again = playhead("resume", "mine", *GIVEN)
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
    stopped = playhead("resume", "mine", *GIVEN)
    assert (stopped.exit_code, "unresolved-call" in stopped.stderr, chat.requests) == (1, True, [])
    calls = load_recording("mine").root.calls
    key = next(name for name, call in calls.items() if call.completed is None)
    done = playhead("resume", "mine", *GIVEN, said.format(key))
    assert done.exit_code == 0, done.stderr
    assert (home / "calculated").exists() is bool(ran)
    assert chat.requests[0]["messages"][-1]["content"] == told


def test_what_cannot_be_is_said(died: Any, chat: ChatServer) -> None:
    """No agent, another one, an answer that is none: an error that says what to do, before anything happens."""
    died("tool-call-completed", 0)
    for arguments, code, message in (
        ((), 2, "--agent"),
        (("--agent", "my_tools:agnt"), 2, "Did you mean 'agent'?"),
        (("--agent", "my_tools:other"), 1, "tools"),
        ((*GIVEN, "--answer", "call"), 2, "write NAME=VALUE"),
        ((*GIVEN, "--did-not-happen", "call_9"), 2, "no call 'call_9'"),
    ):
        done = playhead("resume", "mine", *arguments)
        assert (done.exit_code, message in done.stderr) == (code, True), done.stderr
    assert chat.requests == []
