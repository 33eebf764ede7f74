"""What it costs to make spans of a run and to encode them, while it goes on and from its file.

A run of 500 steps, each a model call and a tool call with a 1 KB result: 1,002 spans. Live is what the agent's process spends on
a span beside the run itself: the fold, and the bytes that are sent, before compression.
"""

from __future__ import annotations

import asyncio
import gzip
import random
import string
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from benchmarks.step_cost import playhead_loop
from playhead import tool
from playhead.spans import SpanBuilder, SpanOptions, export_to, live, spans_of
from playhead.spans.encoding import encode
from playhead.trace.reader import Problem, scan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playhead.trace.line import Record

STEPS = (100, 500, 2000)
CAPS: tuple[int | None, ...] = (8, 16, 20, 32, 64, None)
REPEATS = 3
BATCH = 512
LETTERS = string.ascii_lowercase + "     "
SLOW = 4_000_000
"""Messages on spans above which only the smaller runs are measured."""


@tool(read_only=True)
async def fetch(key: int) -> str:
    """Return 1 KB that does not compress to nothing."""
    chance = random.Random(key)  # noqa: S311 - the same text each time
    return "".join(chance.choices(LETTERS, k=1024))


def cpu_us(work: Callable[[], Any], count: int) -> float:
    """Return the least CPU time of some tries, in microseconds for each of `count`."""
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times) / count * 1e6


def read(path: Path) -> Iterator[Record]:
    """Yield the records of a trace."""
    return (item for item in scan(path) if not isinstance(item, Problem))


def send(path: Path, options: SpanOptions, level: int | None) -> int:
    """Do all that an export does but for the sending, in batches; return how many bytes it would send."""
    size, batch = 0, []
    for span in spans_of(read(path), options):
        batch.append(span)
        if len(batch) == BATCH:
            size += len(packed(encode(batch), level))
            batch = []
    return size + len(packed(encode(batch), level))


def packed(body: bytes, level: int | None) -> bytes:
    """Return a body as it is sent."""
    return body if level is None else gzip.compress(body, level)


def row(path: Path, cap: int | None) -> str:
    """Return a line of the table."""
    records, options = list(read(path)), SpanOptions(max_messages=cap)

    def fold() -> list[Any]:
        builder = SpanBuilder(options)
        return [span for record in records for span in builder.feed(record)]

    def live() -> None:
        builder = SpanBuilder(options)
        for record in records:
            for span in builder.feed(record):
                encode([span])

    spans = fold()
    count = len(spans)
    lived = cpu_us(live, count)
    ours = cpu_us(lambda: encode(spans), count)
    theirs = cpu_us(lambda: encode_spans(spans).SerializeToString(), count)
    whole = cpu_us(lambda: send(path, options, None), count)
    zipped = cpu_us(lambda: send(path, options, 1), count)
    size, small = send(path, options, None) / count, send(path, options, 1) / count
    name = "all" if cap is None else str(cap)
    return (
        f"{count:6,} {name:>5} {lived:7.1f} {ours:7.1f} {theirs:8.1f}"
        f" {whole:8.1f} {1e6 / whole:9,.0f} {1e6 / zipped:9,.0f} {size / 1000:8.1f} {small / 1000:7.1f}"
    )


class Nothing(SpanProcessor):
    """Takes spans, and delivers none."""


def handed_over(steps: int = 100) -> str:
    """Return what a span costs the agent's thread, and the whole process, when it goes through the application's provider."""
    provider = TracerProvider()
    provider.add_span_processor(Nothing())
    export = export_to(provider)
    times: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for through in [False, True] * (5 * REPEATS):  # in turn, because a machine has slow and fast moments
        live._Current.export = export if through else None  # noqa: SLF001 - turned on and off
        with tempfile.TemporaryDirectory() as name:
            started = time.thread_time(), time.process_time()
            asyncio.run(playhead_loop(steps, Path(name), fetch))
            times[through].append((time.thread_time() - started[0], time.process_time() - started[1]))
    export.shutdown()
    thread, process = (
        (min(each[at] for each in times[True]) - min(each[at] for each in times[False])) / (2 * steps + 1) * 1e6
        for at in (0, 1)
    )
    return f"through a provider of OpenTelemetry's SDK: {thread:.0f} in the agent's thread, {process:.0f} in the whole process"


def main() -> None:
    """Print the table."""
    print(f"CPU microseconds per span, {handed_over()}")
    print("CPU microseconds per span: live = the fold and our encoder; encoders alone, ours and OpenTelemetry's;")
    print("file = reading the trace, fold and our encoder, and how many spans a second that is, plain and with gzip 1")
    print(" spans   cap    live    ours     OTel     file   spans/s    zipped  KB/span  zipped")
    with tempfile.TemporaryDirectory() as name:
        for steps in STEPS:
            folder = Path(name, str(steps))
            path = asyncio.run(playhead_loop(steps, folder, fetch))
            for cap in CAPS:
                if steps * (cap or steps) * 2 <= SLOW / 4:
                    print(row(path, cap))


if __name__ == "__main__":
    main()
