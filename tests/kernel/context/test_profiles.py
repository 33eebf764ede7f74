from __future__ import annotations

from typing import Any

import pytest

from playhead import UsageError
from playhead.kernel.context.settings import context_profile
from playhead.trace.types import ContextProfile
from tests.kernel.runs import make_agent


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_agent(None, [], profile="lokal"), "there is no profile 'lokal'. Did you mean 'local'?"),
        (lambda: make_agent(None, [], max_tokens=3), "Context(max_tokens=…) must be a whole number of at least 100; it is 3"),
        (lambda: make_agent(None, [], profile=ContextProfile(rules="detailed")), "context_profile has no setting 'rules'."),  # type: ignore[call-arg]
        (lambda: context_profile("mid", synthesis="slow"), "context_profile: synthesis: Input should be 'fast' or 'off'"),
    ],
)  # fmt: skip
def test_what_cannot_be(make: Any, message: str):
    """Is an error that says what can."""
    with pytest.raises(UsageError) as raised:
        make()
    assert str(raised.value).startswith(message)
