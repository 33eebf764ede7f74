"""Every way in which a run can end, and that there is no other."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

import playhead
from playhead import Agent, Context, PlayheadError, RunError, ToolContext, load_recording, tool
from playhead.compose import Stop, Terminate
from playhead.compose import killswitches as ks
from playhead.errors import RecordingEndedError
from playhead.testing import ScriptedModel, call, error, text
from playhead.trace.events.run import TERMINATED_BY
from playhead.trace.format import ANSWERED
from playhead.trace.integrity import check_trace
from playhead.trace.recorder import Recorder
from tests.kernel.hung import HungModel
from tests.kernel.runs import data, make_agent

HOME = Path(playhead.__file__).parent


@tool(read_only=True)
async def lookup(key: str) -> str:
    """Look up."""
    return f"found {key}"


@tool(read_only=True)
async def broken() -> str:
    """Fail."""
    raise ValueError("no")


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


def strategy_that_raises(folder: Path, register: Any) -> Agent:
    """Return an agent whose strategy fails after a turn."""
    from playhead.kernel.strategies.reactive import Reactive

    async def raising(state: Any, session: Any) -> Any:
        with suppress(PlayheadError):
            await Reactive().run(state, session)
        raise LookupError("gone")

    register("raising", raising)
    turns = [LOOK, error("no")]
    return agent(folder, turns, strategy="raising")


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
CASES: dict[str, tuple[Any, str, tuple[str, Any]]] = {
    "final_answer_tool": (
        lambda folder: agent(folder, [LOOK, call("final-answer", output="42")], meta_tools=("final-answer",)),
        "kernel",
        ("done", "42"),
    ),
    "final_answer": (lambda folder: agent(folder, [text("Final answer: 42")]), "kernel", ("done", "42")),
    "end_turn": (lambda folder: agent(folder, [LOOK, text("42")]), "kernel", ("done", "42")),
    "output_truncated": (
        lambda folder: agent(folder, [text("It is", finish_reason="length")]),
        "kernel",
        ("done", "It is"),
    ),
    "output_filtered": (lambda folder: agent(folder, [LOOK, text("", finish_reason="safety")]), "kernel", FOUND),
    "required_tools_missing": (
        lambda folder: agent(folder, [text("42")] * 5, required_tools=["lookup"]),
        "policy:require_tools",
        ("done", "42"),
    ),
    "output_rejected": (
        lambda folder: agent(folder, [LOOK, text("42")], validators=[lambda _: False], output_retries=0),
        "policy:validate",
        ("failed", "42"),
    ),
    "unsatisfied": (
        lambda folder: agent(
            folder,
            [text("41"), text('{"satisfied": false, "score": 3}')],
            strategy="reflexion",
            strategy_settings={"max_retries": 0},
        ),
        "kernel",
        ("done", "41"),
    ),
    "max_iterations": (lambda folder: agent(folder, ENDLESS, max_iterations=1), "kernel", FOUND),
    "max_iterations (switch)": (
        lambda folder: agent(folder, ENDLESS, ks.max_iterations(1)),
        "killswitch:max_iterations",
        FOUND,
    ),
    "llm_error": (lambda folder: agent(folder, [LOOK, error("no such model")]), "kernel", FAILED),
    "hook_stop": (lambda folder: agent(folder, ENDLESS, at("think", Stop("enough"))), "hook:mine", FOUND),
    "hook_terminate": (lambda folder: agent(folder, ENDLESS, at("think", Terminate("bad"))), "hook:mine", FAILED),
    "hook_failed": (
        lambda folder: agent(
            folder,
            [LOOK, text("42")],
            lambda harness: harness.on("answer.final", failing_hook, required=True, name="mine"),
        ),
        "hook:mine",
        ("failed", None),
    ),
    "timeout_after": (lambda folder: hung(folder, ks.timeout_after(0.05)), "killswitch:timeout_after", FOUND),
    "timeout_after (terminate)": (
        lambda folder: hung(folder, ks.timeout_after(0.05, on_trigger="terminate")),
        "killswitch:timeout_after",
        FAILED,
    ),
    "watchdog": (lambda folder: hung(folder, ks.watchdog(0.05)), "killswitch:watchdog", FOUND),
    "budget_limit": (
        lambda folder: agent(folder, ENDLESS, ks.budget_limit(max_tokens=1_650, output_cap=50)),
        "killswitch:budget_limit",
        ("done", "found b"),
    ),
    "tool_limit": (lambda folder: agent(folder, ENDLESS, ks.tool_limit("lookup", 1)), "killswitch:tool_limit", FOUND),
    "circuit_breaker": (
        lambda folder: agent(folder, [LOOK, *[call("broken")] * 9], ks.circuit_breaker(2)),
        "killswitch:circuit_breaker",
        FOUND,
    ),
    "require_approval_for": (
        lambda folder: agent(
            folder,
            [LOOK, call("broken"), text("never")],
            ks.require_approval_for("broken", lambda _: False, on_trigger="stop"),
        ),
        "killswitch:require_approval_for",
        FOUND,
    ),
    "stop_when": (
        lambda folder: agent(folder, ENDLESS, ks.stop_when(lambda context: context.iteration == 1)),
        "killswitch:stop_when",
        FOUND,
    ),
    "stop_when (a predicate that raises)": (
        lambda folder: agent(folder, ENDLESS, ks.stop_when(lambda context: 1 / (1 - (context.iteration or 0)) == 0)),
        "killswitch:stop_when",
        FAILED,
    ),
}
"""The endings that need nothing but an agent: how it is made, who ends it, and status and output."""


@pytest.mark.parametrize("name", CASES)
async def test_an_ending(tmp_path: Path, name: str):
    """It has one end, which result and trace tell alike: a typed reason, who ended it, and the best there was."""
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


async def test_error(tmp_path: Path, register: Any):
    """A strategy that raises."""
    with pytest.raises(RunError, match="gone"):
        await strategy_that_raises(tmp_path, register).run("Do it.", run_id="run")
    recording = load_recording(tmp_path / "run.jsonl")
    assert recording.ending is not None
    # It swallowed the model's error first, which had ended nothing.
    check_end(tmp_path, "error", "kernel", FAILED)


async def test_replay_stopped(tmp_path: Path):
    """A replay that may not go on, because the recording has no answer."""

    async def ended() -> None:
        raise RecordingEndedError("the recording ends here")

    made = Agent(HungModel(ended), tools=[lookup], trace=tmp_path, context=Context(rationale=False, meta_tools=()))
    with pytest.raises(RecordingEndedError):
        await made.run("Do it.", run_id="run")
    check_end(tmp_path, "replay_stopped", "kernel", FAILED)


async def test_cancelled(tmp_path: Path):
    """A caller that does not wait any more."""
    with anyio.move_on_after(0.03):
        await hung(tmp_path).run("Do it.", run_id="run")
    check_end(tmp_path, "cancelled", "kernel", FAILED)


async def test_trace_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An event that cannot be written, when the run is to stop then. The end itself can be written again."""
    monkeypatch.setenv("PLAYHEAD_ON_TRACE_ERROR", "stop")
    original = Recorder.write

    def lose(self: Recorder, prepared: Any, iteration: int | None) -> bool:
        started = prepared.event.kind == "tool-call-started"
        return not (started and iteration) and original(self, prepared, iteration)

    monkeypatch.setattr(Recorder, "write", lose)
    with pytest.raises(PlayheadError):
        await agent(tmp_path, ENDLESS).run("Do it.", run_id="run")
    ending: Any = load_recording(tmp_path / "run.jsonl").ending
    assert (ending.terminated_by, ending.status, ending.output) == ("trace_error", "failed", "found a")


