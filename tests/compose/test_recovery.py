from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead.compose import Harness, Recover, Stop
from playhead.errors import ModelRequestError, RecordingEndedError, TraceWriteError, UsageError
from playhead.kernel.loop import Kernel, run_kernel
from playhead.kernel.react import act, observe, think
from playhead.kernel.state import KernelState, Thread, transition
from playhead.testing import call, calls, error, text
from tests.compose.hooked import contents, failures, fired, open_calls, run_with, save
from tests.kernel.runs import ended, ending, make_agent
from tests.kernel.strategies.looking import lookup

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.compose import Block

PHASE = {"thinking": think, "acting": act, "observing": observe}


def recovering(phase: Any = "*", **changes: Any) -> Block:
    """Return a block that goes on after every error, from the state with these changes."""
    return lambda harness: harness.on_error(
        phase, lambda _, context: Recover(transition(context.state, **changes), "again"), name="hook"
    )


@pytest.fixture
def failing(register: Any):
    """Return a function that registers a loop in which one phase fails in one turn, before or after its work."""

    def make(status: str, *, after: bool, error: Exception | None = None) -> None:
        async def phase(state: KernelState, session: Any) -> KernelState:
            fails = state.iteration == 1
            if fails and not after:
                raise error or ValueError("broken")
            reached = await PHASE[status](state, session)
            if fails:
                raise error or ValueError("broken")
            return reached

        kernel = Kernel("failing", {**PHASE, status: phase})  # type: ignore[dict-item]

        async def strategy(state: KernelState, session: Any) -> KernelState:
            return await run_kernel(kernel, state, session)

        register("failing", strategy)

    return make


SCRIPT = [call("lookup", key="a"), calls(call("lookup", key="b"), call("save", value="c")), text("done"), text("done")]


@pytest.mark.parametrize("limit", [1, 3])
async def test_a_model_that_always_fails(tmp_path: Path, limit: int):
    """A hook that always recovers ends at the limit of turns."""
    run = await run_with(tmp_path, [error("dead")] * 9, recovering(), max_iterations=limit)
    assert ending(run) == ended("done", "max_iterations", None, limit)
    assert len(fired(run)) == len(run.model.requests) == limit


@pytest.mark.parametrize("after", [False, True], ids=["before its work", "after its work"])
@pytest.mark.parametrize("status", PHASE)
@pytest.mark.parametrize("written", [False, True], ids=["native", "text"])
async def test_a_phase_that_fails(tmp_path: Path, failing: Any, status: str, after: bool, written: bool):
    """Wherever in the turn it fails: the next one starts with a thread in which every call has exactly one answer."""
    failing(status, after=after)
    turn = text('{"name": "lookup", "arguments": {"key": "b"}}') if written else SCRIPT[1]
    run = await run_with(tmp_path, [SCRIPT[0], turn, *SCRIPT[2:]], recovering(), strategy="failing")
    assert run.result.output == "done"
    assert open_calls(run) == []
    (event,) = fired(run)
    assert event["phase"] == {"thinking": "think", "acting": "act", "observing": "observe"}[status]
    kinds = run.kinds()
    assert kinds.count("tool-call-started") == kinds.count("tool-call-completed")


async def test_a_recovered_state(tmp_path: Path):
    """A hook may set thread, output, notes and the decision log; the trace says which, and the run continues with them."""
    seen: list[Any] = []

    def hook(error: Exception, context: Any) -> Recover:
        assert isinstance(error, ModelRequestError)
        state = context.state
        cut = Thread().add(*state.thread.messages[:2])
        return Recover(transition(state, thread=cut, meta={"a": 1}, decision_log=("cut",), iteration=99, steps=()))

    def block(harness: Harness) -> None:
        harness.on_error("think", hook, name="hook")
        harness.after("think", lambda context: seen.append(context.state), name="look")

    run = await run_with(tmp_path, [call("lookup", key="a"), error("dead"), text("done")], block)
    assert fired(run)[0]["changes"] == {"thread": [0, 1], "meta": {"a": 1}, "decision_log": ["cut"]}
    assert [role for role, _ in contents(run.model.requests[2])] == ["system", "user"]
    assert (seen[-1].meta, seen[-1].decision_log) == ({"a": 1}, ("cut",))
    assert (run.result.iterations, len(run.result.steps)) == (3, 2)


@pytest.mark.parametrize("fatal", [TraceWriteError("disk"), RecordingEndedError("end"), UsageError("no key")], ids=repr)
async def test_what_no_hook_may_ignore(tmp_path: Path, failing: Any, fatal: Exception):
    """No hook can recover from the end of a recording or from an event that cannot be written."""
    failing("thinking", after=False, error=fatal)
    asked: list[Any] = []

    def block(harness: Harness) -> None:
        harness.on_error("*", lambda error, _: asked.append(error))

    agent = make_agent(tmp_path, SCRIPT, lookup, save, compose=[block], strategy="failing")
    with pytest.raises(type(fatal)):
        await agent.run("Do it.", run_id="run")
    assert asked == ([fatal] if isinstance(fatal, UsageError) else [])


NO_RECOVERY: list[Any] = [
    lambda _: 5,
    lambda _: Stop("no"),
    lambda _: Recover(None),  # type: ignore[arg-type]
    lambda state: Recover(state, 5),  # type: ignore[arg-type]
    lambda state: Recover(transition(state, thread=Thread((5,), ((0, 0),)))),  # type: ignore[arg-type]
    lambda state: Recover(transition(state, decision_log=(5,))),
    lambda state: Recover(transition(state, nonsense=5)),
    lambda _: Recover(KernelState.model_construct()),
    lambda _: 1 / 0,
]


async def test_error_hooks_that_fail_keep_the_error(tmp_path: Path):
    """A run whose error hooks fail ends with the error of its model; each failure is recorded."""

    def block(harness: Harness) -> None:
        for number, answer in enumerate(NO_RECOVERY):
            harness.on_error("*", lambda _, context, answer=answer: answer(context.state), name=f"{number}")  # type: ignore[misc]

    run = await run_with(tmp_path, [call("lookup", key="a"), error("dead")], block)
    assert ending(run) == ended("failed", "llm_error", "found a", 2, error="dead")
    assert type(run.error) is ModelRequestError
    assert (failures(run), fired(run)) == ([(f"{number}", "on-error think") for number in range(len(NO_RECOVERY))], [])
