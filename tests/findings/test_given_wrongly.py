"""What an agent is given in another form than it takes: refused where it is made, never taken for nothing."""

from __future__ import annotations

from typing import Any

import pytest

from playhead import Context, UsageError
from playhead.compose import policies
from playhead.compose.killswitches import tool_limit
from playhead.compose.redaction import redact_results
from tests.findings.adapter import agent

POLICIES = [getattr(policies, name) for name in vars(policies)["__all__"] if name[0].islower()]


@pytest.mark.parametrize("block", [*POLICIES, redact_results], ids=lambda block: block.__name__)
def test_a_block_without_its_parentheses(block: Any):
    """It would register nothing and say nothing: it is refused, with what to write."""
    with pytest.raises(UsageError, match=rf"write {block.__name__}\(…\) in compose"):
        agent([], compose=[block])


def test_a_block_that_only_makes_another_one():
    """A killswitch that a block returns and does not use would never fire."""

    def stacked(_harness: Any) -> Any:
        return tool_limit("lookup", 0)

    with pytest.raises(UsageError, match=r"or harness.use\(…\) in a block of yours"):
        agent([], compose=[stacked])


def test_a_block_that_returns_what_undoes_it():
    """A block may return the undo of what it registered."""
    made = agent(
        [], compose=[lambda harness: harness.tap("**", print), lambda harness: harness.use(tool_limit("a", 1))]
    )
    assert [hook.name for hook in made.header.hooks] == ["print", "tool_limit"]


@pytest.mark.parametrize("given", [{"rationale": "yes"}, {"rationale": 0}, {"facts": [("a", 1)]}])
def test_a_context_of_another_form(given: dict[str, Any]):
    """A value of the wrong type is refused, not coerced."""
    with pytest.raises(UsageError, match=rf"^Context\({next(iter(given))}=…\)"):
        Context(**given)
