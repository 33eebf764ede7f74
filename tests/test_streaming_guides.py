"""The guides to streaming and to chats say what is so: their code runs, and their tables are those of the code."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from playhead.agent import streaming
from playhead.agent.chat import LONGEST
from playhead.agent.streaming import StreamEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[1] / "docs" / "guides"
PAGES = {name: (FOLDER / f"{name}.md").read_text(encoding="utf-8") for name in ("streaming", "chat")}


@pytest.mark.parametrize("page", PAGES)
def test_what_it_prints(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every block of code runs, one after the other, and prints what stands below it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path))
    names: dict[str, Any] = {"__name__": page}
    blocks = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", PAGES[page], re.DOTALL | re.MULTILINE)
    assert len(blocks) > 1
    for code, printed in blocks:
        exec(compile(code, f"{page}.md", "exec"), names)  # noqa: S102 - our own page
        assert capsys.readouterr().out == printed


def rows() -> Iterator[list[str]]:
    """Yield the rows of the table of events: name, fields, density."""
    table = PAGES["streaming"].split("\n## The events\n")[1].strip("\n").split("\n\n")[0]
    for line in table.splitlines()[2:]:
        name, told, density = (cell.strip() for cell in line.strip("|").split("|"))
        yield [name.strip("`"), told, density]


def test_the_table_of_events() -> None:
    """Every event that can come, with all of its fields."""
    kinds = {
        name: each
        for name, each in vars(streaming).items()
        if isinstance(each, type) and issubclass(each, StreamEvent) and name not in ("StreamEvent", "StreamEnd")
    }
    assert {name: re.findall(r"`(\w+)`", told) for name, told, _ in rows()} == {
        name: [field.name for field in fields(each) if field.name != "owner"] for name, each in kinds.items()
    }
    for name, each in kinds.items():
        (density,) = [density for row, _, density in rows() if row == name]
        assert ("(density `full`)" in (each.__doc__ or "")) is (density == "full")


def test_numbers_and_links() -> None:
    """What the pages say in numbers is so, and their links lead somewhere."""
    assert f"the first {LONGEST} characters" in PAGES["chat"]
    for page in PAGES.values():
        for link in re.findall(r"\]\(([^)]+)\)", page):
            assert (FOLDER / link).is_file()
