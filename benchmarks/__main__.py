"""Run every benchmark: `make bench`, or `python -m benchmarks step_cost` for one."""

from __future__ import annotations

import sys
from importlib import import_module

NAMES = (
    "step_cost",
    "compose_cost",
    "import_time",
    "hops",
    "reading",
    "searching",
    "finding",
    "replaying",
    "corpus",
    "verdicts",
    "strategies",
    "repair",
    "spans",
    "collecting",
    "redaction",
    "programs",
)


def main() -> None:
    """Run those that are named, or all."""
    for name in sys.argv[1:] or NAMES:
        print(f"\n== {name}")
        import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
