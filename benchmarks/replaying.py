"""How fast a recording is reproduced, beside reading the same file."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from benchmarks.step_cost import fetch_async, playhead_loop
from playhead.replay import load_recording, reproduce

STEPS = 500
REPEATS = 5


async def measure(folder: Path) -> tuple[float, float]:
    """Return steps per second of reading and of reproducing (reading included), medians."""
    path = await playhead_loop(STEPS, folder, fetch_async)
    reading, reproducing = [], []
    for _ in range(REPEATS):
        started = time.perf_counter()
        recording = load_recording(path)
        read = time.perf_counter()
        outcome = await reproduce(recording)
        assert outcome.identical
        reading.append(STEPS / (read - started))
        reproducing.append(STEPS / (time.perf_counter() - started))
    return sorted(reading)[REPEATS // 2], sorted(reproducing)[REPEATS // 2]


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        reading, reproducing = asyncio.run(measure(Path(folder)))
    print(f"Steps per second, median of {REPEATS}, a recording of {STEPS} steps with 1 KB results")
    print(f"{'reading alone (floor)':28}{reading:>10,.0f}")
    print(f"{'reading and reproducing':28}{reproducing:>10,.0f}  ({reading / reproducing:.1f}x the time)")


if __name__ == "__main__":
    main()
