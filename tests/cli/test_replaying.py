"""`replay`: one thing changed, the model asked for real, no tool's body run, and what that did told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, Context, Ollama
from playhead.cli.options import tool_result
from playhead.diagnose.integrity import check_trace
from playhead.replay import load_recording
from tests.cli.command_line import objects, playhead
from tests.cli.conftest import ChatServer, chatting, saying

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from click.testing import Result

pytestmark = pytest.mark.slow
TASK = "How high is Mount Zed?"


@pytest.fixture
def recorded(chat: ChatServer, home: Path, tools: None) -> Path:
    """A run, `orig`, of the model of the tests; its tool ran once, and the server is used up."""
    result = playhead(
        "run", TASK, "--model", "ollama/m", "--api-base", chat.address, "--tools", "my_tools:lookup,calculator",
        "--run-id", "orig", "--no-rationale",
    )  # fmt: skip
    assert result.exit_code == 0
    assert (home / "looked").read_text() == "x"
    return home / ".playhead/traces/orig.jsonl"


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """A model that has nothing to say yet."""
    with chatting() as server:
        yield server


SAME = (
    saying("I look it up.", lookup={"key": "Mount Zed"}, calculator={"expression": "4180 feet"}),
    saying("", calculator={"expression": "4180 * 0.3048"}),
    saying("It is 4,180 feet,\n\x1b[31mor 1,274 metres."),
)


def replay(server: ChatServer, *arguments: str | Path, answers: tuple[dict[str, Any], ...] = SAME) -> Result:
    """Replay the run on a model that gives these answers."""
    server.answers[:] = answers
    return playhead("replay", "orig", "--api-base", server.address, *arguments)


def newest(home: Path) -> str:
    """Return the id of the replay that was recorded last."""
    return max(path.stem for path in (home / ".playhead/traces/replays").glob("*.jsonl"))


def test_nothing_changed(recorded: Path, server: ChatServer, home: Path) -> None:
    """An A/A run says that it is one; all results are exact, and no tool ran; the page ends with the whole diff."""
    result = replay(server)
    again = newest(home)
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[0] == "replay of orig"
    assert lines[1].startswith("changed   nothing: it shows how much the model varies by itself")
    assert lines[2].startswith("ended     answered: end_turn, 3 turns in ")
    assert lines[3:6] == [
        "results   3 tool results, 100% of the calls grounded in the recording",
        "             3  exact: recorded for this very call",
        "verdict   same: the same answer, the same calls, as many turns",
    ]
    assert result.stdout.endswith(f"\n{playhead('diff', again).stdout}")
    assert (home / "looked").read_text() == "x"
    assert check_trace(recorded.parent / "replays" / f"{again}.jsonl").ok
    assert "\x1b" not in result.output
    told = [line[10:].split("  ")[0].strip() for line in result.stderr.splitlines()]
    assert told == ["model", "call", "call", "error", "model", "call", "model", "end"]


def test_every_change_reaches_the_replay(recorded: Path, server: ChatServer, home: Path) -> None:
    """Prompt from a file, task, model, parameters, turns, tool results: in the request, in the recording, in the text."""
    (home / "new.md").write_text("Be short.")
    result = replay(
        server, "--system-prompt", "new.md", "--task", "How high?", "--model", "ollama/other", "--set", "temperature=0",
        "--max-iterations", "2", "--tool-result", 'lookup:{"key": "Mount Zed"}="9,000 feet"', "--min-grounded", "0",
        answers=(saying("", lookup={"key": "Mount Zed"}), saying("9,000 feet.")),
    )  # fmt: skip
    assert result.exit_code == 0
    header = load_recording(newest(home)).header
    assert header.replay_of == "orig"
    assert header.overrides == {
        "system_prompt": "Be short.",
        "task": "How high?",
        "model": "ollama/other",
        "parameters": {"temperature": 0},
        "max_iterations": 2,
        "tool_results": [{"tool": "lookup", "arguments": {"key": "Mount Zed"}, "result": "9,000 feet"}],
    }
    first, second = server.requests
    assert [message["content"] for message in first["messages"]] == ["Be short.", "How high?"]
    assert (first["model"], first["options"]["temperature"]) == ("other", 0)
    assert second["messages"][-1]["content"] == "9,000 feet"
    for line in (
        "changed   system_prompt: Be short.", "changed   task: How high?", "changed   model: ollama/other",
        'changed   parameters: {"temperature": 0}', "changed   max_iterations: 2",
        "             1  override: yours, given with --tool-result",
    ):  # fmt: skip
        assert f"{line}\n" in result.stdout


def test_a_call_that_was_not_recorded(recorded: Path, server: ChatServer, home: Path) -> None:
    """Strict stops and names the nearest call; lenient tells the model; both are inconclusive, exit 4; no tool runs."""
    answers = (saying("", lookup={"key": "Mount Kenya"}), saying("No idea."))
    strict = replay(server, answers=answers)
    assert strict.exit_code == 4
    text = " ".join(strict.stdout.split())
    assert "the nearest recorded call is lookup" in text
    assert "verdict inconclusive: nothing can be concluded, as the lines above say" in text
    lenient = replay(server, "--on-missing", "lenient", answers=answers)
    assert lenient.exit_code == 4
    assert "1  synthetic-error: not recorded: the model was told so" in lenient.stdout
    assert "as the lines above say; --min-grounded asks for 80%" in " ".join(lenient.stdout.split())
    assert replay(server, "--on-missing", "lenient", "--min-grounded", "0", answers=answers).exit_code == 0
    assert (home / "looked").read_text() == "x"


def test_a_call_that_was_not_recorded_is_made_up_or_made(recorded: Path, server: ChatServer, home: Path) -> None:
    """By a function, a model, or the tool: a read-only one, or one that is named; another strategy is in the header."""
    (home / "standing_in.py").write_text(
        "import my_tools, playhead\n"
        "agent = playhead.Agent(playhead.Ollama('ollama/m'), tools=[my_tools.lookup, my_tools.calculator])\n"
        "def lookup(call):\n    return f'no {call.arguments}'\n"
    )
    answers = (saying("", lookup={"key": "Mount Kenya"}), saying("No idea."))
    function = replay(server, "--on-missing", "lookup=standing_in:lookup", "--strategy", "direct", answers=answers)
    assert "1  simulated: made up by a function or a model" in function.stdout
    assert load_recording(newest(home)).header.overrides == {"strategy": {"name": "direct", "settings": {}}}
    model = replay(server, "--on-missing", "ollama/other", answers=(answers[0], saying("5,199 metres"), answers[1]))
    assert "note      ollama/other simulated 1 calls" in model.stdout
    assert [request["model"] for request in server.requests[-3:]] == ["m", "other", "m"]
    assert (home / "looked").read_text() == "x"
    live = ("--agent", "standing_in:agent", "--model", "ollama/m", "--on-missing")
    assert "1  live: " in replay(server, *live, "live", answers=answers).stdout
    assert (home / "looked").read_text() == "xx"
    calculated, more = home / "calculated", (saying("", calculator={"expression": "1 + 1"}), saying("2"))
    before = calculated.read_text()
    assert replay(server, *live, "live", answers=more).exit_code == 4
    assert calculated.read_text() == before
    assert "1  live: " in replay(server, *live, "calculator=live", answers=more).stdout
    assert calculated.read_text() == f"{before}1 + 1\n"
    wrong = ("lookup=standing_in:lokup", "standing", "lookup=", "lokup=lenient", "live")
    assert [replay(server, "--on-missing", each).exit_code for each in wrong] == [2] * 5


def test_a_replay_as_json(recorded: Path, server: ChatServer, home: Path) -> None:
    """One object: what was changed, the verdict, where the results came from, the run and the whole diff."""
    result = replay(server, "--json", "--set", "seed=1")
    (outcome,) = objects(result)
    names = ("original_run_id", "overrides", "verdict", "grounded", "rungs", "stopped")
    said = tuple(outcome[name] for name in names)
    assert said == ("orig", {"parameters": {"seed": 1}}, "same", 1.0, {"exact": 3}, None)
    assert (outcome["run"]["run_id"], outcome["run"]["success"]) == (newest(home), True)
    assert outcome["diff"]["identical"] is True
    assert (outcome["diff"]["original_run_id"], outcome["diff"]["replay_run_id"]) == ("orig", newest(home))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("lookup=a=b:c", {"tool": "lookup", "result": "a=b:c"}),
        ('lookup:{"key": "a=}"}={"b": [1]}', {"tool": "lookup", "arguments": {"key": "a=}"}, "result": {"b": [1]}}),
        ('lookup : {"key": 1} = null', {"tool": "lookup", "arguments": {"key": 1}, "result": None}),
        ("lookup=" + "[" * 100_000, {"tool": "lookup", "result": "[" * 100_000}),
    ],
)
def test_tool_results_in_words(text: str, read: dict[str, Any]) -> None:
    """A name, arguments or none, and JSON or else text."""
    assert tool_result(text) == read


def test_a_redacted_prompt(server: ChatServer, home: Path) -> None:
    """A live model is not given a prompt with a hole in it; with the value it is, and the replay's trace has none."""
    server.answers[:] = [saying("Done.")]
    agent = Agent(
        Ollama("ollama/m", api_base=server.address),
        redact=[lambda text: text.replace("hunter22", "[redacted:PASSWORD]")],
        context=Context(rationale=False),
    )
    agent.run_sync("Use hunter22.", run_id="hidden")
    refused = playhead("replay", "hidden", "--api-base", server.address)
    assert (refused.exit_code, refused.stdout) == (3, "")
    assert "(--rebind NAME=env:VARIABLE), or" in refused.stderr
    server.answers[:] = [saying("Done.")]
    result = playhead("replay", "hidden", "--api-base", server.address, "--rebind", "PASSWORD=hunter22")
    assert result.exit_code == 0
    assert server.requests[-1]["messages"][-1]["content"] == "Use hunter22."
    assert "hunter22" not in result.output
    assert b"hunter22" not in (home / ".playhead/traces/replays" / f"{newest(home)}.jsonl").read_bytes()
