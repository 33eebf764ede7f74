"""The command line: how `list` says that runs ended, replays apart from runs, exit codes, and what is imported."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from playhead import load_recording, tool
from playhead.cli.main import COMMANDS
from playhead.compose.killswitches import budget_limit, max_iterations
from playhead.diagnose.run_summary import summaries
from playhead.errors import TraceNotFoundError
from playhead.testing import call, error, text
from playhead.trace.store import TraceStore
from tests.cli.conftest import ChatServer, chatting, saying
from tests.cli.other_processes import begin, end, running
from tests.findings.adapter import agent, cli, process, replay, run
from tests.proving import sample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look up."""
    return key


def endings(folder: Path) -> dict[str, str]:
    """Return how each run ended, by its id, as the JSON of `list` says."""
    lines = cli("list", "--json", "--trace-dir", folder).stdout.splitlines()
    return {each["run_id"]: each["ending"] for each in map(json.loads, lines)}


def continued(path: Path, earlier: str, by: str) -> None:
    """Write a run that says of itself that it continues another one, and that ended by this reason."""
    recorder = begin(path)
    end(recorder, "")
    lines = path.read_text().replace('"task":"go"', f'"task":"go","resumed_from":"{earlier}"')
    path.write_text(lines.replace('"terminated_by":"kill"', f'"terminated_by":"{by}"'))


@pytest.mark.parametrize(
    ("turns", "options", "ending"),
    [
        ([text("done")], {}, "answered"),
        ([call("lookup", key="a")] * 3, {"max_iterations": 2}, "stopped"),
        ([call("lookup", key="a")] * 3, {"compose": [max_iterations(1)]}, "stopped"),
        ([call("lookup", key="a")] * 3, {"compose": [budget_limit(max_tokens=1)]}, "stopped"),
        ([call("lookup", key="a")] * 3, {"compose": [max_iterations(1, on_trigger="terminate")]}, "failed"),
        ([error("gone")], {"retries": 0}, "failed"),
    ],
)
def test_a_run_that_has_an_end(tmp_path: Path, turns: list[Any], options: dict[str, Any], ending: str) -> None:
    """Only what the model answered is `answered`; a limit is a stop, with its name."""
    run(agent(turns, [lookup], trace=tmp_path, rationale=False, **options), run_id="mine")
    (summary,) = summaries(TraceStore(tmp_path))
    assert summary.ending == ending
    shown = cli("list", "--trace-dir", tmp_path, env={"COLUMNS": "160"}).stdout
    assert (f"  {ending}: {summary.terminated_by}" in shown) == (ending != "answered")


@pytest.mark.slow
def test_running_dead_resumed_and_killed_are_four_things(tmp_path: Path) -> None:
    """By its process, by another run that continues it, by its own end."""
    with running("ignores", tmp_path / "alive.jsonl"):
        for name in ("dead", "resumed", "tried"):
            begin(tmp_path / f"{name}.jsonl").seal()
        end(begin(tmp_path / "killed.jsonl"), "enough")
        continued(tmp_path / "later.jsonl", "resumed", "end_turn")
        continued(tmp_path / "stuck.jsonl", "tried", "replay_stopped")
        with running("ends", tmp_path / "crashed.jsonl"):
            found = endings(tmp_path)
    assert found == {
        "alive": "running",
        "dead": "interrupted",
        "resumed": "resumed",
        "tried": "interrupted",
        "killed": "stopped",
        "later": "answered",
        "stuck": "stopped",
        "crashed": "interrupted",
    }
    assert endings(tmp_path)["alive"] == "interrupted"


# --- replays are apart from runs --------------------------------------------------------------------------------------


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A traces of traces with one run, `first`, and two replays of it, the second a replay of the first replay."""
    turns = [call("lookup", key="a"), text("done")]
    result = run(agent(turns, [lookup], trace=tmp_path / "traces", rationale=False), run_id="first")
    once = replay(result.trace_path, turns, trace=tmp_path / "traces")
    replay(once.run.trace_path, turns, trace=tmp_path / "traces")
    return tmp_path / "traces"


def said(traces: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return the JSON objects that a command writes about the traces."""
    result = cli(*arguments, "--json", "--trace-dir", traces)
    return [json.loads(line) for line in result.stdout.splitlines()]


def replays_in(traces: Path) -> list[str]:
    """Return the ids of the replays, oldest first."""
    return sorted(path.stem for path in (traces / "replays").glob("*.jsonl"))


def test_where_they_are(traces: Path) -> None:
    """Runs in the traces, replays in its traces `replays`, those of replays too."""
    assert [path.stem for path in traces.glob("*.jsonl")] == ["first"]
    assert len(replays_in(traces)) == 2


