"""Imported runs in every command that reads a trace, and the command that imports."""

from __future__ import annotations

import gzip
import json
import os
import threading
from pathlib import Path
from typing import Final

import pytest

from playhead import Agent, load_recording
from playhead.errors import NotImportableError, NotReplayableError
from playhead.importing import import_file
from playhead.testing import ScriptedModel
from tests.cli.command_line import objects, playhead
from tests.importing.test_levels import only
from tests.importing.traces import ANSWER, CAPTURED, NAMES, TRACE, Trace, captured, imported, shop

ROOT: Final = Path(__file__).parents[2]
COMMANDS: dict[str, tuple[list[str], str]] = {
    "show": (["latest"], "send_mail"),
    "debrief": (["latest"], "ann@example.com"),
    "stats": (["latest"], "openai/scripted-1"),
    "check": (["latest"], "whole and unchanged"),
    "list": ([], "openai/scripted-1"),
    "backtest": (["latest", "--switch", "max_iterations(2)"], "stopped"),
    "diff": (["latest~1", "latest"], "identical: in answer, tool calls and iterations"),
}


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no line be shortened, whatever the width of the terminal is that the tests run in."""
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two imported runs."""
    imported(captured("langgraph"), tmp_path / "traces")
    imported(captured("pydantic-ai"), tmp_path / "traces")
    return tmp_path / "traces"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_reads_an_imported_run(name: str, folder: Path) -> None:
    """As text and as JSON, like any other run; two frameworks that did the same are the same."""
    arguments, said = COMMANDS[name]
    result = playhead(name, *arguments, "--trace-dir", folder)
    assert (result.exit_code, said in result.stdout) == (0, True), result.output
    assert objects(playhead(name, *arguments, "--trace-dir", folder, "--json"))


def test_what_needs_our_own_loop_is_refused(folder: Path) -> None:
    """One line says why not, and what can be done: not that, but a replay."""
    was = "was imported from otlp-json: another program ran it, so"
    with pytest.raises(NotReplayableError, match=f"{was} only that program can go on with it.*playhead replay"):
        load_recording("latest", folder).resume_sync(Agent(ScriptedModel([])))
    result = playhead("reproduce", "latest", "--trace-dir", folder)
    assert result.exit_code == 3
    assert f"{was} there is nothing that could do again" in " ".join(result.stderr.split())
    assert "playhead replay" in result.stderr


def test_import_says_what_became_of_each_run(tmp_path: Path) -> None:
    """Several files at once; a second time nothing is written."""
    files = [CAPTURED / f"{name}.pb.gz" for name in NAMES]
    result = playhead("import", *files, "--trace-dir", tmp_path)
    assert result.exit_code == 0
    assert result.stdout.count(": imported (") == len(NAMES)
    assert result.stdout.count("replay   full: it can be replayed") == 3
    assert "because  the spans do not show which tools the model was offered" in result.stdout
    again = objects(playhead("import", *files, "--trace-dir", tmp_path, "--json"))
    assert {run["outcome"] for run in again} == {"already-imported"}
    assert again[0]["imported"]["replayability"] == "full"
    assert playhead("show", "latest", "--trace-dir", tmp_path).stdout.count(ANSWER) > 0


