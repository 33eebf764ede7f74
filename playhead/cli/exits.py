"""Exit codes, and one safe line on stderr for each error.

0 ok    1 a check or a run failed    2 usage    3 unreadable input    4 inconclusive
70 a bug in Playhead, or a failure of the system    130 interrupted    141 closed pipe    143 terminated

Only a signal ends `collect`: the first one stops it gracefully (0), the second one acts as for every other command.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from playhead.cli.output import safe
from playhead.errors import NotATraceError, PlayheadError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
UNREADABLE: Final = 3
INCONCLUSIVE: Final = 4
BUG: Final = 70
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
TERMINATED: Final = 143
NO_RUN: Final = ". `playhead list` shows what the folder holds; `latest~1` is the one before the newest"


class Terminated(KeyboardInterrupt):
    """The process got SIGTERM."""


def exit_code(run: Callable[[], Any]) -> int:
    """Run a command line and return its exit code. Errors are never shown as tracebacks."""
    try:
        return int(run() or OK)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last resort
        code, message = _explain(error)
        with contextlib.suppress(OSError):
            if os.environ.get("PLAYHEAD_DEBUG") == "1":
                print(safe(traceback.format_exc(), keep="\n"), file=sys.stderr)  # noqa: T201 - asked for
            print(f"playhead: {safe(message)}", file=sys.stderr)  # noqa: T201 - what a command line does
        return code


def drop_output() -> None:
    """Discard buffered output, so that Python does not report an error at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def handling(handler: Callable[[int, FrameType | None], None], *signals: int) -> Iterator[None]:
    """Let a function handle signals."""
    before = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def terminate(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - a signal handler
    """Handle SIGTERM like Ctrl-C: the run is cancelled gracefully, and its trace gets an end."""
    raise Terminated


def _explain(error: BaseException) -> tuple[int, str]:  # noqa: PLR0911 - a table
    match error:
        case click.UsageError(ctx=context):
            where = context.command_path if context else "playhead"
            return USAGE, f"{error.format_message()} (see: {where} --help)"
        case click.ClickException():
            return USAGE if isinstance(error, click.FileError) else error.exit_code, error.format_message()
        case Terminated() | click.Abort(__cause__=Terminated()):
            return TERMINATED, "terminated"
        case KeyboardInterrupt() | click.Abort():
            return INTERRUPTED, "interrupted"
        case PlayheadError():
            return error.exit_code, f"{error}{NO_RUN if isinstance(error, NotATraceError) else ''}"
        case OSError():
            drop_output()  # a full disk stays full
            where = f": {error.filename}" if error.filename else ""
            return BUG, f"the system says: {error.strerror or error}{where}"
    what = f"{type(error).__name__}: {str(error)[:200]}"
    return BUG, f"this is a bug in Playhead ({what}). PLAYHEAD_DEBUG=1 shows where; please report it"
