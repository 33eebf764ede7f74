"""What live export says of spans that did not arrive as they are: all of it, and no more than is known."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from playhead import Agent, tool
from playhead.spans import live, live_export, pump
from playhead.spans.delivery import Delivered
from playhead.spans.notices import in_words
from playhead.spans.pump import MAX_REMARKS, Totals
from playhead.spans.run_export import Refused
from playhead.testing import ScriptedModel, call, text
from tests.cli.command_line import playhead
from tests.spans.collector import Collector, Received, Reply, rejecting
from tests.spans.spans import agent, record_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

DEAD = "http://127.0.0.1:9"


def test_spans_that_went_without_their_content_are_said(
    tmp_path: Path, collect: Callable[..., Collector], caplog: pytest.LogCaptureFixture
) -> None:
    """A backend that takes no large spans does not make them smaller without a word."""

    @tool(read_only=True)
    def read() -> str:
        """Read a long text."""
        return "x" * 20_000

    handle = live_export(collect(most_bytes=10_000).address)
    model = ScriptedModel([call("read"), text("done")])
    result = Agent(model, tools=[read], trace=tmp_path).run_sync("go")
    assert handle.flush(5)
    (said,) = caplog.messages
    start = f"run {result.run_id}: 2 spans were too large for {handle.name}, and sent without content: tool:read "
    assert said.startswith(start)
    assert ", llm:scripted/model " in said


def test_refusals_are_put_into_words() -> None:
    """Those for one reason in one line; of an unknown part of several spans, all that may be meant."""
    refusals = [
        Refused(1, "bad", ("a 1",)),
        Refused(1, "too old", ("b 2", "c 3", "d 4"), among=3),
        Refused(1, "bad", ("e 5",)),
        Refused(9, "worse", ("f 6",)),
    ]
    assert in_words(refusals) == [
        "1 of 3 spans, not saying which of them: too old (b 2, c 3, d 4)",
        "2 spans: bad (a 1, e 5)",
        "9 spans: worse (f 6, …)",
    ]


def test_every_lost_span_of_a_run_without_a_trace_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Those that wait for a request, those whose events still wait to be read, and those that are open."""
    handle = live_export(DEAD)

    @tool
    def wait() -> str:
        """Wait until the first spans could not be delivered."""
        late_at = time.monotonic() + 5
        while handle._pump is None or handle._pump.stopped is None:
            assert time.monotonic() < late_at
            time.sleep(0.005)
        return "over"

    model = ScriptedModel([call("wait"), call("wait"), text("done")])
    result = Agent(model, tools=[wait], trace=None).run_sync("go")
    handle.shutdown(1.0)
    (said,) = caplog.messages
    assert said == (
        f"6 spans of run {result.run_id} could not be delivered to {DEAD}/v1/traces (connection refused); "
        "they are lost, for nothing was recorded in a file"
    )


def test_a_batch_of_several_runs_blames_each_for_no_more_than_it_knows(
    tmp_path: Path, collect: Callable[..., Collector]
) -> None:
    """Where a rejected span may be another run's, that is said."""
    from playhead.spans import SpanBuilder
    from playhead.spans.delivery import Otlp
    from playhead.spans.destination import named
    from playhead.spans.pump import Pump
    from playhead.spans.run_export import RunExport
    from playhead.spans.sources import TraceSource

    pump = Pump(Otlp(named(collect(rejecting(1, "too old")).address)))
    runs = [
        RunExport(path.stem, path, lambda path=path: TraceSource(path), SpanBuilder)  # type: ignore[misc]
        for path in (record_run(tmp_path, "a", 0), record_run(tmp_path, "b", 0))
    ]
    pump.runs.extend(runs)
    assert pump.step() == "sent"
    said = [in_words(run.refusals)[0].partition(" (")[0] for run in runs]
    assert said == ["1 of 2 spans, not saying which of them: too old; or spans of another run are meant"] * 2
    for run in runs:
        run.close()
    pump.sink.close()


def test_a_refused_span_is_not_its_batch(tmp_path: Path, collect: Callable[..., Collector]) -> None:
    """The run's other spans arrive, and its cursor says which one did not."""
    collector = collect(rule=_no_tools)
    handle = live_export(collector.address)
    agent(tmp_path, 1).run_sync("Find it.")
    assert handle.flush(5)
    assert {each.name.partition(":")[0] for each in collector.taken} == {"llm", "agent"}


def _no_tools(received: Received) -> Reply:
    return Reply(400 if any(span.name.startswith("tool:") for span in received.spans) else 200)


def test_a_warning_of_a_collector_that_takes_everything_is_passed_on_once(
    tmp_path: Path, collect: Callable[..., Collector], caplog: pytest.LogCaptureFixture
) -> None:
    """A partial success that rejects nothing says something all the same; each text once, as one plain line."""
    collector = collect(rejecting(0, "kept for \x1b[1m1 hour\nonly"), usual=rejecting(0, "cut"))
    handle = live_export(collector.address)
    for _ in range(3):
        agent(tmp_path).run_sync("Find it.")
        assert handle.flush(5)
    assert caplog.messages == [
        f"{handle.name} takes the spans, and says: kept for  [1m1 hour only",
        f"{handle.name} takes the spans, and says: cut",
    ]


def test_warnings_of_a_collector_are_bounded() -> None:
    """One that counts something in each is not passed on for ever, and that is said."""
    totals = Totals()
    for number in range(50):
        totals.add(Delivered(1, remarks=[f"{number} cut"] * 2))
    assert totals.remarks == [*(f"{number} cut" for number in range(MAX_REMARKS)), pump._MORE_REMARKS]


def test_what_is_wrong_with_a_trace_is_said_by_live_export_and_by_the_command_alike(
    tmp_path: Path,
    collect: Callable[..., Collector],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Damage, and events that belong to nothing that began."""
    collector = collect()
    handle = live_export(collector.address)
    path = tmp_path / "run.jsonl"

    @tool
    def harm() -> str:
        """Take out the line that says that this call began, and write junk."""
        *lines, last = path.read_bytes().splitlines(keepends=True)
        assert b'"tool-call-started"' in last
        with path.open("r+b") as file:
            file.write(b"".join(lines) + b"x" * (len(last) - 1) + b"\n")
        return "done"

    monkeypatch.setattr(live.LiveExport, "_start", lambda _: None)  # it reads when all is written
    Agent(ScriptedModel([call("harm"), text("done")]), tools=[harm], trace=tmp_path).run_sync("go", run_id="run")
    monkeypatch.undo()
    handle._start()
    assert handle.flush(5)
    said = [each.removeprefix("run run: ") for each in caplog.messages]
    assert [each.partition(": ")[2].partition(":")[0] for each in said[:3]] == ["bad-line", "chain", "gap"]
    assert said[3].endswith("to nothing that began, and is in no span")
    shown = playhead("export", path, "--to", collector.address)
    assert [each.removeprefix("run: ") for each in shown.stderr.splitlines()] == said
