"""Runs as tables for SQL: DuckDB makes them of the files (`tables.sql`), and answers one query.

A process of its own does it: many of DuckDB's functions can neither be interrupted nor kept from taking memory, but a process
can be ended. Once it has read the files, it opens nothing else, and no statement can change that.
"""

from __future__ import annotations

import glob
import multiprocessing
import pickle
import resource
import signal
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from playhead.errors import MissingDependencyError, PlayheadError, TraceError, UsageError
from playhead.trace.format import ANSWERED, FORMAT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

MOST_ROWS: Final = 100_000
MOST_BYTES: Final = 100_000_000
"""The longest answer."""
_MEMORY: Final = 4 << 30
"""Bytes of the process's address space; half of it is for tables."""
_SETTINGS: Final = {"threads": 4, "memory_limit": "2GB", "temp_directory": ""}


class Answer(NamedTuple):
    """What a query returned."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    unsound: dict[str, str]
    """What is wrong with a file, by its path."""


def ask(files: Sequence[str], query: str, timeout_s: float) -> Answer:
    """Return the answer to one SELECT over the runs of these files.

    Args:
        files: paths, or addresses that fsspec knows, such as `s3://bucket/traces/*.jsonl`.
        query: the statement.
        timeout_s: the longest time of the query in seconds, after the files were read.

    Raises:
        UsageError: it is not one SELECT, DuckDB refuses it, or it takes too long or too much memory.
        TraceError: a file cannot be opened, or all of them together are too large.
    """
    if find_spec("duckdb") is None:
        raise MissingDependencyError("playhead sql needs: pip install 'playhead[sql]'")
    for name in [each for each in files if not each.isprintable()]:
        raise UsageError(f"sql cannot read {name!r}: rename the file, or name the runs that you mean")
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, files, query), daemon=True)
    process.start()
    theirs.close()
    try:
        unsound = _received(ours, TraceError)
        if not ours.poll(timeout_s):
            raise UsageError(f"the query took longer than {timeout_s:g} s; --timeout allows more")
        columns, rows = _received(ours, UsageError)
        return Answer(columns, rows, unsound)
    finally:
        process.kill()


def _received(child: Connection, problem: type[PlayheadError]) -> Any:  # noqa: ANN401 - what the child sends
    try:
        found = child.recv()
    except (EOFError, OSError):  # between two answers, or in the middle of one
        found = RuntimeError("its process ended, perhaps out of memory")
    if isinstance(found, Exception):
        text = " ".join(str(found).partition("\n\nLINE")[0].split())
        raise problem(f"{'the query failed' if problem is UsageError else 'the files cannot be read'}: {text[:400]}")
    return found


def _serve(parent: Connection, files: Sequence[str], query: str) -> None:
    """Send the problems of the files, then the columns and rows of the answer; or an error in place of either."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    with suppress(ValueError, OSError):  # a lower limit stays, and macOS has none
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    try:
        connection, unsound = _filled(files)
        parent.send(unsound)
        statements = connection.extract_statements(query)
        if [each.type.name for each in statements] != ["SELECT"]:
            raise UsageError("it must be one SELECT")  # noqa: TRY301 - sent like DuckDB's own
        found = connection.execute(statements[0])
        rows = found.fetchmany(MOST_ROWS + 1)
        if len(rows) > MOST_ROWS or len(pickle.dumps(rows)) > MOST_BYTES:
            raise UsageError(f"it has over {MOST_ROWS:,} rows or {MOST_BYTES:,} bytes; add a LIMIT")  # noqa: TRY301 - the same
        parent.send(([column[0] for column in found.description], rows))
    except Exception as error:  # noqa: BLE001 - DuckDB's own, of many kinds
        parent.send(RuntimeError(str(error)))


def _filled(files: Sequence[str]) -> tuple[Any, dict[str, str]]:
    """Make the tables; return the connection, and what is wrong with a file."""
    import duckdb  # noqa: PLC0415 - an extra

    connection = duckdb.connect(":memory:", config=_SETTINGS)
    for protocol in {each.partition("://")[0] for each in files if "://" in each}:
        import fsspec  # noqa: PLC0415 - an extra

        connection.register_filesystem(fsspec.filesystem(protocol))
    paths = [each if "://" in each else glob.escape(each) for each in files]
    for name, value in {"files": paths, "answered": sorted(ANSWERED), "format": FORMAT.partition(".")[0]}.items():
        connection.execute(f"SET VARIABLE {name} = $value", {"value": value})
    connection.execute(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))
    begun = {path for (path,) in connection.execute("SELECT path FROM runs").fetchall()}
    unsound = {each: "it does not begin with a run" for each in files if "://" not in each and each not in begun}
    changed = connection.execute("SELECT path, lines FROM unsound ORDER BY path").fetchall()
    return connection, unsound | {path: f"{lines:,} lines cannot be read, or were changed" for path, lines in changed}
