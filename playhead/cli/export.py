"""`playhead export`: the spans of recorded runs, to a collector or into a file."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from playhead.cli import options
from playhead.errors import TraceNotFoundError, UsageError

if TYPE_CHECKING:
    from playhead.spans import SpanOptions
    from playhead.spans.destination import Destination
    from playhead.trace.store import TraceStore

FORMATS: Final = ("otlp-json", "openinference-jsonl")
LONGEST: Final = 80
"""Characters of a value that are said again in an error."""
_MOMENT: Final = re.compile(r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})(?:[T ]+([0-9]{1,2})[:.]([0-9]{2}))?")
NOWHERE: Final = (
    "there is nowhere to export to: name a collector with --to http://localhost:4318 or in OTEL_EXPORTER_OTLP_ENDPOINT, "
    "or write a file with --format otlp-json -o spans.json"
)


@options.command(
    "export",
    example=(
        "playhead export latest --to http://localhost:4318\n"
        "  playhead export --since 2h --resume\n"
        "  playhead export latest --format openinference-jsonl -o spans.jsonl"
    ),
    exits={
        0: "everything was delivered, or had been before",
        1: "spans were refused, could not be delivered or wait, or a file is damaged",
        **options.UNREADABLE,
    },
)
@options.run_argument("runs", metavar="[RUN]...", nargs=-1)
@click.option("--to", metavar="URL", help="The collector.  [default: OTEL_EXPORTER_OTLP_ENDPOINT]")
@click.option(
    "--header",
    "headers",
    metavar="NAME=VALUE",
    multiple=True,
    help="Send this header; NAME=env:VARIABLE takes it from the environment. Repeatable.",
)
@click.option("--format", "form", type=click.Choice(FORMATS), help="Write spans as text, instead of sending them.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file for --format.  [default: stdout]")
@click.option("--since", metavar="WHEN", help="All runs that began since: `2h` ago, or 2026-11-22T09:00.")
@click.option("--resume", is_flag=True, help="Leave out what this collector has acknowledged.")
@click.option("--follow", is_flag=True, help="Go on until runs that still go on have ended.")
@click.option("--assume-dead", is_flag=True, help="Runs of other machines whose lock is free have ended.")
@click.option(
    "--retry-for",
    metavar="TIME",
    default="30s",
    show_default=True,
    help="How long to try when nobody takes anything; no request lasts longer.",
)
@click.option("--no-content", is_flag=True, help="Leave out prompts, answers, arguments, results, tags and metadata.")
@click.option("--all-messages", is_flag=True, help="Show every message of each prompt, not only the newest.")
@click.option("--gen-ai", is_flag=True, help="Add OpenTelemetry's own gen_ai attributes.")
def command(  # noqa: PLR0913 - the options
    *,
    runs: tuple[str, ...],
    to: str | None,
    headers: tuple[str, ...],
    form: str | None,
    output: Path | None,
    since: str | None,
    resume: bool,
    follow: bool,
    assume_dead: bool,
    retry_for: str,
    no_content: bool,
    all_messages: bool,
    gen_ai: bool,
    trace_dir: Path | None,
    as_json: bool,
) -> int:
    """Send the spans of recorded runs to an OpenTelemetry collector, or write them into a file.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    The spans follow from the trace: sent twice, they are the same spans under the same ids. What a collector has
    acknowledged is kept beside the traces, also by live export, so that --resume sends exactly what is missing, whatever
    happened to the process or the collector. Spans that a dead run has left open are sent as interrupted. A run of another
    machine (or of a container that has another name now) is dead when nobody holds its lock and its trace was silent for
    10 minutes, or with --assume-dead; until then its open spans wait, and the exit code says so.

    The collector, headers, timeout and compression are as the standard OTEL_EXPORTER_OTLP_… variables say.
    """
    _check(form, output, sends=to is not None or resume or bool(headers))
    patience_s = _seconds(retry_for, "--retry-for")
    destination = None if form is not None else _destination(to, headers)
    paths = _chosen(options.open_store(trace_dir), runs, since)
    from playhead.spans.destination import require_opentelemetry  # noqa: PLC0415 - `--help` needs none of it

    require_opentelemetry()
    from playhead.cli.exporting import Order, Told, export  # noqa: PLC0415 - costs 0.3 s

    shown = _shown(no_content=no_content, all_messages=all_messages, gen_ai=gen_ai)
    told = Told(form, output, as_json=as_json)
    with told.sink(destination, paths) as sink:
        return export(Order(paths, destination, shown, resume, follow, patience_s, assume_dead), sink, told)


def _check(form: str | None, output: Path | None, *, sends: bool) -> None:
    """Refuse options that do not go together."""
    if form is None and output is not None:
        raise UsageError(f"-o needs --format, one of {', '.join(FORMATS)}")
    if form is not None and sends:
        raise UsageError("--format writes text; --to, --header and --resume are for sending it")


def _destination(to: str | None, headers: tuple[str, ...]) -> Destination:
    from playhead.spans.destination import from_environment, named  # noqa: PLC0415 - `--help` needs none of it

    given = dict(map(_header, headers))
    if to is not None:
        return named(to, given, argument="--to")
    found = from_environment()
    if found is None:
        raise UsageError(NOWHERE)
    return found.with_headers(given)


def _header(text: str) -> tuple[str, str]:
    """Return the name and the value of a header; an error shows neither."""
    name, is_there, value = text.partition("=")
    if not is_there or not name:
        raise UsageError("--header is like NAME=VALUE or NAME=env:VARIABLE")
    if value.startswith("env:"):
        found = os.environ.get(value.removeprefix("env:"))
        if found is None:
            raise UsageError("--header names a variable of the environment that is not set")
        value = found
    return name, value


def _chosen(store: TraceStore, runs: tuple[str, ...], since: str | None) -> list[Path]:
    """Return the traces to export, each once, the oldest first when they are chosen by their time."""
    if bool(runs) == (since is not None):
        raise UsageError("name runs, or choose them with --since" + (", not both" if runs else ""))
    if since is None:
        return list(dict.fromkeys(store.resolve(reference) for reference in runs))
    begin_us = _moment_us(since)
    newer = [path for path in store.paths() if _began_us(path) >= begin_us]
    if not newer:
        raise TraceNotFoundError(f"no run in {store.folder} began since then")
    return newer[::-1]


def _began_us(path: Path) -> int:
    """Return when a run began; of a file that does not say, when it was last written, so that it is named, not left out."""
    from playhead.trace.store import summarise  # noqa: PLC0415 - for --since

    started_us = summarise(path).started_us
    try:
        return started_us if started_us is not None else path.stat().st_mtime_ns // 1000
    except OSError:  # it is gone by now
        return 0


def _seconds(text: str, option: str) -> float:
    """Return the seconds of a length of time."""
    from playhead.compose.durations import seconds  # noqa: PLC0415 - `--help` needs none of it

    return seconds(text, option)


def _moment_us(text: str) -> int:
    """Return the microseconds since the Unix epoch that a moment or a time ago is."""
    from playhead.compose.durations import seconds  # noqa: PLC0415 - for --since

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        with suppress(UsageError):
            return int((time.time() - seconds(text, "--since")) * 1e6)
        guess = _moment_meant(text)
        raise UsageError(
            f"--since is a time ago, such as 30m or 1d12h, or a moment, such as 2026-11-22T09:00; it is {_short(text)}.{guess}"
        ) from None
    return int(moment.astimezone(UTC).timestamp() * 1e6)  # without a zone it is local time


def _moment_meant(text: str) -> str:
    """Return what was meant by a moment that is written with single digits, slashes or dots, when that can be told."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return ""
    year, month, day, hour, minute = (int(part or 0) for part in found.groups())
    try:
        moment = datetime(year, month, day, hour, minute)  # noqa: DTZ001 - local time, as it was meant
    except ValueError:
        return ""
    return f" Did you mean {moment:%Y-%m-%dT%H:%M}?" if found[4] else f" Did you mean {moment:%Y-%m-%d}?"


def _short(text: str) -> str:
    return repr(text) if len(text) <= LONGEST else f"{text[:LONGEST]!r}…"


def _shown(*, no_content: bool, all_messages: bool, gen_ai: bool) -> SpanOptions:
    from playhead.spans import SpanOptions  # noqa: PLC0415 - needs the extra

    plain = SpanOptions(content=not no_content, gen_ai=gen_ai)
    return SpanOptions(content=not no_content, gen_ai=gen_ai, max_messages=None) if all_messages else plain
