"""The reference docs/cli.md (`python -m playhead.cli.reference`), and the script for shell completion."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - click looks at it
from typing import Final

import click
from click.shell_completion import get_completion_class

from playhead.cli import exits, options
from playhead.cli.output import write_json

WIDTH: Final = 100
"""Cells of a line of help."""
INTRODUCTION: Final = """\
# The command line

<!-- Written by `make reference` from the commands' own help. A test checks that it is current. -->

`RUN` is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file. Colour is for
terminals, and never with `NO_COLOR`; control characters of a trace are shown escaped. Beside the codes below, every command
exits 70 for a bug or a failure of the system, 130 and 143 after Ctrl-C and SIGTERM, and 141 for a closed pipe.
"""


@options.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, *, shell: str, trace_dir: Path | None, as_json: bool) -> int:  # noqa: ARG001
    r"""Print the script that lets a shell complete commands, options, and the ids of your newest runs.

    To have it in every new shell, put one of these lines into its start file:

    \b
      ~/.bashrc                    eval "$(playhead completion bash)"
      ~/.zshrc, after compinit     eval "$(playhead completion zsh)"
      ~/.config/fish/config.fish   playhead completion fish | source

    Bash has to be 4.4 or newer; on macOS that is the one from Homebrew.

    Example:
      eval "$(playhead completion bash)"

    Exit codes:
      0  all is well
      2  the command line is wrong
    """
    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - click has all of the choices
    # Past the class's own `source`, which for bash asks this machine's bash for its version and complains on stderr.
    made = found(context.find_root().command, {}, "playhead", "_PLAYHEAD_COMPLETE")
    script = made.source_template % made.source_vars()
    if as_json:
        write_json([{"shell": shell, "script": script}])
    else:
        click.echo(script, nl=False)
    return exits.OK


def markdown() -> str:
    """Return the reference as Markdown: the help of every command."""
    from playhead.cli.main import commands

    root = click.Context(commands, info_name="playhead", terminal_width=WIDTH, max_content_width=WIDTH)
    parts = [INTRODUCTION, f"```\n{commands.get_help(root)}\n```\n"]
    for name in commands.list_commands(root):
        command = commands.get_command(root, name)
        assert command is not None  # noqa: S101 - it is in the list
        shown = command.get_help(click.Context(command, parent=root, info_name=name))
        parts.append(f"## playhead {name}\n\n```\n{shown}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(markdown())
