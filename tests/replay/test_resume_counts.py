"""What a dead run spent, called and failed counts for the limits of the one that continues it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from playhead import Agent, load_recording, tool
from playhead.compose import killswitches as ks
from playhead.replay import resume
from playhead.testing import call, calls, text
from playhead.trace.types import Usage
from tests.replay.resumed_shop import DONE, dead, make, script

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()


async def test_more_budget(tmp_path: Path) -> None:
    """What was spent counts: with the same limit it stops where it stopped, with a higher one it goes on."""
    spent = {"usage": Usage(input_tokens=1_000, output_tokens=10)}
    turns = script(
        calls(call("look", key="a"), **spent), calls(call("charge", amount=5), **spent), text("Charged.", **spent)
    )

    def limited(tokens: int, folder: Path | None) -> Agent:
        return make(folder, turns, compose=[ks.budget_limit(max_tokens=tokens, output_cap=50)])

    assert (await limited(3_000, tmp_path).run("Do it.", run_id="run")).terminated_by == "budget_limit"
    DONE.clear()
    same = await resume(limited(3_000, None), tmp_path / "run.jsonl", run_id="same")
    assert (same.terminated_by, DONE) == ("budget_limit", [])
    more = await resume(limited(30_000, None), tmp_path / "run.jsonl", run_id="more", again=True)
    assert (more.output, DONE) == ("Charged.", [])
    assert more.usage.input_tokens == 3_000


async def test_a_request_in_flight_may_have_been_billed(tmp_path: Path) -> None:
    """What was set aside for it counts as spent, and it is asked again with what is left; else the run ends."""
    turns = script(call("look", key="a"), text("Done."))

    def limited(tokens: int, folder: Path | None) -> Agent:
        return make(folder, turns, compose=[ks.budget_limit(max_tokens=tokens, output_cap=50)])

    path = await dead(tmp_path, limited(3_500, tmp_path), "llm-requested", 1)
    recorded = [json.loads(line) for line in path.read_bytes().splitlines()]
    (reserved,) = [each["data"]["tokens"] for each in recorded if each["kind"] == "budget-reserved"]
    result = await resume(limited(3_500, None), path)
    assert result.trace_path is not None
    left = [
        record.event.left_tokens  # type: ignore[attr-defined]
        for record in load_recording(result.trace_path).records
        if record.kind == "budget-reserved"
    ]
    assert left[0] == 3_500 - 2 * reserved
    tight = await resume(limited(2 * reserved - 100, None), path, again=True)
    assert tight.terminated_by == "budget_limit"


async def test_failures_before_count_for_the_circuit_breaker(tmp_path: Path) -> None:
    """Also the last one, after which the run died before the breaker could fire."""

    @tool(read_only=True)
    async def broken() -> str:
        """Fail."""
        raise ValueError("no")

    turns = script(call("broken"), call("broken"), text("Done."))
    path = await dead(tmp_path, make(tmp_path, turns, broken), "tool-call-completed", 2)
    result = await resume(make(None, turns, broken, compose=[ks.circuit_breaker(2)]), path)
    assert result.terminated_by == "circuit_breaker"
