"""Spans to deliver, and runs to make them of, for the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, TraceFlags

from playhead import Agent, tool
from playhead.spans import spans_of
from playhead.testing import ScriptedModel, TickingClock, call, text
from playhead.trace.line import Record
from playhead.trace.reader import scan
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path

RESOURCE = Resource({"service.name": "test"})


def span(number: int, **attributes: Any) -> ReadableSpan:
    """Return a span of this number, with these attributes."""
    context = SpanContext(1, number, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return ReadableSpan(f"span {number}", context, resource=RESOURCE, attributes=attributes, start_time=1, end_time=2)


@tool(read_only=True)
async def lookup(key: int) -> str:
    """Look a fact up."""
    return f"fact {key}"


def agent(folder: Path | None, steps: int = 3, **options: Any) -> Agent:
    """Return an agent that calls a tool so often, and then answers."""
    model = ScriptedModel([call("lookup", key=step) for step in range(steps)] + [text("done")])
    return Agent(model, **grouped(name="guide", tools=[lookup], trace=folder, max_iterations=steps + 1, **options))


def record_run(folder: Path, run_id: str = "run", steps: int = 3, **options: Any) -> Path:
    """Record a run in which every moment takes a millisecond."""
    agent(folder, steps, clock=TickingClock, **options).run_sync("Find it.", run_id=run_id)
    return folder / f"{run_id}.jsonl"


def ids_of(path: Path) -> list[str]:
    """Return the ids of the spans of a trace, in the order in which they close."""
    records = (item for item in scan(path) if isinstance(item, Record))
    return [id_of(each) for each in spans_of(records)]


def id_of(span: ReadableSpan) -> str:
    """Return a span's id in hexadecimal digits."""
    context = span.get_span_context()
    assert context is not None
    return f"{context.span_id:016x}"
