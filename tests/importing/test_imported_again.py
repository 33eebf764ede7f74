"""A trace that comes a second time: what is recorded of it already is not lost, and what is new is noticed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from playhead.importing.collect.collector import FOLDER, JSON, read_body
from playhead.importing.conventions import KIND
from playhead.trace.store import TraceStore
from tests.importing.collecting import collecting, document
from tests.importing.traces import TRACE, Trace, imported, shop

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.importing.collect.collector import Collector


def sent(made: Collector, *places: int) -> list[Any]:
    """Send these spans of a run, and return what is recorded at once."""
    made.take(read_body(JSON, document(*places)))
    return list(made.record())


LATE = json.dumps(
    {"resourceSpans": [{"scopeSpans": [{"spans": Trace().tool(7, 1, "log", {"m": "x"}, "ok").spans}]}]}
).encode()
"""A span of the same run that was not recorded with the others."""


def test_what_comes_again_after_a_recording_is_nothing_new(tmp_path: Path) -> None:
    """An exporter that sends a recorded run again: nothing is said to be wrong, and nothing is kept for ever."""
    path = tmp_path / f"import-{TRACE}.jsonl"
    with collecting(tmp_path, quiet_s=0) as (made, _):
        sent(made, 0, 1, 2, 3)
        before = path.read_bytes()
        list(made.record(all_of_them=True))  # and forget them
        [again] = sent(made, 0, 1, 2, 3)
        assert (again.run.outcome, again.kept_in) == ("already-imported", ())
        list(made.record(all_of_them=True))
    assert path.read_bytes() == before
    assert sorted(each.name for each in (tmp_path / FOLDER).iterdir()) == ["lock"]


def test_a_part_of_a_run_does_not_replace_it(tmp_path: Path) -> None:
    """Whoever replaces a run by other spans finds the recording before beside the new one."""
    whole, folder = shop().foreign(tmp_path), tmp_path / "runs"
    before = imported(whole, folder)[0].path.read_bytes()
    late = Trace().tool(7, 1, "log", {"m": "x"}, "ok").foreign(tmp_path)
    for spans in (late, [*whole[1:], *late], whole[1:]):
        run = imported(spans, folder)[0]
        assert (run.outcome, run.path.read_bytes() == before, run.kept) == ("differs", True, None)
    replaced = imported(late, folder, replace=True)[0]
    assert (replaced.outcome, replaced.source.spans) == ("replaced", 1)
    assert replaced.kept is not None
    assert replaced.kept.read_bytes() == before
    assert [summary.path for summary in TraceStore(folder).summaries()] == [replaced.path]


def test_spans_that_say_something_else_replace_and_are_kept(tmp_path: Path) -> None:
    """All spans are there and one says something else: it is imported anew when asked, and what it said before is not lost."""
    whole, folder = shop().foreign(tmp_path), tmp_path / "runs"
    before = imported(whole, folder)[0].path.read_bytes()
    other = [*whole[:3], replace(whole[3], attributes={**whole[3].attributes, "llm.model_name": "m-2"})]
    run = imported(other, folder, replace=True)[0]
    assert run.kept is not None
    assert (run.outcome, run.kept.read_bytes() == before) == ("replaced", True)


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
