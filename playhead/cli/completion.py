"""The script for shell completion."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - click looks at it

import click
from click.shell_completion import get_completion_class

from playhead.cli import exits, options
from playhead.cli.output import write_json


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
