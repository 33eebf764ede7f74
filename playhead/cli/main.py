"""The `playhead` command: its subcommands, each loaded when it is called."""

from __future__ import annotations

import io
import logging
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from playhead.cli import exits
from playhead.diagnose.terminal import escape
from playhead.errors import nearest_name

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUPS: Final = {
    ("Record an agent at work", "record"): {
        "demo": "Record an example, check it, change its prompt, and compare; no key, no network.",
        "run": "Run an agent on a task and record it.",
        "resume": "Resume an interrupted run where it stopped.",
    },
    ("Look at what was recorded", "look"): {
        "list": "List recent runs.",
        "show": "Show a run, event by event.",
        "grep": "Find events in recorded runs.",
        "sql": "Query recorded runs with SQL.",
        "debrief": "Explain a run's decisions, and flag claims that its trace does not support.",
        "stats": "Count tokens, cost and time by model, tool and agent.",
        "check": "Verify that a trace is whole and unchanged.",
        "diff": "Compare two runs, or a replay with its original.",
        "report": "Write a run, two side by side, or many, as one HTML page.",
        "view": "Show the runs in the browser.",
    },
    ("Run again with frozen tools", "again"): {
        "reproduce": "Run a recording again with everything frozen, and compare.",
        "replay": "Run a recording again with something changed, and report what that did.",
        "blame": "Find the part of a change that flipped a run's outcome.",
        "backtest": "Report where killswitches would have stopped recorded runs.",
        "promote": "Write a pytest test from a run.",
    },
    ("Control running agents", "control"): {
        "kill": "Stop a running agent from another process.",
        "approvals": "List tool calls awaiting approval.",
        "approve": "Approve a tool call, so that it runs.",
        "deny": "Deny a tool call, so that it does not run.",
    },
    ("Exchange spans with other programs", "moving"): {
        "export": "Send the spans of runs to a collector, or write them into a file.",
        "import": "Record runs from spans that another program exported.",
        "collect": "Receive spans from running programs, and record them.",
    },
    ("Erase, prune and seal what was recorded", "keeping"): {
        "leaks": "Find credentials and quoted system prompts in recorded runs.",
        "prune": "Remove old runs.",
        "sign": "Sign the heads of runs, so that later changes show.",
        "forget": "Erase a value from recorded runs.",
    },
    ("Set up your shell", "completion"): {
        "completion": "Print the script for shell completion of commands and runs.",
    },
}
"""Each group's purpose, module and commands, in the order of the help page."""
COMMANDS: Final = {name: what for group in GROUPS.values() for name, what in group.items()}
"""Every command."""
MODULES: Final = {name: module for (_, module), group in GROUPS.items() for name in group} | {
    "demo": "demo",
    "show": "events",
    "grep": "events",
    "sql": "querying",
    "report": "report",
    "view": "view",
    "blame": "blame",
    "promote": "blame",
}
"""The module of each command."""
HARMLESS: Final = frozenset(
    {"demo", "approvals", "list", "show", "grep", "sql", "debrief", "stats", "check", "leaks", "reproduce", "backtest", "diff", "report", "view", "completion"}
)  # fmt: skip
"""Commands without lasting effects. Only these are suggested for a misspelt command."""


class Commands(click.Group):
    """The subcommands. They return their exit code; an exception becomes one line on stderr and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names, in the order of the help page."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load a command."""
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_" if cmd_name in ("import", "list") else cmd_name
        module = import_module(f"playhead.cli.{MODULES[cmd_name]}")
        command: click.Command = getattr(module, name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the nearest harmless one."""
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            close = nearest_name(args[0], COMMANDS)
            guess = f" Did you mean {close!r}?" if close in HARMLESS else ""
            raise click.UsageError(f"there is no command {args[0]!r}.{guess} Safe ones: {', '.join(sorted(HARMLESS))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands by group, without loading them."""
        for (purpose, _), group in GROUPS.items():
            with formatter.section(purpose):
                formatter.write_dl(list(group.items()), col_max=12)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - the exit code
        """Call the command and flush its output."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:  # handled before click sees it, who would exit 1: a check that failed
            exits.drop_output()
            raise click.exceptions.Exit(exits.BROKEN_PIPE) from None
        return code

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:  # noqa: ANN401 - click's own
        """Run a command line and exit."""
        _prepare_streams()
        logging.getLogger("playhead").handlers[:] = [_Warnings(logging.WARNING)]
        call = super().main
        sys.exit(exits.exit_code(lambda: call(*args, **{**kwargs, "prog_name": "playhead", "standalone_mode": False})))


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
    epilog="\b\nExample:\n  playhead demo\n\n`playhead COMMAND --help` explains a command.",
)
@click.version_option(package_name="playhead", message="playhead %(version)s")
@click.pass_context
def commands(context: click.Context) -> int:
    """Flight recorder and time machine for LLM agents: record runs, read them, run them again."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
    return 0


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command line, by default the process's own, and exit."""
    commands.main(arguments)


def _prepare_streams() -> None:
    """Make streams escape what their encoding cannot show, and write whole."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the caller closed it, and wants the exit code only
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open to the end
    if isinstance(sys.stdout, io.TextIOWrapper) and isinstance(sys.stdout.buffer, io.RawIOBase):
        # PYTHONUNBUFFERED: Python drops what the system did not take at once, and so misses a closed pipe.
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(sys.stdout.buffer), sys.stdout.encoding)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _Warnings(logging.Handler):
    """Shows what the library logs: events that were lost, hooks that failed."""

    def emit(self, record: logging.LogRecord) -> None:
        print(f"playhead: {record.levelname.lower()}: {escape(record.getMessage())}", file=sys.stderr)  # noqa: T201
