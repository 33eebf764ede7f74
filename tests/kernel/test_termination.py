from __future__ import annotations

import ast
import re
import threading
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import pytest

import playhead
from playhead import tool
from playhead.errors import RunEndedError
from playhead.kernel.lifecycle.termination import Termination
from playhead.kernel.opening import open_session
from playhead.kernel.session import RunContext, Session, World
from playhead.kernel.state import KernelState, Thread
from playhead.kernel.strategies.reactive import Reactive
from playhead.testing import ScriptedModel, TickingClock, call, calls, text
from playhead.trace.recorder import Recorder
from playhead.trace.types import AgentHeader, Rationale
from tests.kernel.runs import make_agent, record

PACKAGE = Path(playhead.__file__).parent


def a_session(**fields: Any) -> Session:
    """Return a session that records nowhere."""
    run = RunContext("run", Recorder(TickingClock()), World())
    return open_session(run, AgentHeader(name="agent", model="x/y"), ScriptedModel([text("hello")]), {}, **fields)


def test_of_many_who_end_a_session_one_wins():
    """Eight threads that end an agent at the same time: one is told that it did, and its reason stands."""
    for _ in range(50):
        session = a_session()
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


def test_an_ending_says_everything():
    """The reason, the output, why, by whom, and what broke are kept as they were given."""
    session = a_session()
    why = Rationale(why="enough")
    assert session.terminate(
        "quality", {"a": 1}, rationale=why, source="switch", failed=True, error="boom", answer={"format": "json"}
    )
    assert session.termination == Termination(
        "quality", {"a": 1}, why, "switch", failed=True, error="boom", answer={"format": "json"}
    )
    assert not session.terminate("other")
    assert session.termination.reason == "quality"


async def test_nothing_starts_after_the_end():
    """Once an agent has ended, its model, its tools and its facts are not asked any more."""
    ran: list[str] = []

    @tool
    def write(key: str) -> str:
        ran.append(key)
        return key

    model = ScriptedModel([text("hello")])
    run = RunContext("run", Recorder(TickingClock()), World())
    session = open_session(run, AgentHeader(name="agent", model="x/y"), model, {"write": write})
    session.terminate("enough")
    for ask in (
        lambda: session.model.complete(Thread()),
        lambda: session.model.ask("What?"),
        lambda: session.tools.call("write", key="a"),
        lambda: session.facts.ask("clock", lambda: ran.append("fact")),
    ):
        with pytest.raises(RunEndedError, match="root of run run has ended; nothing starts any more"):
            await ask()
    assert (model.requests, ran) == ([], [])


async def test_what_works_for_an_agent_ends_with_it():
    """When an agent has ended, everything below it has, whatever else may be true of that."""
    parent = a_session()
    child = a_session(parent=parent, owner="root/child@0.0")
    grandchild = a_session(parent=child, owner="root/child@0.0/grandchild@0.0")
    assert [each.ended for each in (parent, child, grandchild)] == [False, False, False]
    child.terminate("enough")
    assert [each.ended for each in (parent, child, grandchild)] == [False, True, True]
    parent.terminate("enough")
    with pytest.raises(RunEndedError, match=re.escape("root/child@0.0/grandchild@0.0 of run run has ended")):
        await grandchild.model.complete(Thread())


async def test_a_run_ended_from_another_thread_makes_no_further_call(tmp_path: Path):
    """A switch in another thread that ends the run while the model answers: the calls it asks for do not start."""
    sessions: list[Session] = []
    ran: list[str] = []

    @tool
    def write(key: str) -> str:
        ran.append(key)
        return key

    def answer(_request: Any) -> Any:
        thread = threading.Thread(target=sessions[0].terminate, args=("killed",), kwargs={"source": "switch"})
        thread.start()
        thread.join()
        return calls(call("write", key="a"), call("write", key="b"))

    agent = make_agent(tmp_path, [answer, text("never")], write)
    original = Session.__init__

    def remembering(self: Session, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        sessions.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "__init__", remembering)
        result = await agent.run("Do it.")
    assert (result.terminated_by, result.terminated_source, result.status) == ("killed", "switch", "done")
    assert (ran, len(agent.model.requests)) == ([], 1)  # type: ignore[attr-defined]


async def test_of_calls_that_run_together_those_that_wait_do_not_start(tmp_path: Path, register: Any):
    """A run that ends while calls stand in line: those that run finish, those that wait never start."""
    ran: list[int] = []
    sessions: list[Session] = []

    @tool(read_only=True)
    async def read(number: int) -> int:
        ran.append(number)
        if number == 0:
            sessions[0].terminate("killed", source="switch")
        await anyio.sleep(0.001)
        return number

    async def with_session(state: KernelState, session: Session) -> KernelState:
        sessions.append(session)
        return await Reactive().run(state, session)

    register("watched", with_session)
    turn = calls(*(call("read", number=number) for number in range(9)))
    run = await record(tmp_path, [turn], read, strategy="watched")
    started = ["call_0_0", "call_0_1", "call_0_2"]
    assert (ran, run.result.terminated_by) == ([0, 1, 2], "killed")
    assert [event.call_id for event in run.events("tool-call-started")] == started
    assert sorted(event.call_id for event in run.events("tool-call-completed") if event.ok) == started


# --- there is no other way -------------------------------------------------------------------------------------------


@cache
def _modules() -> dict[str, ast.Module]:
    return {str(path.relative_to(PACKAGE)): ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}


@cache
def _nodes() -> list[tuple[str, ast.Module, ast.AST]]:
    """Return all nodes that these tests look at, each with its module: walking all of them costs seconds."""
    kinds = (ast.Attribute, ast.Call, ast.Constant, ast.keyword)
    return [
        (module, tree, node)
        for module, tree in _modules().items()
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    ]


def _function_of(tree: ast.Module, node: ast.AST) -> str:
    """Return the class and function that a node stands in."""
    scopes = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    around = [each for each in ast.walk(tree) if isinstance(each, scopes) and node in ast.walk(each)]
    return ".".join(scope.name for scope in sorted(around, key=lambda scope: scope.lineno))


def _calls_of(name: str) -> list[tuple[str, str]]:
    return sorted(
        (module, _function_of(tree, node))
        for module, tree, node in _nodes()
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", None)) == name
    )
