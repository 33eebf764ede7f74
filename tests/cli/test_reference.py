"""docs/cli.md is made of the commands themselves, and is current."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from playhead.cli.main import COMMANDS, commands
from playhead.cli.options import PlayheadCommand
from playhead.cli.reference import markdown

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_reference_is_current() -> None:
    """`make docs` writes it; whoever changes an option or a help text runs it."""
    assert DOCS.read_text(encoding="utf-8") == markdown()


def test_the_module_writes_it() -> None:
    """As `make docs` calls it, in an environment that differs."""
    environment = {"COLUMNS": "33", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [sys.executable, "-m", "playhead.cli.reference"], env=environment, capture_output=True, text=True, check=True,
        cwd=DOCS.parents[1], encoding="utf-8",
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (markdown(), "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_it(name: str) -> None:
    """With its usage, each of its options, its example and its exit codes."""
    command = commands.get_command(click.Context(commands), name)
    assert isinstance(command, PlayheadCommand)
    _, _, section = markdown().partition(f"\n## playhead {name}\n")
    section = section.partition("\n## playhead ")[0]
    assert f"\nplayhead {name} [OPTIONS]" in section
    for option in command.params:
        if isinstance(option, click.Option) and option.opts[0] not in ("--json", "--trace-dir"):
            assert f"`{option.opts[0]}" in section
    assert f"$ {command.example.splitlines()[0]}" in section
    for code, meaning in command.exits.items():
        assert f"| {code} | {meaning} |" in section
    assert {0, 2} <= command.exits.keys()


def test_tables_are_whole() -> None:
    """Every row has the cells of its head: a bar in a text is escaped."""
    rows = [line.replace("\\|", "") for line in markdown().splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {3}
