"""Agents as tools; and who may write into a session."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

import playhead
from playhead import Agent, tool
from playhead.compose.policies import require_tools
from playhead.kernel.session import RunContext, Session
from playhead.kernel.state import KernelState
from playhead.kernel.strategies.reactive import Reactive
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, call, calls, text
from tests.kernel.runs import record
from tests.options import grouped
from tests.own_strategies import strategy_of

if TYPE_CHECKING:
    from playhead.trace.types import Request


def agent(name: str, turns: list[Any], *tools: Any, **options: Any) -> Agent:
    """Return an agent to be called by another one."""
    model = ScriptedModel(turns, name=f"scripted/{name}")
    return Agent(model, **grouped(name=name, tools=tools, **{"rationale": False, "meta_tools": (), **options}))


def nest(depth: int) -> Agent:
    """Return an agent that calls an agent that calls …, `depth` agents in all."""
    name = f"a{depth}"
    if depth == 1:
        return agent(name, [text("bottom")])
    return agent(name, [call(f"a{depth - 1}", task="Go on."), text(f"{depth} above")], nest(depth - 1))


async def test_the_depth_of_sub_agents(tmp_path: Path):
    """Agents nest three deep; the fourth is refused as a failed call."""
    run = await record(tmp_path, [call("a4", task="Go."), text("done")], nest(4))
    assert list(run.recording.owners) == [
        "root",
        "root/a4@0.0",
        "root/a4@0.0/a3@0.0",
        "root/a4@0.0/a3@0.0/a2@0.0",
    ]
    (refused,) = [event for event in run.events("tool-call-completed") if not event.ok]
    assert (refused.tool, refused.error.type, refused.error.message) == (
        "a1",
        "TooDeep",
        "agents are nested 3 deep already",
    )
    assert run.result.output == "done"
    assert (await reproduce(run.recording)).identical


async def test_agents_side_by_side_get_their_own_results(tmp_path: Path):
    """Parallel sub-agents that make the same call each get their own result, live and in a replay."""
    finished: list[anyio.Event] = []

    @tool(read_only=True)
    async def look(key: str) -> str:
        """Look."""
        finished.append(anyio.Event())
        number = len(finished)
        while len(finished) < 3:
            await anyio.lowlevel.checkpoint()
        if number < 3:
            await finished[number].wait()
        finished[number - 1].set()
        return f"answer {number}"

    def answer(request: Request) -> Any:
        last = request.messages[-1]
        task = str(request.messages[1].content)
        return call("look", key="same") if last.role == "user" else text(f"{task}: {last.content}")

    child = agent("child", [answer] * 6, look)
    turn = calls(*(call("child", task=f"task {number}") for number in "abc"))
    run = await record(tmp_path, [turn, text("done")], child)
    observed = [content for kind, _, content in run.steps() if kind == "observation"]
    assert observed == ["task a: answer 1", "task b: answer 2", "task c: answer 3"]
    in_order = [event.call_id for event in run.events("tool-call-completed", owner="root")]
    assert in_order == ["call_0_2", "call_0_1", "call_0_0"]
    for place, name in enumerate("abc"):
        owner = f"root/child@0.{place}"
        (result,) = [event.result for event in run.events("tool-call-completed", owner=owner)]
        assert result == f"answer {place + 1}"
        assert run.events("agent-completed", owner=owner)[0].output == f"task {name}: {result}"
    assert (await reproduce(run.recording)).identical


async def test_an_unaccepted_answer_of_a_sub_agent_is_a_failed_call(tmp_path: Path):
    """An answer that a policy refused is not passed on."""

    @tool(read_only=True)
    def look() -> str:
        """Look."""
        return "half of it"

    child = agent("child", [text("4180")], look, compose=[require_tools("look", retries=0)])
    run = await record(tmp_path, [call("child", task="Go."), text("done")], child)
    (completed,) = run.events("tool-call-completed")
    why = "required_tools_missing: the task requires a successful call of look, and there was none"
    said = f"the answer of child was not accepted ({why}); it was: 4180"
    assert (completed.ok, completed.error.type, completed.error.message) == (False, "NotAccepted", said)


async def test_a_redactor_of_a_sub_agent_holds_in_the_parents_trace(tmp_path: Path):
    """A sub-agent's redaction holds in the traces of the agents that call it."""
    child = agent("child", [text("it is sesame")], redact=[lambda words: words.replace("sesame", "[the code]")])
    run = await record(tmp_path, [call("child", task="Say sesame."), text("done")], child)
    assert run.events("agent-started")[0].task == "Say [the code]."
    assert run.steps()[1][2] == "it is sesame"
    assert b"sesame" not in (tmp_path / "run.jsonl").read_bytes()


PACKAGE = Path(playhead.__file__).parent

OWNERS = ("emission.py", "session_setup.py", "progress.py", "session.py")
"""The files of a session, and the one that puts it together."""

INTO_A_SESSION = re.compile(r"(.*\.)?_?(session|caller)(\..*)?|(at|gate|toolset|ending)")

ROOMS = ("kernel", "compose", "agent", "replay")

MOST = 15


@pytest.mark.slow
def test_nobody_else_writes_into_a_session():
    """No file assigns to an attribute of a session, or of what hangs on it, that is not its own."""
    written = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} {ast.unparse(node)}"
        for room in ROOMS
        for path in (PACKAGE / room).rglob("*.py")
        if path not in {PACKAGE / "kernel" / name for name in OWNERS}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del))
        if INTO_A_SESSION.fullmatch(ast.unparse(node.value))
    ]
    assert written == []


def test_no_part_has_more_attributes_than_one_can_keep_in_mind():
    """Session, run and state have 15 attributes at most, and so has each part of a session."""
    seen: list[Session] = []

    async def run(state: KernelState, session: Session) -> KernelState:
        seen.append(session)
        return await Reactive().run(state, session)

    Agent(ScriptedModel([text("done")]), strategy=strategy_of("watched", run)(), trace=None).run_sync("go")
    session = seen[0]
    counted = {type(part).__name__: len(vars(part)) for part in (session, session.at, session.gate, session.ending)}
    counted |= {"KernelState": len(KernelState.model_fields), "RunContext": len(fields(RunContext))}
    assert {name: count for name, count in counted.items() if count > MOST} == {}
