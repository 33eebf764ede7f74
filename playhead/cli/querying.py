"""`sql`: one SELECT over tables of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from pydantic_core import to_jsonable_python

from playhead.cli import exits, options
from playhead.cli.output import note, tell_all
from playhead.cli.reading import all_or, open_store, query_of
from playhead.diagnose.document import Document, Section
from playhead.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


@options.command("sql")
@click.argument("query", metavar="SELECT")
@options.runs_argument
@options.filters()
@click.option("--timeout", type=options.duration, default="1s", help="The longest time of the query itself.")
def sql(*, query: str, runs: tuple[str, ...], timeout: float, trace_dir: Path | None, as_json: bool) -> int:
    """Query runs with SQL: the named runs, those that the options choose, or every run of the folder.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), the path of a trace file, or an address that
    fsspec knows, of a file or a folder, such as s3://bucket/traces.

    The tables are runs, calls, requests, decisions and events (`describe calls` lists columns); what is not known is NULL.
    DuckDB runs one SELECT, in memory: it opens no other file and changes nothing. It needs `pip install 'playhead[sql]'`.

    Example:
      playhead sql "select tool, count(*), avg(duration_ms) from calls group by tool"
      playhead sql "select run_id, args->>'amount' from calls where tool = 'send_mail'" --since 1d
      playhead sql "select model, sum(tokens_out) from requests group by model" s3://bucket/traces

    Exit codes:
      0  all is well
      1  a file is damaged, or cannot be read; the tables have what can be
         read of it
      2  the command line is wrong
      3  there is no such run, or its file cannot be read
    """
    from playhead.diagnose.tables import ask

    remote = [each for each in runs if "://" in each]
    if remote and query_of() is not None:
        raise UsageError("options such as --last choose runs of this machine; write a WHERE for those elsewhere")
    local = tuple(each for each in runs if "://" not in each)
    files = [each if ".jsonl" in each else f"{each.rstrip('/')}/*.jsonl*" for each in remote]
    store = open_store(trace_dir)
    files += [] if remote and not local else map(str, all_or(store, local))
    answer = ask(files, query, timeout)
    plain = (to_jsonable_python(dict(zip(answer.columns, row, strict=True)), fallback=str) for row in answer.rows)
    cells = [tuple("" if each is None else str(each) for each in row) for row in answer.rows]
    tell_all(plain, [Document((Section("", table=(tuple(answer.columns), *cells)),))], as_json=as_json)
    for path, problem in answer.unsound.items():
        note(f"{path}: {problem}; `playhead check` says more")
    return exits.FAILED if answer.unsound else exits.OK
