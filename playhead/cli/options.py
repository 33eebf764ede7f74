"""What all commands share: `--json`, `--trace-dir`, an example and exit codes in the help, and the way to a run's file."""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Final

import click

from playhead.cli import suggestions

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.trace.store import TraceStore

EXITS: Final = {0: "all is well", 2: "the command line is wrong"}
"""What the exit codes mean, where a command does not say it better."""
UNREADABLE: Final = {3: "there is no such run, or its file cannot be read"}
"""What commands that read a run have besides."""
COMMON: Final = {
    "--json": "Write JSON, one object per line.",
    "--trace-dir": "Folder of the traces.  [default: PLAYHEAD_TRACE_DIR, or ~/.playhead/traces]",
}
"""The options of all commands."""
HELP_WIDTH: Final = 68
"""Cells of such a line."""


class PlayheadCommand(click.Command):
    """A command that knows its example and its exit codes, for its help and for the reference."""

    example: str = ""
    """What one may type."""
    exits: dict[int, str]
    """Exit codes, and what they mean here."""


def command(
    name: str, *, example: str, exits: dict[int, str] | None = None
) -> Callable[[Callable[..., int]], PlayheadCommand]:
    """Make a function that returns an exit code a command, with the options that every command has at the end."""
    codes = dict(sorted({**EXITS, **(exits or {})}.items()))
    listed = "".join(f"\n  {code}  {wrapped(meaning)}" for code, meaning in codes.items())

    def make(function: Callable[..., int]) -> PlayheadCommand:
        epilog = f"\b\nExample:\n  {example}\n\n\b\nExit codes:{listed}"
        text = cleandoc(function.__doc__ or "").replace("\\b\n", "\b\n")  # a docstring holds no control character
        made = click.command(name, cls=PlayheadCommand, help=text, epilog=epilog)(function)
        made.example, made.exits = example, codes
        made.params += [
            click.Option(["--json", "as_json"], is_flag=True, help=COMMON["--json"]),
            click.Option(["--trace-dir"], type=click.Path(path_type=Path), help=COMMON["--trace-dir"]),
        ]
        return made

    return make


def wrapped(meaning: str) -> str:
    """Return what an exit code means in lines that fit below one another in the help."""
    return "\n     ".join(wrap(meaning, HELP_WIDTH))


def run_argument(name: str = "run", **settings: object) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add an argument that is a run, which the shell completes, and the option with which replays are runs."""
    argument = click.argument(name, shell_complete=suggestions.runs, **settings)  # type: ignore[arg-type]
    return lambda function: argument(counts_replays(function))


def counts_replays(function: Callable[..., int]) -> Callable[..., int]:
    """Add the option with which replays count as runs; `open_store` heeds it."""
    if any(each.name == "replays" for each in getattr(function, "__click_params__", ())):
        return function
    return click.option(
        "--replays",
        is_flag=True,
        expose_value=False,
        callback=lambda context, _, value: context.meta.update({suggestions.REPLAYS: value}),
        help="Count replays as runs, for `latest` and where no run is named; an id finds them always.",
    )(function)


def open_store(trace_dir: Path | None) -> TraceStore:
    """Return the folder of traces that the option, the environment or the settings name."""
    from playhead.trace.store import TraceStore  # noqa: PLC0415 - `--help` needs no store

    context = click.get_current_context(silent=True)
    replays = context is not None and context.meta.get(suggestions.REPLAYS, False)
    return TraceStore((trace_dir or _default_trace_dir()).expanduser(), replays=replays)


def _default_trace_dir() -> Path:
    from playhead.settings import load_settings  # noqa: PLC0415 - costs 70 ms, and only without --trace-dir

    return load_settings().trace_dir
