"""What every test has."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Run async tests on asyncio."""
    return "asyncio"


@pytest.fixture(autouse=True)
def strategies_of_this_test_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget after each test what strategies it registered."""
    from playhead.kernel import strategies

    monkeypatch.setattr(strategies, "_registry", dict(strategies._registry))
