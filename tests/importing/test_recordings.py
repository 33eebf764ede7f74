"""The recordings of imported traces: one file for each trace, written whole, and never replaced unless asked."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from playhead.diagnose.integrity import check_trace
from playhead.importing import import_spans
from playhead.importing.conventions import KIND
from tests.importing.traces import brought, imported, shop

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
