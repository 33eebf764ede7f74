"""What it costs to import Playhead and to start its command line, beside the bare interpreter and pydantic."""

from __future__ import annotations

import subprocess
import sys
import time

REPEATS = 7
STATEMENTS = (
    ("bare interpreter (floor)", ["-c", "pass"]),
    ("import pydantic.BaseModel", ["-c", "from pydantic import BaseModel"]),
    ("import playhead", ["-c", "import playhead"]),
    ("from playhead import Agent", ["-c", "from playhead import Agent"]),
    ("playhead --help", ["-m", "playhead", "--help"]),
)
HEAVY = ("litellm", "opentelemetry", "rich", "openinference")


def wall_ms(arguments: list[str]) -> float:
    """Return the median wall time of a process, in milliseconds."""
    found = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)  # noqa: S603 - our own interpreter
        found.append((time.perf_counter() - started) * 1000)
    return sorted(found)[REPEATS // 2]


def main() -> None:
    """Print the table."""
    floor = wall_ms(["-c", "pass"])
    print(f"Wall time of a whole process, median of {REPEATS}; in brackets without the interpreter's own start")
    for label, arguments in STATEMENTS:
        spent = wall_ms(arguments)
        print(f"{label:28}{spent:>8.0f} ms ({max(0.0, spent - floor):.0f} ms)")
    code = f"import sys, playhead; print([m for m in {HEAVY!r} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603
    print(f"heavy modules loaded by `import playhead`: {loaded.stdout.strip()}")


if __name__ == "__main__":
    main()
