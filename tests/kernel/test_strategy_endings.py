from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead.compose.killswitches import budget_limit
from playhead.errors import StrategyError
from playhead.kernel.state import KernelState, transition
from playhead.replay import reproduce
from playhead.testing import text
from playhead.trace.integrity import check_trace
from playhead.trace.types import Usage
from tests.kernel.runs import ended, ending, make_agent, record

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.kernel.session import Session


class Unspeakable(Exception):  # noqa: N818 - it is no error of ours
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (ValueError("no \ud800 way"), "ValueError: no \ufffd way"),
        (ValueError(), "ValueError: ValueError"),
        (Unspeakable(), "Unspeakable: Unspeakable"),
        (ExceptionGroup("many", [ValueError("a")]), "ExceptionGroup: many (1 sub-exception)"),
    ],
    ids=["words", "no words", "no way to say it", "group"],
)
async def test_error(tmp_path: Path, register: Any, raised: Exception, message: str):
    """A strategy that raises: the trace is closed, and the error says what was raised and carries the result."""

    async def broken(state: KernelState, session: Session) -> KernelState:
        raise raised

    register("broken", broken)
    run = await record(tmp_path, [], strategy="broken")
    assert ending(run) == ended("failed", "error", None, 0, error=message)
    assert type(run.error) is StrategyError
    assert str(run.error) == f"the strategy raised {message}"
    assert run.error.__cause__ is raised


async def test_a_strategy_that_exits_the_program(tmp_path: Path, register: Any):
    """`SystemExit` out of a strategy goes on its way, after the trace was closed."""

    async def leave(state: KernelState, session: Session) -> KernelState:
        raise SystemExit(3)

    register("leave", leave)
    with pytest.raises(SystemExit):
        await make_agent(tmp_path, [], strategy="leave").run("Do it.", run_id="run")
    assert check_trace(tmp_path / "run.jsonl").verdict == "ok"


async def test_a_strategy_that_just_returns(tmp_path: Path, register: Any):
    """A strategy need not end the run itself: its state's output is the answer."""

    async def simple(state: KernelState, session: Session) -> KernelState:
        completion = await session.model.complete(state.thread)
        return transition(state, output={"said": completion.text})

    register("simple", simple)
    run = await record(tmp_path, [text("42")], strategy="simple")
    assert ending(run) == ended("done", "end_turn", {"said": "42"}, 0, terminated_source="strategy:simple")
    assert run.result.usage == Usage(input_tokens=2, output_tokens=2)
    assert (await reproduce(run.recording)).identical


@pytest.mark.parametrize("over", [False, True])
async def test_a_strategy_that_returns_no_state(tmp_path: Path, register: Any, over: bool):
    """A strategy that forgets to return its state is told so, and the trace is closed."""

    async def forgetful(state: KernelState, session: Session) -> None:
        if over:
            session.terminate("enough", "42", source="switch")

    register("forgetful", forgetful)
    run = await record(tmp_path, [], strategy="forgetful")
    message = "the strategy raised TypeError: the strategy forgetful returned NoneType, not a KernelState"
    assert (type(run.error), str(run.error)) == (StrategyError, message)
    assert run.result.terminated_by == ("enough" if over else "error")


async def test_a_strategy_that_catches_the_end(tmp_path: Path, register: Any):
    """A strategy that goes on after the end cannot change it: the first ending stands."""

    async def stubborn(state: KernelState, session: Session) -> KernelState:
        session.terminate("first", "one", source="switch")
        session.terminate("second", "two", failed=True, error="no")
        return transition(state, output="three", status="failed", error="no")

    register("stubborn", stubborn)
    run = await record(tmp_path, [], strategy="stubborn")
    assert ending(run) == ended("done", "first", "one", 0, terminated_source="switch")


@pytest.mark.parametrize("hooked", [False, True], ids=["alone", "with a hook"])
async def test_what_a_killswitch_stops_keeps_the_best_answer(tmp_path: Path, hooked: bool):
    """The answer that a strategy held when it was stopped is the output, whether hooks look at the end or not."""
    blocks = [lambda harness: harness.on("message.tool-result", lambda message, _: message)] if hooked else []
    run = await record(tmp_path, [text("42")], strategy="reflexion", compose=[*blocks, budget_limit(max_tokens=300)])
    assert (run.result.terminated_by, run.result.output) == ("budget_limit", "42")
    assert (await reproduce(run.recording)).identical
