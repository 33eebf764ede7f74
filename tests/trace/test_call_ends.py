"""How a tool call ended is a field of its event, and means the same to everything that counts, serves or judges calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest

from playhead import Agent, tool
from playhead.compose.killswitches import circuit_breaker
from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.statistics import run_statistics
from playhead.replay import load_recording
from playhead.testing import ScriptedModel, call, text
from playhead.trace.events import CALL_ENDS, CallEnd

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ["ApprovalDenied", "UnknownTool", "Timeout"]


def test_each_ending_has_its_meaning():
    """Nothing runs where the kernel refused, denied or stopped, and only what a body gave is served."""
    assert set(CALL_ENDS) == {None, *get_args(CallEnd)}
    assert {each for each, meaning in CALL_ENDS.items() if not meaning.body_ran} == {"refused", "denied", "stopped"}
    assert {each for each, meaning in CALL_ENDS.items() if meaning.served} == {None, "timeout"}


@pytest.mark.parametrize("name", NAMES)
def test_an_exception_may_have_any_name(tmp_path: Path, name: str):
    """A tool's own failure is one, whatever its exception is called: it breaks the circuit, and nobody is said to have denied it."""

    @tool
    def pay() -> str:
        """Pay."""
        raise type(name, (Exception,), {})("the bank does not answer")

    turns = [call("pay"), call("pay"), text("done")]
    agent = Agent(ScriptedModel(turns), tools=[pay], compose=[circuit_breaker(2)], trace=tmp_path)
    result = agent.run_sync("Pay twice.")
    assert result.terminated_by == "circuit_breaker"
    recording = load_recording(str(result.trace_path))
    assert [each.rule for each in build_debrief(recording).flags if "denied" in each.text] == []
    (figures,) = (each for each in run_statistics([recording]).tools if each.tool == "pay")
    assert (figures.calls, figures.failed, figures.refused) == (2, 2, 0)
