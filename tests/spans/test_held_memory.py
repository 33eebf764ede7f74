"""What a run's spans hold in memory while it goes on."""

from __future__ import annotations

import tracemalloc

from playhead.spans import SpanBuilder
from playhead.trace.events import LlmRequested, LlmResponded, MessageAdded, RunStarted
from playhead.trace.line import Record
from playhead.trace.types import AgentHeader

SIZE = 20_000
STEPS = 60


def test_a_span_that_was_handed_over_is_not_kept() -> None:
    """A run that goes on holds its thread and the like of it, not each prompt again for every request."""
    events = [RunStarted(format="2.0", run_id="r", agent=AgentHeader(name="a", model="p/m"), task="Go.")]
    tracemalloc.start()
    try:
        builder = SpanBuilder()
        builder.feed(Record(0, 0, "root", None, events[0]))
        for step in range(STEPS):
            added = MessageAdded(id=step, role="user", content=chr(65 + step % 26) * SIZE)
            asked = LlmRequested(request=step, model="p/m", messages=((0, step),))
            for event in (added, asked, LlmResponded(request=step, text="ok")):
                builder.feed(Record(1, 1, "root", step, event))
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 4 * STEPS * SIZE
