"""Switches that look at the time: decided from the recorded moments as the live watch decides them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import Agent, Context, Execution, tool
from playhead.compose.killswitches.expressions import parse_switch
from playhead.replay.backtest import backtest
from playhead.testing import ScriptedModel, call, error, text
from tests.proving import PROVE
from tests.replay.switched_runs import recorded
from tests.replay.test_backtest_property import live_stop, told_stop

if TYPE_CHECKING:
    from pathlib import Path

    from playhead import Recording
    from playhead.replay.backtest import RunBacktest

STEP = 0.1
"""Seconds; every delay is a whole number of them, and every limit a half one beside."""


@tool(read_only=True)
async def slow(steps: int) -> str:
    """Take some time."""
    await anyio.sleep(steps * STEP)
    return "so"


@tool(read_only=True)
async def broken(steps: int) -> str:
    """Take some time, and fail."""
    await anyio.sleep(steps * STEP)
    raise ValueError("no")


def after(steps: int) -> dict[str, Any]:
    """Return the field of a turn that comes after some steps."""
    return {"delay_s": steps * STEP}


SCRIPTS: dict[str, Any] = {
    "model": [call("slow", steps=1), text("The end.", **after(3))],
    "call": [call("slow", steps=3), text("The end.")],
    "failures": [*[call("broken", steps=1)] * 3, text("The end.")],
    "retries": [*[error("busy", retryable=True, **after(1))] * 2, text("The end.", **after(1))],
}
SWITCHES = tuple(
    f"{form}({(whole + 0.5) * STEP:.3f}, on_trigger={end!r})"
    for form, end in (("timeout_after", "terminate"), ("watchdog", "stop"))
    for whole in (0, 1, 2, 4)
)


@pytest.mark.skipif(not PROVE, reason="only a quiet machine keeps its times")
async def test_they_stop_where_the_live_ones_do(tmp_path: Path):
    """Same switch and turn, over scripts that hang in the model, in a tool, and that fail again and again; or neither.

    A machine that is held up for half a step moves what is recorded, so there are three tries.
    """
    found: dict[tuple[str, str], str] = {}
    for number in range(3):
        recordings = await _recordings(tmp_path / str(number))
        for (script, switch), live in recordings.items():
            told, same = _compared(recordings[script, ""], live, switch) if switch else (None, False)
            found.update({(script, switch): told.verdict} if told is not None and same else {})
        if len(found) == len(SCRIPTS) * len(SWITCHES):
            break
    verdicts = [*found.values()]
    assert len(verdicts) == len(SCRIPTS) * len(SWITCHES)
    assert set(verdicts) == {"stopped", "untouched"}
    assert min(verdicts.count("stopped"), verdicts.count("untouched")) > 3


async def _recordings(folder: Path) -> dict[tuple[str, str], Recording]:
    """Return a run of each script without a switch (``) and with each."""
    recordings: dict[tuple[str, str], Recording] = {}

    async def run(script: str, switch: str, name: str) -> None:
        agent = _agent(folder, script, *([parse_switch(switch).block] if switch else []))
        recordings[script, switch] = await recorded(agent, folder, name)

    async with anyio.create_task_group() as group:
        for script in SCRIPTS:
            for number, switch in enumerate(("", *SWITCHES)):
                group.start_soon(run, script, switch, f"{script}-{number}")
                await anyio.sleep(STEP / 4)  # the start of a run writes a file: not all at once
    return recordings


def _compared(plain: Recording, live: Recording, switch: str) -> tuple[RunBacktest, bool]:
    expression = [parse_switch(switch)]
    told = backtest(plain, expression)
    return told, told_stop(told) == live_stop(live)


@pytest.mark.parametrize("seconds", [0.5, 1.5])
async def test_what_is_cut_off(tmp_path: Path, seconds: float):
    """Of that nothing is counted as saved: a provider may bill what was cut off."""
    turns = [replace(call("slow", steps=1), **after(1)), text("The end.", **after(1))]
    agent = Agent(ScriptedModel(turns), tools=[slow], trace=tmp_path, context=Context(meta_tools=(), rationale=False))
    recording = await recorded(agent, tmp_path, "run")
    told = backtest(recording, [parse_switch(f"timeout_after({seconds * STEP})")])
    assert told.stop is not None
    assert (told.verdict, told.lost, told.stop.at) == ("stopped", True, "outside")
    assert told.stop.after_ms == pytest.approx(seconds * STEP * 1000)
    assert (told.saved.requests, told.saved.calls) == ((1, 1) if seconds < 1 else (1, 0))
    assert told.saved.seconds == pytest.approx(told.took.seconds - seconds * STEP)


def _agent(folder: Path, script: str, *blocks: Any) -> Agent:
    return Agent(
        ScriptedModel(SCRIPTS[script]),
        tools=[slow, broken],
        compose=blocks,
        trace=folder,
        execution=Execution(retry_delay_s=0, retries=4),
        context=Context(rationale=False, meta_tools=()),
    )
