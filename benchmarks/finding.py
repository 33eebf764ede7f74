"""How long `playhead list` takes over 10,000 runs with each condition, beside `list` without one, in a process of its own."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 10_000
SAMPLES = sorted((Path(__file__).parents[1] / "traces").glob("*.jsonl"))
CONDITIONS = (
    "--failed",
    "--ended max_iterations",
    "--tool lookup --arg key=Zed",
    "--model none",
    "--sort tokens",
    "--text no-such-text",
)


def copy(lines: list[bytes], path: Path) -> None:
    """Write a copy of a run with a task of its own, and hash it anew."""
    last, content = b"", []
    for number, line in enumerate(lines):
        body = line[:-72] if number else line[:-72].replace(b'"task":"', b'"task":"%s ' % path.stem.encode(), 1)
        last = hashlib.sha256(last + body).hexdigest().encode()
        content.append(body + b',"h":"' + last + b'"}\n')
    path.write_bytes(b"".join(content))


def seconds(folder: str, *options: str) -> float:
    """Return the least time of three for listing a folder."""

    def once() -> float:
        began = time.perf_counter()
        command = [sys.executable, "-m", "playhead", "list", "--trace-dir", folder, *options]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own
        return time.perf_counter() - began

    return min(once() for _ in range(3))


def main() -> None:
    """Print the figures."""
    samples = [path.read_bytes().splitlines() for path in SAMPLES]
    with tempfile.TemporaryDirectory() as folder:
        for number in range(RUNS):
            copy(samples[number % len(samples)], Path(folder) / f"{number:026}.jsonl")
        time.sleep(2.5)  # what changed a moment ago is not in the index
        floor = seconds(folder)
        print(f"{RUNS:,} runs; without a condition (floor)  {floor:.2f} s")
        for condition in CONDITIONS:
            taken = seconds(folder, *condition.split())
            print(f"  {condition:36}{taken:6.2f} s  {taken / floor:5.2f} times the floor")


if __name__ == "__main__":
    main()
