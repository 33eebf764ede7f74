"""Every command explains itself."""

from __future__ import annotations

import click
import pytest

from playhead import __version__
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


def test_the_version() -> None:
    """`--version` is that of the package."""
    assert playhead("--version").stdout == f"playhead {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_no_control_character_is_spelled_out(name: str) -> None:
    """A marker for what is not to be wrapped is no text of the help."""
    assert "\\b" not in playhead(name, "--help").stdout


def test_lines_that_are_not_to_be_wrapped() -> None:
    """They stand below one another."""
    assert (
        '\n    ~/.zshrc, after compinit     eval "$(playhead completion zsh)"\n'
        in playhead("completion", "--help").stdout
    )
