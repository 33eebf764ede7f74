"""The guides say what is so: their code runs and prints what stands below it, their links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages import blocks_of, run_page

DOCS = Path(__file__).parents[1] / "docs"
TESTED_ELSEWHERE = {
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
WITH_CODE = [path for path in GUIDES if blocks_of(path)]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda path: path.stem)
def test_its_code(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every block of a guide runs, one after the other, and prints what the guide says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path / "traces"))
    monkeypatch.syspath_prepend(str(DOCS.parent))
    run_page(page, capsys)


@pytest.mark.parametrize("page", GUIDES, ids=lambda path: path.stem)
def test_its_links(page: Path) -> None:
    """Every link to a file leads to one."""
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert link.startswith("http") or (page.parent / link).exists(), link
