"""The guides say what is so: their code runs and prints what stands below it, their links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages import blocks_of, run_page

DOCS = Path(__file__).parents[1] / "docs"
TESTED_ELSEWHERE = {
    "agent",
    "hooks",
    "audit-a-decision",
    "backtest",
    "real-models",
    "record",
    "replay-a-model-change",
    "replay-a-prompt-change",
    "reproduce",
}
"""The guides whose code stands for itself, or needs a recording of a real model."""
GUIDES = sorted(path for path in (DOCS / "guides").glob("*.md") if path.stem not in TESTED_ELSEWHERE)
WITH_CODE = [DOCS / "tutorial.md", *(path for path in GUIDES if blocks_of(path))]
MADE = DOCS / "reference" / "api"
PAGES = sorted(path for path in DOCS.rglob("*.md") if MADE not in path.parents)
TREE = re.compile(r"^```{toctree}\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda path: path.stem)
def test_its_code(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every block of a guide runs, one after the other, and prints what the guide says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path / "traces"))
    monkeypatch.syspath_prepend(str(DOCS.parent))
    run_page(page, capsys)


@pytest.mark.parametrize("page", [DOCS.parent / "README.md", *PAGES], ids=lambda path: path.stem)
def test_its_links(page: Path) -> None:
    """Every link to a file leads to one."""
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert link.startswith("http") or (page.parent / link).exists(), link


def test_every_page_is_reached_from_the_navigation() -> None:
    """Each page of the site is in the table of contents of another one."""
    listed = {DOCS / "index.md"}
    for page in PAGES:
        for tree in TREE.findall(page.read_text(encoding="utf-8")):
            entries = [line for line in tree.splitlines() if line and not line.startswith(":")]
            listed |= {(page.parent / f"{entry}.md").resolve() for entry in entries}
    assert set(PAGES) - listed == set()
