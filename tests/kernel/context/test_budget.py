from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead import context_profile
from playhead.kernel.context.budget import TokenBudget, allocate_budget
from playhead.kernel.context.tokens import estimate_tokens
from playhead.trace.types import ImagePart, Message, ToolSpec

MID = context_profile("mid")


@pytest.mark.parametrize(
    ("iteration", "schemas", "expected"),
    [
        (0, 0, TokenBudget(1000, 0, 750, 250)),
        (0, 200, TokenBudget(1000, 200, 550, 250)),
        (5, 0, TokenBudget(1000, 0, 775, 225)),
        (10, 0, TokenBudget(1000, 0, 800, 200)),
        (99, 0, TokenBudget(1000, 0, 800, 200)),
        (0, 5000, TokenBudget(1000, 1000, 0, 0)),
    ],
)
def test_what_the_tokens_are_for(iteration: int, schemas: int, expected: TokenBudget):
    """The past may have the more the fewer turns are still to come; the schemas are taken from that."""
    assert allocate_budget(1000, MID, iteration, 10, tool_schemas=schemas) == expected


@given(st.integers(0, 10**9), st.integers(-5, 10**6), st.integers(0, 10**6), st.integers(0, 10**9))
def test_the_parts_are_the_whole(total: int, iteration: int, most: int, schemas: int):
    """Nothing is given away twice, and nothing is owed."""
    budget = allocate_budget(total, MID, iteration, most, tool_schemas=schemas)
    assert budget.tool_schemas + budget.step_history + budget.remaining == total
    assert min(budget.tool_schemas, budget.step_history, budget.remaining) >= 0


def test_estimates():
    """A token for four characters, a few for a message, a thousand for an image."""
    assert [estimate_tokens(each) for each in ("", "abcd", "abcde")] == [0, 1, 2]
    assert estimate_tokens(Message(id=0, role="user", content="abcd" * 10)) == 14
    assert estimate_tokens(Message(id=0, role="user", content=(ImagePart(url="data:,"),))) == 1004
    schema = {"type": "object"}
    assert estimate_tokens(ToolSpec(name="look", description="Look at it.", parameters=schema)) == 4 + (15 + 18) // 4
