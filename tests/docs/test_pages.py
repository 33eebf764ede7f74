"""The pages are true: their code runs and prints what they show, their links lead somewhere, their navigation is complete."""

from __future__ import annotations

import io
import re
import sys
from importlib import invalidate_caches
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.docs.pages import DOCS, PAGES, ROOT, blocks_of, page_id

NOT_RUN = {
    "docs/guides/agent": "fragments of the reference",
    "docs/guides/backtest": "needs recordings of the reader's own",
    "docs/guides/many-runs": "asks a real model",
    "docs/guides/real-models": "asks a real model",
    "docs/your-own-loop": "run in tests/instrument, with a model of its own",
    "docs/guides/record": "asks a real model",
    "docs/guides/replay-a-model-change": "asks a real model",
    "docs/guides/replay-a-prompt-change": "asks a real model",
    "docs/guides/reproduce": "reads a recording of a real model",
    "docs/guides/hooks": "run in test_tables.py, with a model of its own",
    "docs/guides/audit-a-decision": "run in tests/diagnose",
    "docs/trace-format": "run in tests/trace",
    "docs/index": "asks a real model",
    "README": "asks a real model",
}
"""Pages whose code does not run here, and why."""
OTHERS = re.compile(r"^(?:from|import) (?:agents|phoenix|langfuse|logfire|opentelemetry\.exporter)\b", re.MULTILINE)
"""Blocks that need packages which are not installed here; tests/providers and test_frameworks.py run them."""
WITH_CODE = [page for page in PAGES if blocks_of(page) and page_id(page) not in NOT_RUN]
TREE = re.compile(r"^```{toctree}\n(.*?)^```", re.DOTALL | re.MULTILINE)


def write_module(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a module into the current folder, and unload it when the test ends."""
    Path(f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setitem(sys.modules, name, ModuleType(name))
    del sys.modules[name]
    invalidate_caches()


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE, ids=page_id)
def test_its_code_prints_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The blocks of a page run in order and print the text below them; a block that begins with a file's name becomes that file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path / "traces"))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.syspath_prepend(str(tmp_path))
    names: dict[str, Any] = {"__name__": page.stem}
    for text, printed in blocks_of(page):
        file = re.match(r"# (\w+)\.py\n", text)
        if file is not None:
            write_module(file[1], text, monkeypatch)
            continue
        if OTHERS.search(text):
            continue
        exec(compile(text, page.name, "exec"), names)  # noqa: S102 - our own page
        assert capsys.readouterr().out == printed


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_its_links(page: Path) -> None:
    """Every link leads to a file, and to a heading of it."""
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        path, _, heading = link.partition("#")
        if path.startswith("http"):
            continue
        target = page.parent / path if path else page
        assert target.exists(), link
        if heading:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}
            assert heading in anchors, link


def test_every_page_is_reached_from_the_navigation() -> None:
    """Each page of the site is in the table of contents of another page."""
    listed = {DOCS / "index.md", ROOT / "README.md"}
    for page in PAGES:
        for tree in TREE.findall(page.read_text(encoding="utf-8")):
            entries = [line for line in tree.splitlines() if line and not line.startswith(":")]
            listed |= {(page.parent / f"{entry}.md").resolve() for entry in entries}
    assert set(PAGES) - listed == set()


def test_every_exception_is_a_page() -> None:
    """A page that does not run here exists and has code."""
    assert {page_id(page) for page in PAGES if blocks_of(page)} >= NOT_RUN.keys()
