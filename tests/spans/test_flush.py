"""`flush` waits for what was there when it was called, and for nothing else."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from opentelemetry.sdk.trace import SpanProcessor

from playhead import Agent, tool
from playhead.spans import export_to, live_export
from playhead.testing import ScriptedModel, call, text
from tests.proving import bound
from tests.spans.collector import Collector, Reply
from tests.spans.spans import agent, ids_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@contextmanager
def busy(folder: Path | None) -> Iterator[None]:
    """Let an agent work without a pause: one long run, and short ones beside it."""
    over = threading.Event()

    @tool(read_only=True)
    def work() -> str:
        """Work."""
        time.sleep(0.002)
        return "over" if over.is_set() else "more"

    def turn(*_: object) -> object:
        return text("done") if over.is_set() else call("work")

    def long() -> None:
        turns = [turn] * 100_000
        Agent(ScriptedModel(turns), tools=[work], trace=folder, max_iterations=100_000).run_sync("go")  # type: ignore[arg-type]

    def short() -> None:
        while not over.is_set():
            agent(folder, 1).run_sync("Find it.")

    threads = [threading.Thread(target=each) for each in (long, short)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        over.set()
        for each in threads:
            each.join()


@pytest.mark.slow
@pytest.mark.parametrize("in_file", [True, False], ids=["in files", "without a trace"])
def test_it_returns_however_busy_the_application_is(
    tmp_path: Path, collect: Callable[..., Collector], in_file: bool
) -> None:
    """While every request takes long enough for new spans to come, it is done once those before it are there."""
    collector = collect(usual=Reply(delay_s=0.03))
    handle = live_export(collector.address)
    with busy(tmp_path / "busy" if in_file else None):
        path = agent(tmp_path).run_sync("Find it.").trace_path
        assert path is not None
        started = time.monotonic()
        assert handle.flush(10)
        assert time.monotonic() - started < bound(5)
        assert collector.counts.keys() >= set(ids_of(path))
    handle.shutdown(0.2)


def test_it_returns_when_its_time_is_over(tmp_path: Path, collect: Callable[..., Collector]) -> None:
    """And says that not everything has arrived."""
    handle = live_export(collect(usual=Reply(503)).address)
    agent(tmp_path).run_sync("Find it.")
    started = time.monotonic()
    assert not handle.flush(0.1)
    assert time.monotonic() - started < bound(1)
    handle.shutdown(0.2)


class Processor(SpanProcessor):
    """Takes spans; what its `force_flush` does is said."""

    def __init__(self, flush: Callable[[int], bool]) -> None:
        self.flush = flush

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self.flush(timeout_millis)


def test_a_processor_is_flushed_within_the_rest_of_the_time(tmp_path: Path) -> None:
    """It gets the time that is left."""
    given: list[int] = []

    def flush(milliseconds: int) -> bool:
        given.append(milliseconds)
        return True

    handle = export_to(Processor(flush))
    agent(tmp_path).run_sync("Find it.")
    assert handle.flush(5)
    assert 3000 < given[0] <= 5000
    handle.shutdown(0.1)


def test_what_a_processor_raises_when_flushed_reaches_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It was not flushed, which `flush` returns and the log says; one that says so itself is believed."""

    def flush(_: int) -> bool:
        if not caplog.messages:
            raise RuntimeError("broken")
        return False

    handle = export_to(Processor(flush))
    agent(tmp_path).run_sync("Find it.")
    assert not handle.flush(5)
    assert caplog.messages == ["the span processor Processor could not be flushed: RuntimeError"]
    assert not handle.flush(5)
    handle.shutdown(0.2)