SPANS: Final = shop().spans
WHOLE: Final = json.dumps(shop().document)
HALVES: Final = [json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": part}]}]}) for part in (SPANS[:2], SPANS[2:])]
PAGES: Final = [
    json.dumps({"data": SPANS[:2], "next_cursor": "x"}),
    json.dumps({"data": SPANS[2:], "next_cursor": None}),
]
WEB: Final = json.dumps(Trace().add(1, None, "GET /", {"http.request.method": "GET"}).document).replace(TRACE, "a" * 32)
FILES: dict[str, tuple[list[str], int, int, str]] = {
    "a trace in two files": (HALVES, 0, 1, ""),
    "all pages of an API as files": (PAGES, 0, 1, ""),
    "all pages of an API in one file": (["\n".join(PAGES)], 0, 1, ""),
    "a run beside a web server's traces": (
        [f"{WEB}\n{WHOLE}\n"],
        0,
        1,
        "left out: 1 traces in which no span is an agent",
    ),
    "an incomplete line": ([f"{WHOLE}\n{WHOLE[:-20]}\n"], 1, 1, "left out: 1 lines that are not JSON"),
    "a first page": ([json.dumps({"data": SPANS, "next_cursor": "x"})], 1, 1, "left out: 1 pages of the API"),
    "a span without an id": ([WHOLE.replace(f"{1:016x}", "?", 1)], 1, 1, "left out: 1 spans without a valid trace id"),
    "a file that is none": (["hello", WHOLE], 3, 1, "0: it is neither OTLP JSON nor OTLP protobuf"),
    "no ids": ([WHOLE.replace(TRACE, "zz")], 3, 0, "left out: 4 spans without a valid trace id"),
    "a web server's trace": ([WEB], 3, 0, "1 traces in which no span is an agent, a model call or a tool call"),
    "no spans": (['{"resourceSpans": []}'], 3, 0, "it holds no spans"),
}


@pytest.mark.parametrize(("contents", "code", "runs", "said"), FILES.values(), ids=FILES)
def test_import_says_what_it_left_out(contents: list[str], code: int, runs: int, said: str, tmp_path: Path) -> None:
    """What can be read is imported; exit code and words say whether that was all, a part, or nothing."""
    paths = [tmp_path / str(number) for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(content)
    result = playhead("import", *paths, "--trace-dir", tmp_path / "t")
    assert (result.exit_code, result.stdout.count(": imported (")) == (code, runs)
    assert said in " ".join(result.stderr.split())
    if not runs:
        assert (result.stdout, list((tmp_path / "t").iterdir())) == ("", [])
        with pytest.raises(NotImportableError, match="nothing was imported"):
            import_file(paths[0], tmp_path / "t")


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_import_reads_stdin_and_pipes(packed: bool, tmp_path: Path) -> None:
    """What another program writes need not be a file."""
    content = json.dumps(shop().document).encode()
    content = gzip.compress(content) if packed else content
    result = playhead("import", "-", "--trace-dir", tmp_path / "stdin", input=content)
    assert (result.exit_code, result.stdout.count(": imported (4 spans)")) == (0, 1)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    [run] = import_file(pipe, tmp_path / "pipe-runs")
    writer.join()
    assert run.source.spans == 4


def test_an_imported_run_that_is_exported_says_where_it_came_from(tmp_path: Path) -> None:
    """It is a trace of its own, always the same one, with a link to the first and its ids and service in the metadata."""
    trace = shop()
    document = trace.document
    document["resourceSpans"][0]["resource"] = {
        "attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]
    }
    (tmp_path / "spans").write_text(json.dumps(document))
    playhead("import", tmp_path / "spans", "--trace-dir", tmp_path / "t")
    [first, second] = [
        playhead("export", "latest", "--trace-dir", tmp_path / "t", "--format", "otlp-json").stdout for _ in range(2)
    ]
    assert first == second
    spans = json.loads(first)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    [root] = [span for span in spans if not span.get("parentSpanId")]
    [link] = root["links"]
    assert (link["traceId"], link["spanId"]) == (TRACE, f"{1:016x}")
    assert root["traceId"] != TRACE
    metadata = next(each["value"]["stringValue"] for each in root["attributes"] if each["key"] == "metadata")
    assert json.loads(metadata)["playhead"]["imported"] == {"format": "otlp-json", "trace_id": TRACE, "service": "shop"}


def test_import_of_other_spans_says_what_to_do(tmp_path: Path) -> None:
    """A later export of the same trace leaves the recording as it is, and is imported once that is moved away."""
    whole, part = tmp_path / "whole.json", tmp_path / "part.json"
    whole.write_text(json.dumps(shop().document))
    part.write_text(json.dumps(only(0, 1, 2).document))
    assert playhead("import", part, "--trace-dir", tmp_path / "t").exit_code == 0
    path = tmp_path / "t" / f"import-{TRACE}.jsonl"
    before = path.read_bytes()
    result = playhead("import", whole, "--trace-dir", tmp_path / "t")
    assert path.read_bytes() == before
    assert (result.exit_code, f"move {path} away, and import again" in " ".join(result.stdout.split())) == (1, True)
    path.unlink()
    assert playhead("import", whole, "--trace-dir", tmp_path / "t").exit_code == 0


def test_import_without_protobuf_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON needs nothing but Playhead; protobuf says what it needs."""
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.proto.collector.trace.v1.trace_service_pb2", None)
    result = playhead("import", CAPTURED / "langgraph.pb.gz", "--trace-dir", tmp_path)
    assert (result.exit_code, "pip install 'playhead[otel]'" in result.stderr) == (2, True)
    (tmp_path / "spans.json").write_text(json.dumps(shop().document))
    assert playhead("import", tmp_path / "spans.json", "--trace-dir", tmp_path / "t").exit_code == 0
