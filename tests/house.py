"""How large the house is: code lines of each room beside its budget. `make house` prints it; exit status 1 says that one is over.

A code line is a line that is neither blank, nor a comment, nor part of a docstring (the string below a field is one).
A budget says how much mechanism a promise is worth: a rare case is refused or reported, not coded for.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

BUDGETS = {
    "(top)": 350,
    "trace": 2500,
    "spans": 2600,
    "diagnose": 5200,
    "importing": 2200,
    "kernel": 8000,
    "compose": 3000,
    "mcp": 500,
    "agent": 1600,
    "instrument": 2000,
    "replay": 5000,
    "cli": 3050,
}
ALL_ROOMS, FILES, LONGEST_FILE, PARAMETERS = 36_000, 330, 450, 18
TEST_LINES, TEST_BYTES, README_LINES, PAGE_LINES = 51_600, 3_000_000, 180, 1500
ROOT = Path(__file__).parents[1]


def docstring_lines(tree: ast.AST) -> int:
    """Return how many lines are docstrings, those below fields included."""
    bodies = [getattr(node, "body", None) for node in ast.walk(tree)]
    statements = [each for body in bodies if isinstance(body, list) for each in body]
    strings = [
        each
        for each in statements
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) and isinstance(each.value.value, str)
    ]
    return sum((each.end_lineno or each.lineno) - each.lineno + 1 for each in strings)


def code_lines(text: str, tree: ast.AST) -> int:
    """Return how many lines are code."""
    lines = [line.strip() for line in text.splitlines()]
    return max(0, sum(1 for line in lines if line and not line.startswith("#")) - docstring_lines(tree))


def page_lines(folder: Path) -> int:
    """Return how many lines of templates, style and scripts are neither blank nor a comment of their own."""
    lines = (line.strip() for path in folder.iterdir() for line in path.read_text(encoding="utf-8").splitlines())
    return sum(1 for line in lines if line and not line.startswith(("//", "/*")))


def wide_signatures(path: Path, tree: ast.AST) -> list[str]:
    """Return the functions of a file that take too many parameters."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            taken = {each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
            if len(taken - {"self", "cls"}) > PARAMETERS:
                found.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name} takes over {PARAMETERS} parameters")
    return found


def main() -> int:
    """Print the table; return 1 when something is over its budget."""
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    over: list[str] = []
    for path in sorted((ROOT / "playhead").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        parts = path.relative_to(ROOT / "playhead").parts
        room, code = parts[0] if len(parts) > 1 else "(top)", code_lines(text, tree)
        lines[room] += code
        files[room] += 1
        over += [f"{path.relative_to(ROOT)} has {code} code lines"] if code > LONGEST_FILE else []
        over += wide_signatures(path, tree)
    tests = [path for path in (ROOT / "tests").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    python = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in tests if path.suffix == ".py")
    figures = [(room, lines[room], BUDGETS.get(room, 0)) for room in sorted(lines, key=lambda each: -lines[each])]
    figures += [
        ("all rooms", lines.total(), ALL_ROOMS),
        ("files", files.total(), FILES),
        ("lines of tests", python, TEST_LINES),
        ("bytes of tests", sum(path.stat().st_size for path in tests), TEST_BYTES),
        ("lines of pages", page_lines(ROOT / "playhead/diagnose/page"), PAGE_LINES),
        ("lines of README", len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()), README_LINES),
    ]
    for name, found, budget in figures:
        print(f"{name:<16}{found:>10,}{budget:>12,}{'  over' if found > budget else ''}")  # noqa: T201 - a program
        over += [f"{name}: {found:,} of {budget:,}"] if found > budget else []
    print("\n".join(over) or "within every budget")  # noqa: T201 - the same
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
