"""How fast traces are read, beside splitting the same bytes into lines, and how fast many of them are listed."""

from __future__ import annotations

import hashlib
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.diagnose.run_summary import summaries
from playhead.trace.clock import SystemClock
from playhead.trace.events import (
    LlmRequested,
    LlmResponded,
    MessageAdded,
    MessageRef,
    RunCompleted,
    RunStarted,
    ToolCallCompleted,
    ToolCallStarted,
)
from playhead.trace.format import FORMAT, new_run_id
from playhead.trace.header import AgentHeader
from playhead.trace.line import ENVELOPE, TAIL, decoder_of
from playhead.trace.reader import Lines, Problem, open_trace, scan
from playhead.trace.recorder import Recorder
from playhead.trace.store import TraceStore
from playhead.trace.types import Rationale, ToolCall, Usage
from playhead.trace.writer import TraceWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.trace.events import EventBase

STEPS = 2000
REPEATS = 5
RUNS = 10_000
RESULT_BYTES = (1_000, 4_000, 16_000)

HEADER = RunStarted(
    format=FORMAT, run_id="benchmark", agent=AgentHeader(name="reader", model="test/model"), task="Read everything."
)
ENDING = RunCompleted(status="done", terminated_by="end_turn", terminated_source="kernel", output="Done.")


def step(number: int, result: str) -> list[EventBase]:
    """Return the events of one step: a request, an answer with a reason and a call, and the call's result."""
    call = ToolCall(id=f"call_{number}", name="lookup", arguments={"query": "Mount Zed", "limit": 5})
    why = Rationale(why="The height is needed before it can be converted.", refs=("obs:1",), confidence=0.8)
    return [
        LlmRequested(request=number, model="test/model", messages=((0, 2 * number),), tools=((0, 3),)),
        LlmResponded(
            request=number,
            text="I will look up the height of Mount Zed first, because the conversion depends on it.",
            tool_calls=(call,),
            finish_reason="tool_calls",
            usage=Usage(input_tokens=1234, output_tokens=56),
        ),
        MessageAdded(id=2 * number, role="assistant", ref=MessageRef(request=number)),
        ToolCallStarted(
            call_id=call.id, tool="lookup", position=0, args=call.arguments, args_hash="0" * 64, rationale=why
        ),
        ToolCallCompleted(call_id=call.id, tool="lookup", position=0, ok=True, result=result, duration_ms=12.5),
        MessageAdded(id=2 * number + 1, role="tool", ref=MessageRef(call=call.id), tool_call_id=call.id, name="lookup"),
    ]


def write(path: Path, steps: int, result_bytes: int) -> None:
    """Record a run."""
    clock = SystemClock()
    recorder = Recorder(clock, TraceWriter(path, clock.now_us))
    recorder.emit(HEADER.model_copy(update={"run_id": path.stem}), "root")
    for number in range(steps):
        for event in step(number, "y" * result_bytes):
            recorder.emit(event, "root", number)
    recorder.emit(ENDING, "root")
    recorder.seal()


def best_of(function: Callable[[], int]) -> tuple[float, int]:
    """Return the shortest of the times of some calls, and what they returned."""
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        count = function()
        times.append(time.perf_counter() - started)
    return min(times), count


def split_only(path: Path) -> int:
    """Split the file into lines: what nothing that looks at lines can be faster than."""
    with open_trace(path) as file:
        return sum(1 for _ in Lines(file))


def chain_only(path: Path) -> int:
    """Verify the chain, and look at nothing else."""
    previous, count = b"", 0
    with open_trace(path) as file:
        for line in Lines(file):
            h = hashlib.sha256(previous + line[:-TAIL]).hexdigest().encode()
            assert line.endswith(b',"h":"%b"}' % h)
            previous, count = h, count + 1
    return count


def types_only(path: Path) -> int:
    """Make the events, and verify nothing: mostly pydantic's own time."""
    count = 0
    with open_trace(path) as file:
        for line in Lines(file):
            match = ENVELOPE.match(line)
            assert match
            decoder_of(match[3])(line[match.end() : -TAIL])
            count += 1
    return count


def whole_scan(path: Path) -> int:
    """Do what `show`, `check` and `reproduce` do: typed records, every line verified."""
    count = 0
    for item in scan(path):
        assert not isinstance(item, Problem), item
        count += 1
    return count


def print_reading(folder: Path, result_bytes: int) -> None:
    """Print how fast one trace is read in each way."""
    path = folder / f"{result_bytes}.jsonl"
    write(path, STEPS, result_bytes)
    size, events = path.stat().st_size, 6 * STEPS + 2
    print(f"\n{events:,} events, {size / 1e6:.0f} MB, {size / events:,.0f} bytes each ({result_bytes:,}-byte results)")
    for name, function in WAYS.items():
        seconds, count = best_of(lambda function=function: function(path))  # type: ignore[misc]
        assert count == events
        print(f"  {name:44}{size / seconds / 1e6:>8,.0f} MB/s {seconds / events * 1e6:>7.2f} µs an event")


WAYS = {
    "split into lines (floor)": split_only,
    "chain alone": chain_only,
    "typed events alone": types_only,
    "scan: typed, chain and order verified": whole_scan,
}


def print_listing(folder: Path) -> None:
    """Print how long it takes to list many runs."""
    store = TraceStore(folder / "many")
    store.create()
    for _ in range(RUNS):
        write(store.path_for(new_run_id()), 1, 1_000)
    names, found = best_of(lambda: len(store.paths()))
    latest, _ = best_of(lambda: len(str(store.resolve("latest"))))
    listed, count = best_of(lambda: len(summaries(store)))
    assert found == count == RUNS
    print(f"\n{RUNS:,} runs in a folder")
    for name, seconds in (("paths, newest first", names), ("resolve latest", latest), ("summaries of all", listed)):
        print(f"  {name:44}{seconds * 1000:>8,.0f} ms")


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        print(f"Best of {REPEATS}")
        for result_bytes in RESULT_BYTES:
            print_reading(Path(folder), result_bytes)
        print_listing(Path(folder))


if __name__ == "__main__":
    main()