@pytest.mark.parametrize(("arguments", "runs"), [(["list"], 1), (["list", "--replays"], 3)])
def test_list(traces: Path, arguments: list[str], runs: int) -> None:
    """Real runs; all with --replays, and each says what it replays."""
    found = said(traces, *arguments)
    assert len(found) == runs
    assert [each["run_id"] for each in found if each["replay_of"] is None] == ["first"]


def test_stats(traces: Path) -> None:
    """Figures over the newest runs are those of real runs."""
    assert [each["runs"] for each in said(traces, "stats")] == [1]
    assert [each["runs"] for each in said(traces, "stats", "--replays")] == [3]


def test_latest(traces: Path) -> None:
    """The newest real run; with --replays the newest of all; in Python the real one."""
    newest = replays_in(traces)[-1]
    assert said(traces, "check", "latest")[0]["run_id"] == "first"
    assert said(traces, "check", "latest", "--replays")[0]["run_id"] == newest
    assert said(traces, "check", "latest~2", "--replays")[0]["run_id"] == "first"
    assert load_recording("latest", traces).run_id == "first"
    with pytest.raises(TraceNotFoundError, match="holds 1 runs: no latest~1; its 2 replays count with --replays"):
        load_recording("latest~1", traces)


def test_an_id_finds_a_replay(traces: Path) -> None:
    """By its whole id, in every command and in Python."""
    for name in replays_in(traces):
        assert load_recording(name, traces).run_id == name
        for command in ("show", "check", "debrief", "stats", "reproduce"):
            assert cli(command, name, "--trace-dir", traces).returncode == 0, command


def test_diff_finds_the_original(traces: Path) -> None:
    """`diff` finds the original of a replay, and of a replay of a replay."""
    once, twice = sorted(replays_in(traces), key=lambda name: load_recording(name, traces).header.replay_of != "first")
    for name, original in ((once, "first"), (twice, once)):
        (diff,) = said(traces, "diff", name)
        assert (diff["original_run_id"], diff["replay_run_id"]) == (original, name)


# --- `playhead run`, `kill` and misspelt commands ---------------------------------------------------------------------


HARMFUL = (
    "blame",
    "promote",
    "run",
    "resume",
    "kill",
    "approve",
    "deny",
    "export",
    "import",
    "collect",
    "replay",
    "prune",
    "sign",
    "forget",
)
TOOLS = """
from playhead import tool

@tool(read_only=True)
def lookup(key: str) -> str:
    "Look up."
    return key
"""


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    """A model that looks something up, turn after turn."""
    with chatting(*(saying(f"turn {number}", lookup={"key": str(number)}) for number in range(14))) as server:
        yield server


def run_cli(chat: ChatServer, folder: Path, *options: str, **env: str) -> Any:
    """Run a task that the model never finishes, in an empty folder with a module of tools."""
    (folder / "my_tools.py").write_text(TOOLS)
    model = ("--model", "ollama/m", "--api-base", chat.address)
    return cli(
        "run", "go", *model, "--tools", "my_tools:lookup", "--no-rationale", *options,
        cwd=folder, env={"HOME": str(folder), "PLAYHEAD_TRACE_DIR": str(folder / "traces"), **env},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--max-iterations", "1"], 0),
        (["--switch", "max_iterations(1)"], 0),
        (["--switch", 'max_iterations(1, on_trigger="terminate")'], 1),
        (["--switch", 'tool_limit("lookup", 1, on_trigger="terminate")'], 1),
        (["--switch", 'timeout_after("0.000001s", on_trigger="terminate")'], 1),
        (["--tools", "my_tools:nothing"], 2),
        (["--strategy", "reflexon"], 2),
        (["--strategy", "direct", "--strategy-set", "max_retries"], 2),
        (["--set", "temprature=0"], 2),
        (["--switch", "budget(max_tokens=10)"], 2),
        (["--run-id", "../elsewhere"], 2),
    ],
)
def test_run_exits_as_documented(chat: ChatServer, tmp_path: Path, options: list[str], code: int) -> None:
    """0: it ended in order; 1: it failed, though nothing was raised; 2: the command line is wrong, and nothing ran."""
    result = run_cli(chat, tmp_path, *options)
    assert result.returncode == code, result.stderr
    assert (code == 2) == (not chat.requests and not (tmp_path / "traces").exists())


def test_a_trace_that_cannot_be_written(chat: ChatServer, tmp_path: Path) -> None:
    """The run continues unrecorded and says so; with PLAYHEAD_ON_TRACE_ERROR=stop it exits 3."""
    (tmp_path / "file").write_text("")
    went_on = run_cli(chat, tmp_path, "--max-iterations", "1", PLAYHEAD_TRACE_DIR=str(tmp_path / "file/traces"))
    assert went_on.returncode == 0
    assert went_on.stdout.endswith("trace   none: it could not be created\n")
    stopped = run_cli(
        chat, tmp_path, PLAYHEAD_TRACE_DIR=str(tmp_path / "file/traces"), PLAYHEAD_ON_TRACE_ERROR="stop"
    )  # fmt: skip
    assert (stopped.returncode, stopped.stdout) == (3, "")


