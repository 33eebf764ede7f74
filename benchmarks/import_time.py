"""What it costs to import Playhead and to start its command line, beside the bare interpreter and pydantic."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
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


def wall_ms(arguments: list[str], bytecode: str) -> float:
    """Return the median wall time of a process, in milliseconds; what it imports is compiled, as it is where it is installed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = bytecode
    found = []
    for _ in range(REPEATS + 1):  # the first compiles
        started = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)  # noqa: S603 - our own interpreter
        found.append((time.perf_counter() - started) * 1000)
    return sorted(found[1:])[REPEATS // 2]


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as bytecode:
        floor = wall_ms(["-c", "pass"], bytecode)
        print(f"Wall time of a whole process, median of {REPEATS}; in brackets without the interpreter's own start")
        for label, arguments in STATEMENTS:
            spent = wall_ms(arguments, bytecode)
            print(f"{label:28}{spent:>8.0f} ms ({max(0.0, spent - floor):.0f} ms)")
    code = f"import sys, playhead; print([m for m in {HEAVY!r} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603
    print(f"heavy modules loaded by `import playhead`: {loaded.stdout.strip()}")


if __name__ == "__main__":
    main()
