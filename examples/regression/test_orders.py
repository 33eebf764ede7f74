"""What the agent did when it was recorded, it still does."""

import pytest
from agent import agent

from playhead.replay.pytest_plugin import PlayheadRun


@pytest.mark.playhead("traces/late-order.jsonl")
def test_a_late_order(playhead_run: PlayheadRun) -> None:
    """The agent looks the order up and says when it arrives."""
    assert "Wednesday" in playhead_run(agent, "Where is my order 7?")
