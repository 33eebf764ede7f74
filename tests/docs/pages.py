"""The pages of the documentation, and what tests read in them: code, tables, code spans."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = DOCS / "reference" / "api"
PAGES = [ROOT / "README.md", *sorted(path for path in DOCS.rglob("*.md") if GENERATED not in path.parents)]
_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def page_id(page: Path) -> str:
    """Return a page's path within the repository, as pytest shows it."""
    return str(page.relative_to(ROOT).with_suffix(""))


def read(name: str) -> str:
    """Return the text of a page of `docs/`."""
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """Return each block of Python, and the output printed below it."""
    return _BLOCK.findall(page.read_text(encoding="utf-8"))


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def section(text: str, heading: str) -> str:
    """Return what stands below a heading, up to the next heading of its level."""
    level, below = re.split(rf"^(#+) {re.escape(heading)}\n", text, maxsplit=1, flags=re.MULTILINE)[1:]
    return re.split(rf"^#{{1,{len(level)}}} ", below, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading."""
    table = re.search(r"(?:^\|.*\n)+", section(text, heading), re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table[0].splitlines()[2:]]


def code(cell: str) -> list[str]:
    """Return the code spans of a text."""
    return re.findall(r"`([^`\n]+)`", cell)


def printed(path: Path) -> dict[str, list[str]]:
    """Return the lines that programs print, by the program that stands above them as `== name`."""
    found = re.findall(r"^== (\w+)\n(.*?)(?=^== |\Z)", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return {name: lines.rstrip("\n").split("\n") for name, lines in found}
