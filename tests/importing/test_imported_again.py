"""A trace that comes a second time: what is recorded of it already is not lost, and what is new is noticed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from playhead.importing.collect.bodies import JSON, read_body
from playhead.trace.recording import read_recording
from tests.importing.collecting import collecting, document
from tests.importing.formats import KIND
from tests.importing.traces import TRACE, imported, shop

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.importing.collect import Collector


def sent(made: Collector, *places: int) -> list[Any]:
    """Send these spans of a run, and return what is recorded at once."""
    made.take(read_body(JSON, document(*places)))
    return list(made.record())


def test_what_comes_late_twice_does_not_replace_what_was_recorded(tmp_path: Path) -> None:
    """An exporter that sends the root again, and something else after it, leaves a whole recording as it was."""
    path = tmp_path / f"import-{TRACE}.jsonl"
    with collecting(tmp_path, quiet_s=0) as (made, _):
        sent(made, 0, 1, 2, 3)
        before = path.read_bytes()
        list(made.record(all_of_them=True))  # and forget them
        outcomes = [each for place in (0, 3) for each in sent(made, place)]
    assert [each.run.outcome for each in outcomes] == ["differs", "differs"]
    assert path.read_bytes() == before
    assert all(file.exists() for each in outcomes for file in each.kept_in)
    assert len(read_recording(path).root.exchanges) == 2


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
