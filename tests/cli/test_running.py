"""`run` and `demo`: an agent at work, told while it works."""

from __future__ import annotations

import json
import shlex
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from playhead.diagnose.integrity import check_trace
from playhead.replay import load_recording
from tests.cli.command_line import playhead
from tests.cli.conftest import saying
from tests.mcp.serving import RAW
from tests.mcp.test_hostile_servers import gone

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from tests.cli.conftest import ChatServer

TASK = "How high is Mount Zed in feet, and how much is that in metres?"


pytestmark = pytest.mark.usefixtures("tools")


def run(chat: ChatServer, *arguments: str | Path, **options: Any) -> Result:
    """Run the task with the model of the test."""
    return playhead("run", TASK, "--model", "ollama/m", "--api-base", chat.address, *arguments, **options)


def test_a_run_is_told_answered_and_recorded(chat: ChatServer, home: Path) -> None:
    """Progress on stderr, the answer and the facts on stdout, and a trace that checks and reproduces."""
    result = run(chat, "--tools", "my_tools:lookup,calculator", "--run-id", "mine", "--no-rationale")
    path = home / ".playhead/traces/mine.jsonl"
    assert result.exit_code == 0
    answer, ended, spent, trace = result.stdout.rsplit("\n", 4)[:4]
    assert answer == "It is 4,180 feet,\n\\x1b[31mor 1,274 metres.\n"
    assert ended.startswith("ended   answered: ")
    assert spent == "spent   30 tokens in, 15 out, cost $0"
    assert trace == f"trace   {path}"
    told = [line[10:].split("  ")[0].strip() for line in result.stderr.splitlines()[1:] if line != "noise"]
    assert told == ["model", "call", "call", "error", "model", "call", "model", "end"]
    assert result.stderr.startswith(f"Playhead records runs in {path.parent}\n")
    assert check_trace(path).ok
    assert playhead("reproduce", "mine").exit_code == 0


def test_credentials_are_shown_nowhere(chat: ChatServer, home: Path) -> None:
    """Neither in what a tool prints or raises, nor in the lines of the run; what the model answers is the caller's own."""
    key = "ghp_J3kLm8Qw2XyZ9aBcD4eFgH5iN6oPqR7sT1uV"
    (home / "pack.py").write_text(
        f"def lookup(key: str) -> str:\n    print('logged in with {key}')\n    raise ValueError('denied: {key}')\n"
    )
    chat.answers[0] = saying("I look it up.", lookup={"key": key})
    result = run(chat, "--tools", "pack:lookup", "--run-id", "mine", "--no-rationale")
    assert "logged in with [redacted:github-token:" in result.stderr
    assert (key[4:14] in result.output, key[4:14] in (home / ".playhead/traces/mine.jsonl").read_text()) == (
        False,
        False,
    )
    assert key in str(chat.requests[1])


def test_options_reach_the_model(chat: ChatServer, home: Path) -> None:
    """The system prompt of a file or a text, the parameters as JSON or text, the strategy and the limit are recorded."""
    (home / "prompt.txt").write_text("Be a guide.")
    run(
        chat, "--system-prompt", "prompt.txt", "--set", "temperature=0", "--set", "stop=END", "--strategy", "react",
        "--max-iterations", "3", "--run-id", "a", "--no-rationale", "--tools", "my_tools:lookup",
    )  # fmt: skip
    header = load_recording("a").header.agent
    assert header.parameters == {"temperature": 0, "stop": "END"}
    assert (header.strategy, header.max_iterations, header.rationale) == ("reactive", 3, False)
    assert chat.requests[0]["messages"][0] == {"role": "system", "content": "Be a guide."}
    run(chat, "--system-prompt", "Be short, please.", "--run-id", "b")
    assert load_recording("b").header.agent.system_prompt == "Be short, please."


def test_a_limit_is_no_failure_and_is_said(chat: ChatServer) -> None:
    """Exit 0, and it is plain that the model did not answer."""
    result = run(chat, "--tools", "my_tools:lookup,calculator", "--max-iterations", "1")
    assert result.exit_code == 0
    assert result.stdout.startswith("ended   stopped: max_iterations (no answer by the model), 1 turn in ")


@pytest.mark.slow
def test_a_failed_run_says_where_its_trace_is(home: Path) -> None:
    """A dead server: exit 1, one clear line, and the trace of the attempts."""
    result = playhead("run", TASK, "--model", "ollama/m", "--api-base", "http://127.0.0.1:9", "--run-id", "dead")
    *_, trace, error = result.stderr.splitlines()
    assert (result.exit_code, result.stdout) == (1, "")
    assert trace == f"the trace is {home}/.playhead/traces/dead.jsonl"
    assert error.startswith("playhead: no server answers at http://127.0.0.1:9")
    assert check_trace(home / ".playhead/traces/dead.jsonl").ok


def test_the_demo_needs_nothing(home: Path) -> None:
    """It records, shows, checks, reproduces, replays, compares and tells why, in eighty columns but for events in a pipe; each command can be typed."""
    result = playhead("demo")
    assert result.exit_code == 0
    assert result.stderr == f"Playhead records runs in {home}/.playhead/traces\n"
    lines = result.stdout.splitlines()
    assert [line for line in lines if len(line) > 80 and "/" not in line and "tool-call-completed" not in line] == []
    assert len(lines) <= 125
    typed = [line.partition("$ playhead ")[2].split() for line in lines if "$ playhead " in line]
    codes = {name: playhead(name, *more).exit_code for name, *more in typed if name not in ("run", "replay")}
    assert codes == {"show": 0, "check": 0, "reproduce": 0, "diff": 1, "debrief": 0}
    for seen in (
        "lookup failed", "answered", "\nok: ", "\nidentical: ", "2  reordered: ", "verdict   changed",
        "First decision", '- lookup(key="Mt Kenya")', "by its full name, as the prompt asks", "Where to look first",
    ):  # fmt: skip
        assert seen in result.stdout


@pytest.mark.slow
def test_the_tools_of_an_mcp_server_are_offered_and_the_server_ends(chat: ChatServer) -> None:
    """A command line starts it; the run is recorded as any other, and no process is left."""
    mark = uuid.uuid4().hex
    answers = {name: {"content": [{"type": "text", "text": "4180"}]} for name in ("lookup", "calculator")}
    listed = [{"name": name, "inputSchema": {"type": "object"}} for name in answers]
    server = shlex.join([*RAW, json.dumps({"tools": listed, "answers": answers, "mark": mark})])
    assert run(chat, "--mcp", server, "--run-id", "mine").exit_code == 0
    ends = {call.started.tool: call.completed for call in load_recording("mine").root.calls.values()}
    assert {name: end and end.result for name, end in ends.items()} == {"lookup": "4180", "calculator": "4180"}
    assert playhead("reproduce", "mine").exit_code == 0
    assert gone(mark)
