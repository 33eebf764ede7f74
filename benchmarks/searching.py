"""How fast `playhead grep` searches a trace, beside splitting the same bytes into lines."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.reading import best_of, split_only, write
from playhead.diagnose.expression import parse_expression
from playhead.diagnose.search import Search

STEPS = 10_000
RESULT_BYTES = (1_000, 4_000, 16_000)
EXPRESSIONS = {
    "a text that does not occur": '"no such text"',
    "a tool that does not occur": 'tool == "send_mail" and args.amount > 400',
    "a sixth of the lines: typed": "args.limit > 400",
    "every line: typed": "iteration < 0 or duration_ms > 1e9",
}


def search(path: Path, expression: str) -> int:
    """Return how many events meet the expression: none, so that what is measured is the search."""
    return sum(1 for _ in Search(path, parse_expression(expression)))


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        for result_bytes in RESULT_BYTES:
            path = Path(folder) / f"{result_bytes}.jsonl"
            write(path, STEPS, result_bytes)
            size = path.stat().st_size
            print(f"\n{size / 1e6:.0f} MB, {size / (6 * STEPS + 2):,.0f} bytes a line")
            seconds, _ = best_of(lambda path=path: split_only(path))  # type: ignore[misc]
            print(f"  {'split into lines (floor)':44}{size / seconds / 1e6:>8,.0f} MB/s")
            for name, expression in EXPRESSIONS.items():
                seconds, found = best_of(lambda path=path, expression=expression: search(path, expression))  # type: ignore[misc]
                assert found == 0
                print(f"  {name:44}{size / seconds / 1e6:>8,.0f} MB/s")


if __name__ == "__main__":
    main()
