"""`playhead completion`: the script with which a shell completes commands, options and runs."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - click looks at it
from typing import Final

import click
from click.shell_completion import get_completion_class

from playhead.cli import exits, options
from playhead.cli.output import write_json

SHELLS: Final = ("bash", "zsh", "fish")
VARIABLE: Final = "_PLAYHEAD_COMPLETE"


@options.command("completion", example='eval "$(playhead completion bash)"')
@click.argument("shell", type=click.Choice(SHELLS))
def command(*, shell: str, trace_dir: Path | None, as_json: bool) -> int:  # noqa: ARG001 - every command has it
    r"""Print the script that lets a shell complete commands, options, and the ids of your newest runs.

    To have it in every new shell, put one of these lines into its start file:

    \b
      ~/.bashrc                    eval "$(playhead completion bash)"
      ~/.zshrc, after compinit     eval "$(playhead completion zsh)"
      ~/.config/fish/config.fish   playhead completion fish | source

    Bash has to be 4.4 or newer; on macOS that is the one from Homebrew.
    """
    script = script_for(shell)
    if as_json:
        write_json([{"shell": shell, "script": script}])
    else:
        click.echo(script, nl=False)
    return exits.OK


def script_for(shell: str) -> str:
    """Return the script of a shell."""
    from playhead.cli.main import commands  # noqa: PLC0415 - which loads this file

    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - click has all of SHELLS
    # Past the class's own `source`, which for bash asks this machine's bash for its version and complains on stderr.
    completion = found(commands, {}, "playhead", VARIABLE)
    return completion.source_template % completion.source_vars()
