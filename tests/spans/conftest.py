"""What the tests of delivery share: no telemetry of the caller's, and no export that outlives a test."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from playhead.spans import live
from playhead.spans.environment import say_unused
from tests.spans.collector import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def nothing_exported(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No variable says where spans go; what a test exports ends with it."""
    for name in list(os.environ):
        if name.startswith(("OTEL_", "OPENINFERENCE_", "PHOENIX_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(live._Current, "export", None)
    monkeypatch.setattr(live._Current, "application", None)
    monkeypatch.setattr(live._Current, "refused", False)
    say_unused.cache_clear()
    yield
    if live._Current.export is not None:
        live._Current.export.shutdown(0.5)


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector that takes everything, unless the test says otherwise."""
    made = Collector()
    yield made
    made.close()
