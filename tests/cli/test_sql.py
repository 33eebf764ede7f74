"""`playhead sql`: one SELECT over tables of runs, which opens nothing else and ends in time."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from playhead.diagnose.run_summary import summarise
from playhead.trace.events import LlmRequested, LlmResponded, ToolCallCompleted, ToolCallStarted
from playhead.trace.line import Record
from playhead.trace.reader import scan
from tests.cli.command_line import objects, playhead
from tests.docs.pages import ROOT
from tests.proving import bound, sample

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("duckdb")
pytestmark = pytest.mark.slow
TRACES = ROOT / "traces"
HOSTILE = [
    "select list_sort(range(100000000))",  # DuckDB does not interrupt this one
    "select * from '/etc/passwd'",
    "select 1; copy calls to 'owned'",
    "select repeat('a', 10000000000)",
    "select * from read_text('/etc/passwd')",
    "select * from read_csv('/etc/passwd')",
    "select * from read_json('/etc/passwd')",
    "select * from range(1000000000)",
    "select * from read_blob('/etc/*')",
    "select * from read_parquet('s3://bucket/x')",
    "select * from read_csv('https://localhost/x')",
    "set enable_external_access=true",
    "select * from glob('/etc/*')",
    "select * from sniff_csv('/etc/passwd')",
    "select * from query('copy calls to ''owned''')",
    "install httpfs",
    "select getenv('HOME')",
    "select * from files",  # a Python variable
    "copy calls to 'owned'",
    "attach 'owned.db'",
    "copy (select 1) to 'owned.csv'",
    "export database 'owned'",
    "load httpfs",
    "drop table events",
    "reset lock_configuration",
    "pragma enable_external_access",
    "delete from events",
    "with recursive r as (select 1 x union all select x from r) select count(*) from r",
    "insert into events (seq) values (1)",
    "create table t as select 1",
    "create macro f() as 1",
    "select list(a) from range(1000000000000) t(a)",
    "select 1; select 2",
    "call pragma_version()",
    "explain select 1",
    "select nothing from calls",
    "selct 1",
    "",
    "select regexp_matches(repeat('a', 100000), '(a{1000}){1000}')",
    "select count(*) from range(1000000000000) a",
    "select levenshtein(repeat('a', 400000), repeat('b', 400000))",
    "select format('{:1000000000d}', 1)",
    "select repeat('a', 1000000000) from range(3)",
    "select factorial(1000000)",
    f"select {'(' * 5000}1{')' * 5000}",
]


@pytest.mark.parametrize("query", sample(HOSTILE, HOSTILE[::4]), ids=range(len(sample(HOSTILE, HOSTILE[::4]))))
def test_what_reads_writes_or_never_ends_is_refused(
    query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is read, written or printed, and one sentence says why; under `make prove` within two seconds."""
    (empty := tmp_path / "empty").mkdir()
    monkeypatch.chdir(empty)
    started = time.monotonic()
    result = playhead("sql", query, str(TRACES / "direct.jsonl"), *sample([], ["--timeout", "0.2s"]))
    assert time.monotonic() - started < bound(2)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("playhead: the query ")
    assert list(empty.iterdir()) == []


