"""Every command explains itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from playhead.cli.main import COMMANDS, commands
from tests.cli.command_line import playhead


def test_help_lists_every_command() -> None:
    """`playhead`, `-h` and `--help` say the same, in the order in which the commands are met."""
    result = playhead("--help")
    assert result.exit_code == 0
    assert playhead().stdout == playhead("-h").stdout == result.stdout
    positions = [result.stdout.index(f"\n  {name} ") for name in COMMANDS]
    assert positions == sorted(positions)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_json_a_trace_dir_and_an_example(name: str) -> None:
    """What all commands share is there, every option says what it does, and the example is of this command."""
    result = playhead(name, "--help")
    assert result.exit_code == 0
    _, _, example = result.stdout.partition("\n  Example:\n")
    assert example.startswith((f"    playhead {name}", f'    eval "$(playhead {name}'))
    _, _, exits = example.partition("\n  Exit codes:\n")
    assert exits.startswith("    0  ")
    command = commands.get_command(click.Context(commands), name)
    assert command is not None
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert {"as_json", "trace_dir"} <= {option.name for option in options}
    assert [option.name for option in options if not option.help] == []
    assert command.name == name
    assert "\\b" not in result.stdout  # click's marker of what is not to be wrapped


@pytest.mark.slow
def test_the_reference_is_current() -> None:
    """`make reference` writes docs/cli.md, whatever the terminal; whoever changes an option or a help text runs it."""
    docs = Path(__file__).parents[2] / "docs"
    command = [sys.executable, str(docs / "commands.py")]
    done = subprocess.run(command, env={**os.environ, "COLUMNS": "33"}, capture_output=True, text=True, check=True)
    assert done.stdout == (docs / "cli.md").read_text(encoding="utf-8")
    assert all(f"\n## playhead {name}\n" in done.stdout for name in COMMANDS)
