"""The recordings of imported traces: one file for each trace, written whole, and never replaced unless asked."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from playhead.importing import import_spans
from playhead.importing.collect.collector import FOLDER, JSON, Collector
from playhead.importing.conventions import KIND
from playhead.trace.integrity import check_trace
from tests.importing.collecting import document, recorded, take
from tests.importing.traces import TRACE, Trace, brought, imported, shop

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("provider", "base_url", "model", "address"),
    [
        ("openai", "https://api.openai.com/v1/", "openai/m-1", None),
        ("openai", "http://ann:secret@localhost:8000/v1/?key=x", "openai/m-1", "http://localhost:8000/v1"),
        ("azure.openai", None, "azure/m-1", None),
        ("openai", "nonsense://[", "openai/m-1", None),
        (None, None, "imported/m-1", None),
    ],
)
def test_where_the_model_was(
    provider: str | None, base_url: str | None, model: str, address: str | None, tmp_path: Path
) -> None:
    """The provider by litellm's name, its address without credentials, and only when it is not the usual one."""
    first = {"llm.provider": provider or "", "llm.invocation_parameters": json.dumps({"base_url": base_url})}
    _, recording = brought(shop(first=first), tmp_path)
    assert (recording.header.agent.model, recording.header.agent.address) == (model, address)


def test_two_that_import_the_same_at_once_make_one_recording(tmp_path: Path) -> None:
    """Whoever comes second finds it there, whatever the order of their steps."""
    spans = shop().foreign(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda _: imported(spans, tmp_path / "runs")[0].outcome, range(8)))
    assert sorted(outcomes) == ["already-imported"] * 7 + ["imported"]
    assert [path.suffix for path in (tmp_path / "runs").iterdir()] == [".jsonl"]


def test_a_large_result_is_whole(tmp_path: Path) -> None:
    """What does not fit into a line is in a blob."""
    result = "r" * 400_000 + "."
    run, recording = brought(shop(result=result), tmp_path)
    [made] = recording.root.calls.values()
    assert made.completed is not None
    assert (made.completed.result, check_trace(run.path).verdict) == (result, "ok")


def test_another_run_of_that_name_is_left_alone(tmp_path: Path) -> None:
    """A recording that was not imported is not replaced."""
    spans = shop().foreign(tmp_path)
    path = tmp_path / "runs" / f"import-{spans[0].trace_id}.jsonl"
    path.parent.mkdir()
    path.write_text("somebody's notes")
    [run] = import_spans(spans, path.parent, format_name="otlp-json")
    assert (run.outcome, path.read_text()) == ("differs", "somebody's notes")


def test_what_comes_again_after_a_recording_is_nothing_new(tmp_path: Path) -> None:
    """An exporter that sends a recorded run again: nothing is said to be wrong, and nothing is kept for ever."""
    path, written = tmp_path / f"import-{TRACE}.jsonl", []
    with closing(Collector(tmp_path, quiet_s=0)) as made:
        for outcome in ("imported", "already-imported"):
            take(made, document(), JSON)
            [collected] = recorded(made)
            assert (collected.run.outcome, collected.kept_in) == (outcome, ())
            written.append(path.read_bytes())
    assert written[0] == written[1]
    assert sorted(each.name for each in (tmp_path / FOLDER).iterdir()) == ["lock"]


def test_other_spans_of_a_trace_leave_its_recording_as_it_is(tmp_path: Path) -> None:
    """Fewer, more or others: the recording stays, and whoever wants the new one moves it away."""
    whole, folder = shop().foreign(tmp_path), tmp_path / "runs"
    path = imported(whole, folder)[0].path
    before = path.read_bytes()
    late = Trace().tool(7, 1, "log", {"m": "x"}, "ok").foreign(tmp_path)
    for spans in (late, [*whole[1:], *late], whole[1:]):
        run = imported(spans, folder)[0]
        assert (run.outcome, run.path, path.read_bytes()) == ("differs", path, before)
    path.rename(path.with_suffix(".old"))
    assert (imported(late, folder)[0].outcome, imported(late, folder)[0].source.spans) == ("imported", 1)


def test_spans_that_say_something_else_are_not_the_same(tmp_path: Path) -> None:
    """A trace that was exported with its content hidden, and now with it, is not called the same."""
    whole = shop().foreign(tmp_path)
    hidden = [
        replace(span, attributes={**dict.fromkeys(span.attributes, "__REDACTED__"), KIND: span.attributes[KIND]})
        for span in whole
    ]
    folder = tmp_path / "runs"
    assert imported(hidden, folder)[0].outcome == "imported"
    assert imported(hidden, folder)[0].outcome == "already-imported"
    assert imported(whole, folder)[0].outcome == "differs"