def rows(query: str, *arguments: str | Path) -> list[dict[str, Any]]:
    """Return the answer to a query."""
    result = playhead("sql", query, "--json", "--trace-dir", TRACES, *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return objects(result)


def test_the_tables_are_what_the_traces_say() -> None:
    """Each run, call and request of the sample recordings has its row, with its outcome."""
    paths = sorted(TRACES.glob("*.jsonl"))
    events = [(path.stem, each) for path in paths for each in scan(path) if isinstance(each, Record)]
    said = [summarise(path).as_json() for path in paths]
    names = ("run_id", "ending", "terminated_by", "agent", "model", "task", "output", "duration_ms", "cost_usd")
    found = rows("select * from runs order by run_id")
    assert [[row[name] for name in names] for row in found] == [[run[name] for name in names] for run in said]
    tokens = rows("select tokens_in + tokens_out as all from runs order by run_id")
    assert [each["all"] for each in tokens] == [run["total_tokens"] for run in said]
    ended = {
        (run, each.owner, each.event.call_id): each.event.ok
        for run, each in events
        if isinstance(each.event, ToolCallCompleted)
    }
    assert rows("select run_id, seq, tool, ok from calls order by run_id, seq") == [
        {
            "run_id": run,
            "seq": each.seq,
            "tool": each.event.tool,
            "ok": ended.get((run, each.owner, each.event.call_id)),
        }
        for run, each in events
        if isinstance(each.event, ToolCallStarted)
    ]
    assert rows("select count(*) as asked, sum(tokens_out)::int as tokens from requests")[0] == {
        "asked": sum(isinstance(each.event, LlmRequested) for _, each in events),
        "tokens": sum(each.event.usage.output_tokens for _, each in events if isinstance(each.event, LlmResponded)),
    }
    reasons = rows("select why from decisions where tool = 'calculator' and confidence > 0.5")
    assert reasons == [{"why": "I need the height in meters"}]


def test_runs_are_chosen_as_everywhere(tmp_path: Path) -> None:
    """By name, by conditions, by an address that fsspec knows, whose runs no condition chooses; text is a table."""
    query = "select distinct run_id, args->>'nights' as nights from calls where tool = 'book_room'"
    (tmp_path / "failed-call.jsonl").write_bytes((TRACES / "failed-call.jsonl").read_bytes())
    booked = [{"run_id": "failed-call", "nights": "2"}]
    assert rows(query, "failed-call") == rows(query, "--tool", "book_room", "--trace-dir", tmp_path) == booked
    assert rows(query, f"local://{TRACES}/failed-call.jsonl") == rows(query, f"local://{TRACES}") == booked
    assert playhead("sql", query, f"local://{TRACES}", "--last", "1").exit_code == 2
    assert playhead("sql", query, f"local://{tmp_path}/none").exit_code == 3
    assert "no runs in" in playhead("sql", query, "--trace-dir", tmp_path / "none").stderr
    shown = playhead("sql", "select 1 as one, null as two", "direct", "--trace-dir", TRACES).stdout.split()
    assert shown == ["one", "two", "1"]


def test_what_cannot_be_read_or_was_changed_is_said(tmp_path: Path) -> None:
    """The tables have what can be read; a file with any changed, torn or missing line, or without a run, is named: exit 1."""
    whole = (TRACES / "direct.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    files = {
        "changed": whole.replace(b"Mount Zed", b"Mount Zee", 1),
        "torn": whole[:-20],
        "missing": b"".join(lines[:5] + lines[6:]),
        "newer": whole.replace(b'"format":"2.0"', b'"format":"3.0"', 1),
        "nonsense": b"nonsense\n",
        "empty": b"",
        "so[un]d": whole,
        "unfinished": b"".join(lines[:-1]),
    }
    for name, content in files.items():
        (tmp_path / f"{name}.jsonl").write_bytes(content)
    result = playhead("sql", "select run_id from runs where ending <> 'open'", "--json", "--trace-dir", tmp_path)
    assert result.exit_code == 1
    assert sorted(row["run_id"] for row in objects(result)) == ["changed", "missing", "newer", "so[un]d"]
    named = sorted(re.findall(r"(\S+)\.jsonl: ", result.stderr))
    assert [name.rpartition("/")[2] for name in named] == ["changed", "empty", "missing", "newer", "nonsense", "torn"]
    (tmp_path / os.fsdecode(b"n\xff.jsonl")).write_bytes(whole)
    refused = playhead("sql", "select 1", "--trace-dir", tmp_path)
    assert (refused.exit_code, "udcff.jsonl': rename the file" in refused.stderr) == (2, True)


def test_the_page_lists_the_columns_and_its_queries_run() -> None:
    """docs/guides/sql.md has each table's columns in their order, but for those of the place, which it names once."""
    page = (ROOT / "docs/guides/sql.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", page, re.MULTILINE)
    columns_of = "select table_name, list(column_name order by column_index) as names from duckdb_columns() group by 1"
    tables = {row["table_name"]: row["names"] for row in rows(columns_of, "direct")}
    for table, columns in listed:
        known = tables[table]
        place = [] if table in ("runs", "events") else known[:4]
        assert [*place, *re.findall(r"`(\w+)`", columns)] == known, table
    assert [table for table, _ in listed] == ["runs", "calls", "requests", "decisions", "events"]
    for query in re.findall(r'^\$ playhead sql "(.*?)"', page, re.MULTILINE):
        rows(query, "direct")


@pytest.mark.stores
def test_a_store_of_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder and a file of a bucket are read over S3's protocol, from a server on this machine; the query opens neither."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        port = server.get_host_and_port()[1]
        names = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION")
        for name, value in zip(names, (f"http://127.0.0.1:{port}", "x", "y", "us-east-1"), strict=True):
            monkeypatch.setenv(name, value)
        bucket = boto3.client("s3")
        bucket.create_bucket(Bucket="runs")
        for path in TRACES.glob("*.jsonl"):
            bucket.upload_file(os.fspath(path), "runs", f"traces/{path.name}")
        query = "select run_id, tool, args, result from calls order by all"
        assert rows(query, "s3://runs/traces") == rows(query)
        assert rows(query, "s3://runs/traces/direct.jsonl") == rows(query, "direct")
        stolen = playhead("sql", "select * from read_text('s3://runs/traces/*')", "s3://runs/traces")
        assert (stolen.exit_code, "file system operations are disabled" in stolen.stderr) == (2, True)
        assert playhead("sql", query, "s3://nosuch/traces").exit_code == 3
    finally:
        server.stop()
