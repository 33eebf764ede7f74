"""`playhead run`, `kill` and misspelt commands: exit codes as documented, and nothing that does harm unasked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead.cli.main import COMMANDS
from tests.cli.conftest import ChatServer, saying
from tests.findings.adapter import cli

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HARMFUL = ("run", "resume", "kill", "approve", "deny", "export", "import", "collect", "replay")
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
    server = ChatServer([saying(f"turn {number}", lookup={"key": str(number)}) for number in range(14)])
    yield server
    server.shutdown()
    server.server_close()


def run(chat: ChatServer, folder: Path, *options: str, **env: str) -> Any:
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
    result = run(chat, tmp_path, *options)
    assert result.returncode == code, result.stderr
    assert (code == 2) == (not chat.requests and not (tmp_path / "traces").exists())


def test_a_trace_that_cannot_be_written(chat: ChatServer, tmp_path: Path) -> None:
    """The run continues unrecorded and says so; with PLAYHEAD_ON_TRACE_ERROR=stop it exits 3."""
    (tmp_path / "file").write_text("")
    went_on = run(chat, tmp_path, "--max-iterations", "1", PLAYHEAD_TRACE_DIR=str(tmp_path / "file/traces"))
    assert went_on.returncode == 0
    assert went_on.stdout.endswith("trace   none: it could not be created\n")
    stopped = run(
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
