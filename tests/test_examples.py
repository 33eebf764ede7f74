"""Every example runs, and prints what it is there to show."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import printed

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py") if path.stem not in ("__init__", "tools"))
EXPECTED = printed(Path(__file__).with_name("examples.txt"))
"""What each example prints, without `kind=` lines."""


def test_every_example_is_here() -> None:
    """No example is left out."""
    assert sorted(EXPECTED) == EXAMPLES


@pytest.fixture
def environment() -> Iterator[None]:
    """The environment is as it was afterwards: some examples name a collector in it."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.slow
@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("name", EXAMPLES)
def test_it_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """An example works as it stands, with an empty home."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("HOME", str(tmp_path))
    runpy.run_module(f"examples.{name}", run_name="__main__")
    lines = [line for line in capfd.readouterr().out.splitlines() if not line.startswith("kind=")]
    assert lines == EXPECTED[name]


@pytest.mark.slow
def test_one_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    """Nothing is printed to stderr, no warning is raised, and it exits with 0."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.record_and_reproduce"],
        cwd=ROOT, env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr, done.stdout.splitlines()) == (0, "", EXPECTED["record_and_reproduce"])
