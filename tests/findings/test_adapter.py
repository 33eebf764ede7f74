"""The adapter that the findings' tests speak through does what it says."""

from __future__ import annotations

from playhead import tool
from playhead.testing import call, text
from tests.findings.adapter import agent, cli, observations, replay, reproduce, run


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look a fact up."""
    return f"{key}: 4180"


def test_a_run_its_replay_and_its_reproduction(tmp_path):
    """A recorded run can be replayed with other turns and reproduced, and its observations are what the tools answered."""
    result = run(agent([call("lookup", key="zed"), text("4180")], [lookup], trace=tmp_path))
    assert observations(result) == ["zed: 4180"]
    assert observations(replay(result.trace_path, [call("lookup", key="zed"), text("so high")])) == ["zed: 4180"]
    assert reproduce(result.trace_path).identical
    assert cli("check", result.trace_path).returncode == 0
