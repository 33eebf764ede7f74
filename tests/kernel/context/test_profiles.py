from __future__ import annotations

from typing import Any

import pytest

from playhead import UsageError
from playhead.kernel.context.settings import context_profile
from playhead.trace.types import ContextProfile
from tests.kernel.runs import make_agent


@pytest.mark.parametrize(
    ("tier", "steps", "chars", "whole"),
    [("local", 4, 400, 3), ("mid", 6, 800, 5), ("large", 8, 1200, 7), ("frontier", 12, 2000, 10)],
)
def test_the_numbers(tier: Any, steps: int, chars: int, whole: int):
    """Of each tier, as the table says."""
    profile = context_profile(tier)
    assert (profile.tier, profile.compact_after_steps, profile.tool_result_max_chars, profile.full_detail_steps) == (
        tier,
        steps,
        chars,
        whole,
    )


@pytest.mark.parametrize(
    ("given", "limit", "expected"),
    [
        (None, None, None),
        ("local", None, context_profile("local")),
        (None, 8000, context_profile("mid", max_context_tokens=8000)),
        ("large", 8000, context_profile("large", max_context_tokens=8000)),
        (ContextProfile(compact_after_steps=2), None, ContextProfile(compact_after_steps=2)),
        (ContextProfile(compact_after_steps=2), 500, ContextProfile(compact_after_steps=2, max_context_tokens=500)),
    ],
)
def test_which_profile_an_agent_has(given: Any, limit: int | None, expected: ContextProfile | None):
    """The one that it was given; for a window alone that of the tier in the middle."""
    assert make_agent(None, [], profile=given, max_tokens=limit).header.profile == expected


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
