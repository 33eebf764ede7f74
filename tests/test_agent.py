from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from playhead import Agent, RunResult, ToolContext, load_recording, tool
from playhead.agent.options import DEFAULT
from playhead.diagnose.integrity import check_trace
from playhead.errors import (
    RunIdError,
    ToolDefinitionError,
    TraceExistsError,
    UnknownModelError,
    UnknownStrategyError,
    UsageError,
)
from playhead.kernel.outcome import Outcome
from playhead.kernel.state import Step
from playhead.testing import ScriptedModel, TickingClock, call, text
from playhead.trace.types import ImagePart, TextPart, ToolSpec, Usage
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path


@tool(read_only=True)
async def lookup(key: str) -> str:
    """Look up."""
    return f"{key} is 8848"


def an_agent(*turns: Any, **options: Any) -> Agent:
    """Return an agent that answers with these turns."""
    defaults: dict[str, Any] = {"tools": [lookup], "trace": None, "clock": TickingClock, "rationale": False}
    return Agent(ScriptedModel(turns or [text("42")]), **grouped(**{**defaults, **options}))


def files(folder: Path) -> list[str]:
    """Return the names of all files below a folder."""
    return sorted(path.name for path in folder.rglob("*") if not path.is_dir())


async def test_a_result(tmp_path: Path):
    """A result holds everything that the run reached."""
    agent = an_agent(call("lookup", key="Everest"), text("8848 m"), trace=tmp_path)
    result = await agent.run("How high is Everest?", run_id="run")
    assert result == RunResult(
        output="8848 m",
        status="done",
        terminated_by="end_turn",
        terminated_source="kernel",
        error=None,
        run_id="run",
        trace_path=tmp_path / "run.jsonl",
        trace_complete=True,
        usage=Usage(input_tokens=6, output_tokens=4),
        cost_usd=0.0,
        iterations=2,
        steps=(
            Step("action", '{"key": "Everest"}', 0, "lookup", "call_0_0"),
            Step("observation", "Everest is 8848", 0, "lookup", "call_0_0", ok=True),
        ),
        strategy_used="reactive",
        duration_ms=result.duration_ms,
    )
    assert (result.success, result.duration_ms > 0) == (True, True)
    with pytest.raises(ValidationError, match="frozen"):
        result.output = "9000 m"


async def test_run_sync_inside_a_loop():
    """And inside a running loop, as in a notebook, where it works in a thread."""
    assert an_agent().run_sync("Do it.").output == "42"


# --- tasks and ids ---------------------------------------------------------------------------------------------------


PICTURE = ImagePart(url="https://x.org/a.png")


@pytest.mark.parametrize(
    ("task", "recorded"),
    [
        ("torn \ud800", "torn \ufffd"),
        ([{"type": "text", "text": "a"}], (TextPart(text="a"),)),
        ((PICTURE,), (PICTURE,)),
        ([], ()),
    ],
)
async def test_tasks(tmp_path: Path, task: Any, recorded: Any):
    """A task is text, or parts of text and images; the trace holds what the model gets."""
    agent = an_agent(trace=tmp_path)
    await agent.run(task, run_id="run")
    assert load_recording(tmp_path / "run.jsonl").header.task == recorded
    assert agent.model.requests[0].messages[-1].content == recorded  # type: ignore[attr-defined]


@pytest.mark.parametrize("task", [None, 5, {"text": "a"}, ["a"], [{"type": "sound"}], [5]], ids=repr)
async def test_an_invalid_task(tmp_path: Path, task: Any):
    """Anything else is refused before anything is written."""
    with pytest.raises(UsageError, match=r"^a task is text, or a list of text and image parts"):
        await an_agent(trace=tmp_path).run(task)
    assert files(tmp_path) == []


BAD_IDS = ("", "../../x", "a/b", "a\0b", "a" * 300, ".hidden", "x.jsonl", "latest", "a\n")


