"""The `playhead` command: its subcommands, each loaded when it is called, and what the exit codes mean.

0 ok    1 a check or a run failed    2 usage    3 unreadable input    4 inconclusive
70 a bug in Playhead    130 interrupted    141 nobody reads the output any more
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import traceback
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from playhead.diagnose.terminal import escape
from playhead.errors import PlayheadError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COMMANDS: Final = {
    "demo": "Record, show, check and reproduce an example; no key, no network.",
    "run": "Run an agent on a task and record it.",
    "list": "List recent runs.",
    "show": "Show a run, event by event.",
    "check": "Verify that a trace is whole and unchanged.",
    "reproduce": "Run a recording again with everything frozen, and compare.",
}
"""In the order in which they are met; the module of the same name holds `command`."""

EXIT_USAGE: Final = 2
EXIT_BUG: Final = 70
EXIT_INTERRUPTED: Final = 130
EXIT_BROKEN_PIPE: Final = 141


class Commands(click.Group):
    """The subcommands. They return their exit code; whatever they raise becomes one line and a code here."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names, in the order in which they are met."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load a command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"playhead.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the nearest one."""
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"there is no command {args[0]!r}.{nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - the exit code
        """Call the command and write out what it printed."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:  # handled before click sees it, who would exit 1: a check that failed
            _drop_output()
            raise click.exceptions.Exit(EXIT_BROKEN_PIPE) from None
        return code

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:  # noqa: ANN401 - click's own
        """Run a command line and exit."""
        _never_fail_to_encode()
        _show_warnings()
        call = super().main
        sys.exit(_exit_code(lambda: call(*args, **{**kwargs, "prog_name": "playhead", "standalone_mode": False})))


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
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


def _exit_code(run: Callable[[], Any]) -> int:
    try:
        return int(run() or 0)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last resort: one line instead of a traceback
        return _fail(*_explain(error))


def _explain(error: BaseException) -> tuple[int, str]:
    match error:
        case click.UsageError(ctx=context):
            where = context.command_path if context else "playhead"
            return EXIT_USAGE, f"{error.format_message()} (see: {where} --help)"
        case click.ClickException():
            return error.exit_code, error.format_message()
        case click.Abort() | KeyboardInterrupt():
            return EXIT_INTERRUPTED, "interrupted"
        case PlayheadError():
            return error.exit_code, str(error)
        case OSError():
            return (
                EXIT_BUG,
                f"the system says: {error.strerror or error}{f': {error.filename}' if error.filename else ''}",
            )
    what = f"{type(error).__name__}: {str(error)[:200]}"
    return EXIT_BUG, f"this is a bug in Playhead ({what}). PLAYHEAD_DEBUG=1 shows where; please report it"


def _fail(code: int, message: str) -> int:
    with contextlib.suppress(BrokenPipeError):
        if os.environ.get("PLAYHEAD_DEBUG") == "1" and code != EXIT_INTERRUPTED:
            print(escape(traceback.format_exc(), keep="\n"), file=sys.stderr)  # noqa: T201 - asked for
        print(f"playhead: {escape(message)}", file=sys.stderr)  # noqa: T201 - what a command line does
    return code


def _never_fail_to_encode() -> None:
    """Let a terminal or pipe that is not UTF-8 show escapes for what it cannot show."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _Warnings(logging.Handler):
    """Shows what the library logs: events that were lost, hooks that failed."""

    def emit(self, record: logging.LogRecord) -> None:
        print(f"playhead: {record.levelname.lower()}: {escape(record.getMessage())}", file=sys.stderr)  # noqa: T201


def _show_warnings() -> None:
    logger = logging.getLogger("playhead")
    if not any(isinstance(handler, _Warnings) for handler in logger.handlers):
        logger.addHandler(_Warnings(logging.WARNING))


def _drop_output() -> None:
    """Send what is still buffered nowhere, so that Python does not complain about the closed pipe when it exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
