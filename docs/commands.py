"""The reference of the command line: `python docs/commands.py` prints docs/cli.md (`make reference`)."""

from __future__ import annotations

import sys
from typing import Final

import click

from playhead.cli.main import commands

WIDTH: Final = 100
"""Cells of a line of help."""
INTRODUCTION: Final = """\
# The command line

<!-- Written by `make reference` from the commands' own help. A test checks that it is current. -->

`RUN` is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file. Colour is for
terminals, and never with `NO_COLOR`; control characters of a trace are shown escaped. Beside the codes below, every command
exits 70 for a bug or a failure of the system, 130 and 143 after Ctrl-C and SIGTERM, and 141 for a closed pipe.
"""


def markdown() -> str:
    """Return the reference as Markdown: the help of every command."""
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
