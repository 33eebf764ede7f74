"""What the tests of the trace share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pathlib import Path

settings.register_profile("no deadline", deadline=None)  # machines that run tests are busy
settings.load_profile("no deadline")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the trace of the test is."""
    return tmp_path / "run.jsonl"
