"""What all commands share: `--json`, `--trace-dir`, an example in the help, and the way from a reference to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.trace.store import TraceStore

RUN_HELP = "RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file."


def command(name: str, *, example: str) -> Callable[[Callable[..., int]], click.Command]:
    """Make a function that returns an exit code a command, with the options that every command has at the end."""

    def make(function: Callable[..., int]) -> click.Command:
        made = click.command(name, epilog=f"\b\nExample:\n  {example}")(function)
        made.params += [
            click.Option(["--json", "as_json"], is_flag=True, help="Write JSON, one object per line."),
            click.Option(
                ["--trace-dir"],
                type=click.Path(path_type=Path),
                help="Folder of the traces.  [default: PLAYHEAD_TRACE_DIR, or ~/.playhead/traces]",
            ),
        ]
        return made

    return make


def open_store(trace_dir: Path | None) -> TraceStore:
    """Return the folder of traces that the option, the environment or the settings name."""
    from playhead.trace.store import TraceStore  # noqa: PLC0415 - `--help` needs no store

    return TraceStore((trace_dir or _default_trace_dir()).expanduser())


def _default_trace_dir() -> Path:
    from playhead.settings import load_settings  # noqa: PLC0415 - costs 70 ms, and only without --trace-dir

    return load_settings().trace_dir
