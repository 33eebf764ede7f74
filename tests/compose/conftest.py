"""What the tests of compose share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from playhead.compose import tags
from tests import own_strategies

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def register():
    """Return a function that registers a strategy for the time of a test."""
    return own_strategies.register


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch):
    """Return a function that declares a tag for the time of a test."""
    monkeypatch.setattr(tags, "_declared", set())
    return tags.declare_tag


@pytest.fixture(autouse=True)
def no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep every run out of the real home."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    yield
    assert not (tmp_path / "home/.playhead/traces").exists(), "a test of compose says where it records"
