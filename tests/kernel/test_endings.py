"""Every way in which a run can end: one end, which result and trace state alike, and nothing starts after it."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import Agent, Context, RunError, ToolContext, load_recording, tool
from playhead.compose import Stop, Terminate
from playhead.compose import killswitches as ks
from playhead.diagnose.debrief import TERMINATED_BY
from playhead.diagnose.integrity import check_trace
from playhead.errors import RecordingEndedError, StrategyError
from playhead.kernel.lifecycle.termination import Termination
from playhead.kernel.session import RunContext, Session, World
from playhead.kernel.session_setup import open_session
from playhead.kernel.state import KernelState, transition
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, TickingClock, call, calls, error, text
from playhead.trace.format import ANSWERED
from playhead.trace.header import AgentHeader
from playhead.trace.recorder import Recorder
from playhead.trace.types import Usage
from tests.kernel.hung import HungModel
from tests.kernel.runs import data, ended, ending, make_agent, record
from tests.kernel.strategies.looking import broken, lookup

if TYPE_CHECKING:
    from pathlib import Path


LOOK = call("lookup", key="a")
ENDLESS = [LOOK, *[call("lookup", key="b")] * 20]


def agent(folder: Path, turns: Any, *blocks: Any, **options: Any) -> Agent:
    """Return an agent under these blocks."""
    return make_agent(folder, turns, lookup, broken, compose=blocks, **options)


def hung(folder: Path, *blocks: Any) -> Agent:
    """Return an agent that looks up `a`, and then waits for ever."""
    return Agent(
        HungModel(anyio.sleep_forever),
        tools=[lookup],
        compose=blocks,
        trace=folder,
        context=Context(rationale=False, meta_tools=()),
    )


def at(phase: Any, answer: Any) -> Any:
    """Return a block with a hook before a phase of the second turn."""
    return lambda harness: harness.before(phase, lambda context: answer if context.iteration else None, name="mine")


def failing_hook(_answer: Any, _context: Any) -> None:
    """Fail."""
    raise ValueError("cannot look")


def child_of_one_that_ends(folder: Path) -> Agent:
    """Return an agent that ends while the one below it runs."""

    @tool(read_only=True)
    async def stop_above(context: ToolContext) -> str:
        """Stop the agent above."""
        assert context.session.parent is not None
        context.session.parent.terminate("killed", "enough", source="switch")
        return "stopped"

    below = Agent(
        ScriptedModel([call("stop_above")] * 2), name="below", tools=[stop_above], context=Context(rationale=False)
    )
    return make_agent(folder, [call("below", task="Go."), text("never")], below)


FOUND = ("done", "found a")
"""Status and output of a run that was stopped after it had found `a`."""
FAILED = ("failed", "found a")


def case(turns: Any, *blocks: Any, by: str = "kernel", end: tuple[str, Any] = FOUND, **options: Any) -> Any:
    """Return how to make the agent, who ends it, and status and output; without turns it hangs after `a` was found."""
    if turns is None:
        return lambda folder: hung(folder, *blocks), by, end
    return lambda folder: agent(folder, turns, *blocks, **options), by, end


def required_hook(harness: Any) -> None:
    """Require a hook that fails before the answer leaves."""
    harness.on("answer.final", failing_hook, required=True, name="mine")


DONE = ("done", "42")
FINAL: dict[str, Any] = {"meta_tools": ("final-answer",)}
NOT_SATISFIED = [text("41"), text('{"satisfied": false, "score": 3}')]
ONE_ROUND: dict[str, Any] = {"strategy": "reflexion", "strategy_settings": {"max_retries": 0}}
BUDGET = ks.budget_limit(max_tokens=1_650, output_cap=50)
DENIED = ks.require_approval_for("broken", lambda _: False, on_trigger="stop")
RAISES = ks.stop_when(lambda context: 1 / (1 - (context.iteration or 0)) == 0)
CASES: dict[str, tuple[Any, str, tuple[str, Any]]] = {
    "final_answer_tool": case([LOOK, call("final-answer", output="42")], end=DONE, **FINAL),
    "final_answer": case([text("So.\nFINAL answer : 42")], end=DONE),
    "end_turn": case([LOOK, text("42")], end=DONE),
    "end_turn (for an unknown reason)": case([text("42", finish_reason="no such reason")], end=DONE),
    "output_truncated": case([text("It is", finish_reason="length")], end=("done", "It is")),
    "output_truncated (in other words)": case([text("It is", finish_reason="MAX_TOKENS")], end=("done", "It is")),
    "output_filtered": case([LOOK, text("", finish_reason="safety")]),
    "output_filtered (with a text)": case([text("42", finish_reason="content_filter")], end=DONE),
    "required_tools_missing": case([text("42")] * 5, by="policy:require_tools", end=DONE, required_tools=["lookup"]),
    "output_rejected": case(
        [text("42")], by="policy:validate", end=("failed", "42"), validators=[lambda _: False], output_retries=0
    ),
    "unsatisfied": case(NOT_SATISFIED, end=("done", "41"), **ONE_ROUND),
    "max_iterations": case(ENDLESS, max_iterations=1),
    "max_iterations (the newest call having failed)": case([LOOK, call("lookup")], max_iterations=2),
    "max_iterations (with nothing)": case([text("")] * 2, end=("done", None), max_iterations=2),
    "max_iterations (switch)": case(ENDLESS, ks.max_iterations(1), by="killswitch:max_iterations"),
    "llm_error": case([LOOK, error("no such model")], end=FAILED),
    "hook_stop": case(ENDLESS, at("think", Stop("enough")), by="hook:mine"),
    "hook_terminate": case(ENDLESS, at("think", Terminate("bad")), by="hook:mine", end=FAILED),
    "hook_failed": case([LOOK, text("42")], required_hook, by="hook:mine", end=("failed", None)),
    "timeout_after": case(None, ks.timeout_after(0.05), by="killswitch:timeout_after"),
    "timeout_after (terminate)": case(
        None, ks.timeout_after(0.05, on_trigger="terminate"), by="killswitch:timeout_after", end=FAILED
    ),
    "watchdog": case(None, ks.watchdog(0.05), by="killswitch:watchdog"),
    "budget_limit": case(ENDLESS, BUDGET, by="killswitch:budget_limit", end=("done", "found b")),
    "tool_limit": case(ENDLESS, ks.tool_limit("lookup", 1), by="killswitch:tool_limit"),
    "circuit_breaker": case([LOOK, *[call("broken")] * 9], ks.circuit_breaker(2), by="killswitch:circuit_breaker"),
    "require_approval_for": case([LOOK, call("broken")], DENIED, by="killswitch:require_approval_for"),
    "stop_when": case(ENDLESS, ks.stop_when(lambda context: context.iteration == 1), by="killswitch:stop_when"),
    "stop_when (a predicate that raises)": case(ENDLESS, RAISES, by="killswitch:stop_when", end=FAILED),
}
"""The endings that need nothing but an agent."""


@pytest.mark.parametrize("name", CASES)
async def test_an_ending(tmp_path: Path, name: str):
    """A run has one end, which result and trace state alike: a typed reason, who ended it, and the best output."""
    make, source, expected = CASES[name]
    await check(make(tmp_path), tmp_path, name.split(" (", maxsplit=1)[0], source, expected)


async def check(agent: Agent, folder: Path, code: str, source: str, expected: tuple[str, Any]) -> None:
    """Run an agent, and look at its end."""
    try:
        result: Any = await agent.run("Do it.", run_id="run")
    except RunError as raised:
        result = raised.result
    check_end(folder, code, source, expected)
    ending: Any = load_recording(folder / "run.jsonl").ending
    for field in ("status", "output", "terminated_by", "terminated_source", "terminated_because", "error"):
        assert getattr(result, field) == getattr(ending, field), field
    assert result.success is (code in ANSWERED)


def check_end(folder: Path, code: str, source: str, expected: tuple[str, Any]) -> None:
    """Look at the trace: closed, with one end."""
    recording = load_recording(folder / "run.jsonl")
    assert check_trace(recording.path).ok
    assert [record.kind for record in recording.records].count("run-completed") == 1
    assert recording.records[-1].kind == "run-completed"
    ending: Any = recording.ending
    assert (ending.terminated_by, ending.terminated_source) == (code, source)
    assert (ending.status, ending.output) == expected
    assert (ending.error is not None) is (expected[0] == "failed")
    assert code in TERMINATED_BY
    fired = [record.event for record in recording.records if record.kind == "killswitch-fired"]
    assert [f"killswitch:{event.switch}" for event in fired] == [source] * source.startswith("killswitch:")  # type: ignore[attr-defined]


async def test_replay_stopped(tmp_path: Path):
    """A replay stops where the recording has no answer."""

    async def ended() -> None:
        raise RecordingEndedError("the recording ends here")

    made = Agent(HungModel(ended), tools=[lookup], trace=tmp_path, context=Context(rationale=False, meta_tools=()))
    with pytest.raises(RecordingEndedError):
        await made.run("Do it.", run_id="run")
    check_end(tmp_path, "replay_stopped", "kernel", FAILED)


async def test_cancelled(tmp_path: Path):
    """The caller cancels the run."""
    with anyio.move_on_after(0.03):
        await hung(tmp_path).run("Do it.", run_id="run")
    check_end(tmp_path, "cancelled", "kernel", FAILED)


async def test_parent_ended(tmp_path: Path):
    """A sub-agent ends when the agent above has ended."""
    await child_of_one_that_ends(tmp_path).run("Do it.", run_id="run")
    recording = load_recording(tmp_path / "run.jsonl")
    (below,) = [record.event for record in recording.records if record.kind == "agent-completed"]
    told = data(below)
    assert (told["terminated_by"], told["status"], told["output"]) == ("parent_ended", "failed", "stopped")


@pytest.mark.parametrize(
    ("code", "source", "expected"),
    [("stopped", "caller", ("done", "a, I think")), ("terminated", "killswitch:terminate", FAILED)],
)
async def test_ended_by_its_handle(tmp_path: Path, code: str, source: str, expected: tuple[str, Any]):
    """A handle stops the run in order, or terminates it."""
    made = agent(tmp_path, [LOOK, text("a, I think")])
    handle = made.start("Do it.", run_id="run")

    def pull(_record: Any) -> None:
        assert handle.stop() if code == "stopped" else handle.terminate()

    made.subscribe("tool-call-completed", pull)
    result = await handle
    check_end(tmp_path, code, source, expected)
    assert (result.terminated_by, result.output, result.success) == (code, expected[1], False)


@pytest.mark.parametrize("code", ["kill_file", "kill"])
async def test_ended_by_another_process(tmp_path: Path, code: str):
    """A kill file or `playhead kill` ends the run."""
    file = tmp_path / "end"
    made = hung(tmp_path, *([ks.kill_file(file)] if code == "kill_file" else []))
    asked: list[bool] = []

    def pull(_record: Any) -> None:
        if asked:
            return
        asked.append(True)
        if code == "kill_file":
            file.touch()
        else:
            (tmp_path / ".control" / "run" / "kill").write_text('{"why": "enough"}')

    made.subscribe("tool-call-completed", pull)
    await check(made, tmp_path, code, f"killswitch:{code}", FOUND)


ELSEWHERE = {
    *("error", "replay_stopped", "cancelled", "parent_ended", "kill_file", "kill", "stopped", "terminated"),
    "trace_error",  # in test_run_faults
}
"""The codes that have a test of their own."""


def test_every_code_has_a_case():
    """Every reason code has a run that ends with it."""
    assert {name.split(" (", maxsplit=1)[0] for name in CASES} | ELSEWHERE == set(TERMINATED_BY)
    assert not {name.split(" (", maxsplit=1)[0] for name in CASES} & ELSEWHERE


# --- the turn that ends a run -----------------------------------------------------------------------------------------

ONE, TWO = (call("final-answer", output=each) for each in "12")


@pytest.mark.parametrize("turn", [[LOOK, ONE, TWO], [ONE, LOOK]], ids=["before", "after"])
async def test_calls_beside_the_end(tmp_path: Path, turn: list[Any]):
    """A second call that would end the run does not run; results of other calls are in the steps and the thread."""
    run = await record(tmp_path, [LOOK, calls(*turn)], lookup, **FINAL)
    assert (run.result.output, run.result.terminated_by) == ("1", "final_answer_tool")
    started = [event for event in run.events("tool-call-started") if event.request == 1]
    assert sorted(event.tool for event in started) == ["final-answer", "lookup"]
    observed = [step.call_id for step in run.result.steps if step.type == "observation"]
    assert observed[1:] == [event.call_id for event in sorted(started, key=lambda event: event.position)]
    results = [event.ref.call for event in run.events("message-added") if event.ref and event.ref.call]
    assert results == observed
    assert (await reproduce(run.recording)).identical


def test_a_destroyed_coroutine(tmp_path: Path):
    """A run whose coroutine is destroyed, without a loop, closes its trace."""
    loop = asyncio.new_event_loop()
    asked = asyncio.Event()

    class Model(ScriptedModel):
        async def complete(self, request: Any) -> Any:
            asked.set()
            await asyncio.Event().wait()

    running = make_agent(tmp_path, Model([])).run("Do it.", run_id="run")
    task = loop.create_task(running)
    loop.run_until_complete(asked.wait())
    loop.close()
    running.close()
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # as it is meant to be
    recording = load_recording(tmp_path / "run.jsonl")
    assert (recording.status, check_trace(recording.path).verdict) == ("closed", "ok")
    assert recording.ending is not None
    assert (recording.ending.status, recording.ending.terminated_by) == ("failed", "cancelled")


# --- strategies that end in their own way -----------------------------------------------------------------------------


async def raises(state: KernelState, session: Session) -> KernelState:
    """Fail."""
    raise ValueError("no \ud800 way")


async def forgets(state: KernelState, session: Session) -> None:
    """Return no state."""


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (raises, "ValueError: no \ufffd way"),
        (forgets, "TypeError: the strategy broken returned NoneType, not a KernelState"),
    ],
)
async def test_a_broken_strategy(tmp_path: Path, register: Any, broken: Any, message: str):
    """The trace is closed, and the error names the exception and carries the result."""
    register("broken", broken)
    run = await record(tmp_path, [], strategy="broken")
    assert ending(run) == ended("failed", "error", None, 0, error=message)
    assert str(run.error) == f"the strategy raised {message}"
    assert isinstance(run.error, StrategyError)
    assert type(run.error.__cause__).__name__ == message.partition(":")[0]


async def test_a_strategy_that_just_returns(tmp_path: Path, register: Any):
    """Without an explicit end, the output of the state is the answer."""

    async def simple(state: KernelState, session: Session) -> KernelState:
        completion = await session.model.complete(state.thread)
        return transition(state, output={"said": completion.text})

    register("simple", simple)
    run = await record(tmp_path, [text("42")], strategy="simple")
    assert ending(run) == ended("done", "end_turn", {"said": "42"}, 0, terminated_source="strategy:simple")
    assert run.result.usage == Usage(input_tokens=2, output_tokens=2)
    assert (await reproduce(run.recording)).identical


# --- after the end ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_one_of_many_ends_wins():
    """Of eight threads that end an agent at once, one succeeds, and its reason holds."""
    for _ in range(50):
        run = RunContext("run", Recorder(TickingClock()), World())
        session = open_session(run, AgentHeader(name="agent", model="x/y"), ScriptedModel([]), {})
        start = threading.Barrier(8)
        winners: list[str] = []

        def end(name: str, session: Session = session, start: Any = start, winners: list[str] = winners) -> None:
            start.wait()
            if session.terminate(name, f"from {name}", source=name):
                winners.append(name)

        threads = [threading.Thread(target=end, args=(f"switch-{number}",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (winner,) = winners
        assert session.termination == Termination(winner, f"from {winner}", source=winner)
