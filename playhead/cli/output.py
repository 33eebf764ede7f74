"""Output: text for people through rich, JSON Lines for programs. Both are safe for a terminal."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose.terminal import escape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console, RenderableType

PIPE_WIDTH: Final = 1000
"""Cells of a line that goes to no terminal: as good as whole; `--json` is whole."""

PROSE_WIDTH: Final = 80
"""Cells of what is wrapped anyway and goes to no terminal."""

LEAST_WIDTH: Final = 40
"""Cells; on less, or when COLUMNS says nonsense, lines wrap rather than vanish."""


def text_console(*, stderr: bool = False, pipe_width: int = PIPE_WIDTH) -> Console:
    """Return a console that colours only on a terminal, not under NO_COLOR, and takes nothing for markup."""
    from rich.console import Console  # `--help` prints nothing with it

    class PipeConsole(Console):
        """A console that lets the command line deal with a closed pipe; rich would exit 1."""

        def on_broken_pipe(self) -> None:
            """Pass it on."""
            raise BrokenPipeError

    plain = bool(os.environ.get("NO_COLOR"))
    console = PipeConsole(
        stderr=stderr,
        color_system=None if plain else "auto",  # bold and dim are escape sequences too: plain means none
        no_color=plain or None,
        markup=False,
        emoji=False,
        highlight=False,
    )
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        console.width = pipe_width
    console.width = max(console.width, LEAST_WIDTH)
    return console


def tell(found: Any, *shown: RenderableType, as_json: bool, width: int = PIPE_WIDTH) -> None:  # noqa: ANN401 - JSON
    """Write a result to stdout, as JSON or as text."""
    tell_all([found], shown, as_json=as_json, width=width)


def tell_all(found: Iterable[Any], shown: Iterable[RenderableType], *, as_json: bool, width: int = PIPE_WIDTH) -> None:
    """Write results to stdout: one JSON object a line, or text. Only the form that is written is computed."""
    if as_json:
        write_json(found)
    elif lines := list(shown):
        text_console(pipe_width=width).print(*lines, crop=False)


def note(text: str) -> None:
    """Write one safe line to stderr."""
    print(safe(text), file=sys.stderr)  # noqa: T201 - what a command line does


def safe(text: str, keep: str = "") -> str:
    """Return foreign text for the terminal: without credentials, and with its control characters escaped but for `keep`."""
    from playhead.trace.redaction import without_credentials

    return escape(without_credentials(text), keep)


def write_json(objects: Iterable[Any]) -> None:
    """Write objects to stdout, one line each, as they come.

    All but ASCII is escaped: so nothing in a trace can steer a terminal, and no encoding of a pipe can break the JSON.
    """
    for each in objects:
        print(_dumps(each))  # noqa: T201 - what a command line does


def _dumps(value: Any) -> str:  # noqa: ANN401 - JSON
    try:
        text = json.dumps(value, allow_nan=False)
    except ValueError:  # not-a-number in a file that was not written by us
        from playhead.trace.values import to_json

        text = json.dumps(to_json(value))
    return text.replace("\x7f", "\\u007f")  # the one control character that JSON leaves as it is