async def test_parent_ended(tmp_path: Path):
    """An agent below one that has ended."""
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
    """A caller that stops the run, and one that ends it at once; both in its second turn."""
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
    """A file that comes, or `playhead kill`."""
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
    *("error", "replay_stopped", "cancelled", "trace_error", "parent_ended", "kill_file", "kill"),
    *("stopped", "terminated"),
}
"""The codes that have a test of their own above."""


def test_every_code_has_a_case():
    """A new reason code without a run that ends so does not pass."""
    assert {name.split(" (", maxsplit=1)[0] for name in CASES} | ELSEWHERE == set(TERMINATED_BY)
    assert not {name.split(" (", maxsplit=1)[0] for name in CASES} & ELSEWHERE


# --- the code itself ---------------------------------------------------------------------------------------------------

REASON = {
    "terminate": 0,
    "conclude": 0,
    "Termination": 0,
    "guard_block": 0,
    "_clocked": 0,
    "Stop": 2,
    "Terminate": 2,
    "answer": 2,
}
"""The functions that end an agent or make what ends it, with the place of the reason code among their arguments."""
COMPUTED = {
    "best.conclusion.reason",  # how a pass of a strategy ended
    "answer.terminated_by",  # what a hook or a guard said
    "reason",  # what `terminate` was called with, or one of INCOMPLETE
    "answer.reason",  # of an answer that was looked at, and stands
    "name",  # of a `stop_when`
    "self.name",  # of a switch
    "event.terminated_by or 'hook_stop'",  # what was recorded, again
    "event.terminated_by or 'hook_terminate'",
    "event.terminated_by or event.switch",
}
"""Reason codes that stand elsewhere."""