@pytest.mark.parametrize(
    "typed",
    [
        "tail",
        "dney",
        "runn",
        "exprot",
        "stop",
        "rm",
    ],
)
def test_no_suggestion_does_harm(typed: str) -> None:
    """A misspelt command never suggests one that ends, deletes, sends, decides or spends."""
    result = cli(typed)
    words = set(result.stderr.replace(repr(typed), "").replace(",", " ").replace("'", " ").replace("?", " ").split())
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert not words & set(HARMFUL)


def test_every_command_is_harmful_or_not() -> None:
    """A new command has to be put on one side."""
    from playhead.cli.main import HARMLESS

    assert set(COMMANDS) == HARMLESS | set(HARMFUL)
    assert not HARMLESS & set(HARMFUL)


# --- nothing is imported from the current folder but what is named ----------------------------------------------------


POISON = 'open("IMPORTED", "a").write(__name__ + "\\n")\nraise SystemExit("imported from the current folder")\n'
INSTALLED = (
    "anyio", "click", "httpx", "litellm", "ollama", "openai", "psutil", "pydantic", "pydantic_settings",
    "rapidfuzz", "rfc8785", "rich", "sniffio", "ulid",
)  # fmt: skip
STANDARD = ("csv", "difflib", "getpass", "pdb", "sqlite3", "statistics", "termios", "uuid", "wave", "xml", "zipfile")
NOBODY = ("--api-base", "http://127.0.0.1:1", "--trace-dir", "runs")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A current folder in which a file stands for every module that a command might import."""
    for name in (*INSTALLED, *STANDARD):
        (tmp_path / f"{name}.py").write_text(POISON)
    (tmp_path / "mine.py").write_text("import beside\ndef lookup(key: str) -> str:\n    return beside.FACT\n")
    (tmp_path / "beside.py").write_text('FACT = "4180"\n')
    return tmp_path


def imported(folder: Path) -> list[str]:
    """Return the names of the poisoned modules that were imported."""
    said = folder / "IMPORTED"
    return said.read_text().splitlines() if said.exists() else []


@pytest.mark.slow
def test_a_run_imports_what_it_names_and_no_other_module_of_the_folder(folder):
    """Neither an adapter nor a library comes from the current folder, with tools of it or without."""
    done = process("run", "hi", "--model", "ollama/x", *NOBODY, "--tools", "mine:lookup", cwd=folder)
    assert (imported(folder), "imported from" in done.stderr) == ([], False)
    assert done.returncode in {1, 2}  # nobody answers there; `beside` has no such name


@pytest.mark.slow
def test_a_command_that_reads_imports_nothing_from_the_folder(folder):
    """What only reads a trace imports nothing from the current folder, as a module and as a script."""
    run(agent([text("4180")], trace=folder / "runs"), run_id="a")
    script = folder / "bin" / "playhead"
    script.parent.mkdir()
    script.write_text("from playhead.cli.main import main\nmain()\n")
    as_module = process("list", "--trace-dir", "runs", cwd=folder).returncode
    command = [sys.executable, script, "diff", "a", "a", "--trace-dir", "runs"]
    as_script = subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode
    assert (as_module, as_script, imported(folder)) == (0, 0, [])


@pytest.mark.slow
def test_a_name_that_stands_for_two_modules_is_refused(folder):
    """`--tools` never takes the wrong one of two modules: it names both, and neither is imported from the folder."""
    (folder / "json.py").write_text(POISON)
    done = process("run", "hi", "--model", "ollama/x", *NOBODY, "--tools", "json:lookup", cwd=folder)
    assert (done.returncode, imported(folder)) == (2, [])
    assert f"the module 'json' of {folder} has the name of another one (" in done.stderr


# --- files that are nothing but junk ----------------------------------------------------------------------------------


SIZE = sample(20_000_000, 4_000_000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("junk", "said"),
    [
        (b"\0", "neither OTLP JSON nor OTLP protobuf"),
        (b"\n", "not an OTLP message"),
        (b'{"resourceSpans":[]}\n' + b"\n" * 10_000, "it holds no spans"),
        (b'{"resourceSpans":[' + b" " * 1000, "neither OTLP JSON nor OTLP protobuf"),
    ],
)
def test_an_export_of_nothing(tmp_path: Path, junk: bytes, said: str):
    """It is refused, compressed too, and nothing is recorded."""
    path = tmp_path / "spans.json.gz"
    path.write_bytes(gzip.compress(junk * (SIZE // len(junk)), 1))
    ran = cli("import", path, "--trace-dir", tmp_path / "traces")
    assert (said in ran.stderr, ran.stdout, list((tmp_path / "traces").glob("*.jsonl"))) == (True, "", [])