@pytest.mark.parametrize("run_id", BAD_IDS, ids=repr)
@pytest.mark.parametrize("traced", [True, False])
async def test_ids_that_no_run_can_have(tmp_path: Path, run_id: str, traced: bool):
    """An id that could mean something else or lead elsewhere is refused, and nothing is written anywhere."""
    folder = tmp_path / "traces" / "deep"
    agent = an_agent(trace=folder if traced else None)
    with pytest.raises(RunIdError):
        await agent.run("Do it.", run_id=run_id)
    assert files(tmp_path) == []
    assert agent.model.requests == []  # type: ignore[attr-defined]


async def test_two_runs_of_one_id(tmp_path: Path):
    """The second run of an id is refused, and the first one's trace stays what it was."""
    await an_agent(trace=tmp_path).run("Do it.", run_id="run")
    before = (tmp_path / "run.jsonl").read_bytes()
    agent = an_agent(trace=tmp_path)
    with pytest.raises(TraceExistsError, match=re.escape("run.jsonl exists: a run of this id has been or is being")):
        await agent.run("Do it.", run_id="run")
    assert (tmp_path / "run.jsonl").read_bytes() == before
    assert agent.model.requests == []  # type: ignore[attr-defined]


# --- where traces go -------------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PLAYHEAD_TRACE_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def test_the_first_run_says_where(home: Path, capsys: pytest.CaptureFixture[str]):
    """The first run on a machine prints one line that says where traces are, and the second none."""
    folder = home / ".playhead" / "traces"
    first = await an_agent(text("1"), trace=DEFAULT).run("Do it.")
    assert capsys.readouterr() == ("", f"Playhead records runs in {folder}\n")
    second = await an_agent(text("1"), trace=DEFAULT).run("Do it.")
    assert capsys.readouterr() == ("", "")
    assert [first.trace_path, second.trace_path] == [folder / f"{each.run_id}.jsonl" for each in (first, second)]
    assert [folder.stat().st_mode & 0o777, first.trace_path.stat().st_mode & 0o777] == [0o700, 0o600]  # type: ignore[union-attr]


async def test_a_folder_that_was_named_needs_no_words(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """A folder given as an argument is made in silence, counts more than the environment, and `~` is the home."""
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(home / "environment"))
    result = await an_agent(trace="~/argument").run("Do it.")
    assert (result.trace_path, capsys.readouterr()) == (home / "argument" / f"{result.run_id}.jsonl", ("", ""))
    other = await an_agent(trace=DEFAULT).run("Do it.")
    assert other.trace_path == home / "environment" / f"{other.run_id}.jsonl"


async def test_no_trace(home: Path, monkeypatch: pytest.MonkeyPatch):
    """With `trace=None` nothing is written, and invalid settings are not read."""
    monkeypatch.setenv("PLAYHEAD_DURABILITY", "no such thing")
    result = await an_agent(trace=None).run("Do it.")
    assert (result.output, result.trace_path, result.trace_complete) == ("42", None, False)
    assert files(home) == []


# --- watching --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("traced", [True, False])
async def test_subscribers(tmp_path: Path, traced: bool):
    """A subscriber hears every event of its kind, in order, traced or not, until the subscription is undone."""
    agent = an_agent(*[text("42")] * 2, trace=tmp_path if traced else None)
    everything: list[Any] = []
    ends: list[Any] = []
    agent.subscribe(None, everything.append)
    undo = agent.subscribe("run-completed", ends.append)
    await agent.run("One.", run_id="one")
    assert [record.seq for record in everything] == list(range(len(everything)))
    assert not traced or tuple(everything) == load_recording(tmp_path / "one.jsonl").records
    undo()
    undo()
    await agent.run("Two.", run_id="two")
    assert [record.kind for record in ends] == ["run-completed"]
    assert [record.event.run_id for record in everything if record.kind == "run-started"] == ["one", "two"]


