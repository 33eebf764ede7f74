"""What the tests of the trace share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the trace of the test is."""
    return tmp_path / "run.jsonl"
