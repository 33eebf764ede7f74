"""What exporting spans costs: an agent while it runs, and a stored run; to a collector on loopback, and to none.

The agent's model answers at once, so every microsecond counts: next to a real model, which takes a second, none would.
Each kind of run is a process of its own. `agent` is the CPU time of the agent's thread, `process` that of all threads.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.step_cost import fetch_async, playhead_loop

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 500
REPEATS = 9
ROUNDS = 3
MEASURED = ("agent", "process", "wall")
DEAD = "http://127.0.0.1:9"
"""Where nobody listens."""
AGENT_US = 60
SPANS_A_SECOND = 5_000
OVERHEAD = 0.05


class Receiver(BaseHTTPRequestHandler):
    """Takes what it is sent, and looks at none of it."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer that all is well."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:  # noqa: ANN401 - whatever the base class says
        """Be quiet."""


def receive() -> None:
    """Be the collector: a process of its own, so that its work is not counted."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    print(server.server_port, flush=True)
    server.serve_forever()


def one_agent() -> None:
    """Run agents in this process, and print what each took, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        _warm(Path(folder))
        taken = [_measured(Path(folder)) for _ in range(REPEATS)]
        print(json.dumps({name: min(each[name] for each in taken) for name in taken[0]}))
    sys.stdout.flush()
    os._exit(0)  # what a dead collector leaves undelivered is no news


def _warm(folder: Path) -> None:
    """Run once, and wait until the thread has loaded what it needs."""
    asyncio.run(playhead_loop(10, folder, fetch_async))
    late_at = time.monotonic() + 5
    while os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") and "requests" not in sys.modules:
        assert time.monotonic() < late_at
        time.sleep(0.1)
    time.sleep(1.0)


def _measured(folder: Path) -> dict[str, float]:
    process, agent, wall = time.process_time(), time.thread_time(), time.perf_counter()
    asyncio.run(playhead_loop(STEPS, folder, fetch_async))
    found = {"agent": time.thread_time() - agent, "wall": time.perf_counter() - wall}
    live = sys.modules.get("playhead.spans.live")
    if live is not None and os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") != DEAD:
        assert live._Current.export.flush()  # noqa: SLF001 - the one that the environment asked for
    found["process"] = time.process_time() - process
    return found


def in_a_process(what: str, endpoint: str | None) -> dict[str, float]:
    """Run agents in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    if endpoint is not None:
        environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoint
    command = [sys.executable, "-m", "benchmarks.export", what]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)  # noqa: S603 - our own
    found: dict[str, float] = json.loads(done.stdout)
    return found


def stored(endpoint: str) -> tuple[int, dict[str, tuple[float, float]]]:
    """Return the spans of a stored run, and what it takes to read, fold and encode it, and to do all of it and send."""
    from playhead.spans import SpanBuilder, spans_of  # noqa: PLC0415 - the same
    from playhead.spans.delivery import Otlp, Pump  # noqa: PLC0415 - the same
    from playhead.spans.destination import named  # noqa: PLC0415 - the same
    from playhead.spans.encoding import encode  # noqa: PLC0415 - as export does
    from playhead.spans.run_export import RunExport  # noqa: PLC0415 - the same
    from playhead.trace.line import Record  # noqa: PLC0415 - the same
    from playhead.trace.reader import scan  # noqa: PLC0415 - the same

    def export() -> int:
        pump = Pump(Otlp(named(endpoint)))
        run = RunExport(path, SpanBuilder)
        pump.runs.append(run)
        while pump.step() == "sent":
            pass
        return run.accepted

    with tempfile.TemporaryDirectory() as folder:
        path = asyncio.run(playhead_loop(STEPS, Path(folder), fetch_async))
        records = [item for item in scan(path) if isinstance(item, Record)]
        spans = list(spans_of(records))
        assert export() == len(spans)
        parts: dict[str, Callable[[], object]] = {
            "reading": lambda: [None for _ in scan(path)],
            "folding": lambda: [None for _ in spans_of(records)],
            "encoding": lambda: encode(spans),
            "exporting, all of it": export,
        }
        return len(spans), {name: _least(part) for name, part in parts.items()}


def _least(part: Callable[[], object]) -> tuple[float, float]:
    """Return seconds of the wall clock and of CPU: each the least, for others use this machine, too."""
    found = []
    for _ in range(REPEATS):
        wall, cpu = time.perf_counter(), time.process_time()
        part()
        found.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(each[0] for each in found), min(each[1] for each in found)


def main() -> None:
    """Print the figures."""
    if sys.argv[1:] and sys.argv[-1] in {"receive", "agent"}:
        (receive if sys.argv[-1] == "receive" else one_agent)()
        return
    command = [sys.executable, "-m", "benchmarks.export", "receive"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiver:  # noqa: S603 - our own
        assert receiver.stdout is not None
        endpoint = f"http://127.0.0.1:{int(receiver.stdout.readline())}"
        try:
            spans, taken = stored(endpoint)
            print(f"Spans per second of a stored run of {STEPS} steps and {spans:,} spans, best of {REPEATS}")
            print(f"{'':28}{'by the clock':>14}{'by CPU time':>14}")
            for name, (wall, cpu) in taken.items():
                print(f"{name:28}{spans / wall:>14,.0f}{spans / cpu:>14,.0f}")
            print(f"(budget: {SPANS_A_SECOND:,})\n")
            _print_live({"no export (floor)": None, "to a collector": endpoint, "to a dead one": DEAD}, spans)
        finally:
            receiver.kill()


def _print_live(endpoints: dict[str, str | None], spans: int) -> None:
    rounds = [{name: in_a_process("agent", where) for name, where in endpoints.items()} for _ in range(ROUNDS)]
    best = {name: {each: min(taken[name][each] for taken in rounds) for each in MEASURED} for name in endpoints}
    floor = next(iter(best.values()))
    print(f"Live, {STEPS} steps, least of {ROUNDS * REPEATS} runs: CPU µs per span beyond the floor, and ratios to it")
    print(f"{'':20}{'agent':>10}{'process':>10}{'agent CPU':>12}{'by the clock':>14}")
    for name, taken in best.items():
        agent, process = ((taken[each] - floor[each]) / spans * 1e6 for each in ("agent", "process"))
        ratios = f"{taken['agent'] / floor['agent']:>11.2f}x{taken['wall'] / floor['wall']:>13.2f}x"
        print(f"{name:20}{agent:>10.1f}{process:>10.1f}{ratios}")
    print(f"(budget: {AGENT_US} µs on the agent's side; with a dead collector {OVERHEAD:.0%} at most)")


if __name__ == "__main__":
    main()