async def test_a_subscriber_that_raises(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """A failing subscriber is logged and recorded once, and affects neither the run nor other subscribers."""
    heard: list[str] = []

    def broken(record: Any) -> None:
        raise RuntimeError("oops")

    agent = an_agent(call("lookup", key="a"), text("42"), trace=tmp_path)
    agent.subscribe(None, broken)
    agent.subscribe(None, lambda record: heard.append(record.kind))
    result = await agent.run("Do it.", run_id="run")
    recording = load_recording(tmp_path / "run.jsonl")
    assert (result.output, check_trace(recording.path).ok, recording.counts()["hook-failed"]) == ("42", True, 1)
    assert sum("broken failed on run-started" in line for line in caplog.messages) == len(caplog.messages) == 1
    assert heard.count("run-completed") == 1


# --- misuse ----------------------------------------------------------------------------------------------------------


class Foreign:
    """A tool that is not made by Playhead."""

    def __init__(self, name: str, kind: Any = "function") -> None:
        self.spec = ToolSpec(name=name, kind=kind)

    def check(self, arguments: dict[str, Any], context: ToolContext) -> None:
        """Take anything."""

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> Outcome:
        """Do nothing."""
        return Outcome(ok=True)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"model": "gpt-4o"}, UnknownModelError, "'gpt-4o' names no provider; write provider/model"),
        ({"model": None}, UsageError, "None is not a model: give 'provider/model', or an object"),
        ({"strategy": "reactiv"}, UnknownStrategyError, "there is no strategy 'reactiv'. Did you mean 'reactive'?"),
        ({"name": 5}, UsageError, "5 is not an agent name"),
        ({"tools": lookup}, UsageError, "tools must be a list; it is <playhead.kernel.tools.FunctionTool"),
        (
            {"tools": [Foreign("Get_it"), Foreign("get-it")]},
            ToolDefinitionError,
            "two tools are called 'get-it', or nearly so; a model needs distinct names",
        ),
        (
            {"tools": [Foreign("final_answer")]},
            ToolDefinitionError,
            "'final_answer' is a tool of the kernel; rename yours",
        ),
        ({"tools": [Foreign("mine", "meta")]}, ToolDefinitionError, "mine: the kind 'meta' is for "),
        ({"tools": [Foreign("mine", "agent")]}, ToolDefinitionError, "mine: the kind 'agent' is for "),
        (
            {"required_tools": ["look"]},
            UsageError,
            "require_tools names 'look', which is not a tool of this agent. Did you mean",
        ),
        ({"max_iterations": 0}, UsageError, "max_iterations must be a whole number of at least 1; it is 0"),
        (
            {"retry_delay_s": float("nan")},
            UsageError,
            "retry_delay_s must be a number of seconds, not below 0; it is nan",
        ),
        ({"system_prompt": 5}, UsageError, "system_prompt: Input should be a valid string"),
        ({"examples": ["a"]}, UsageError, "examples must be a list of messages; 'a' is not one"),
        ({"trace": 5}, UsageError, "trace must be a folder, or None for no trace; it is 5"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_arguments_that_are_not_valid(options: dict[str, Any], kind: type[UsageError], message: str):
    """A wrong argument is refused when the agent is made, in one line that names it."""
    with pytest.raises(kind, match=f"^{re.escape(message)}"):
        Agent(**grouped(**{"model": ScriptedModel([]), "tools": [lookup], "trace": None, **options}))


async def test_functions_and_agents_are_tools():
    """A plain typed function, an agent and an object with the methods of a tool may be given as they are."""

    def plain(key: str) -> str:
        """Do it."""
        return key

    agent = an_agent(tools=[plain, an_agent(name="child"), lookup, Foreign("mine")])
    assert [(each.spec.name, each.spec.kind) for each in agent.tools.values()] == [
        ("plain", "function"),
        ("child", "agent"),
        ("lookup", "function"),
        ("mine", "function"),
        ("final-answer", "meta"),
    ]
