"""Runs the code of a page of the docs, and compares what it prints with what the page says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """Return each block of Python, and the text that stands below it."""
    return _BLOCK.findall(page.read_text(encoding="utf-8"))


def run_page(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run the blocks one after the other, in one namespace."""
    names: dict[str, Any] = {"__name__": page.stem}
    for code, printed in blocks_of(page):
        exec(compile(code, page.name, "exec"), names)  # noqa: S102 - our own page
        assert capsys.readouterr().out == printed
