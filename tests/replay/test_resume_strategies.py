"""Every strategy goes on from wherever it died: same answer, nothing done twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, Context, tool
from playhead.errors import UnresolvedCallError
from playhead.kernel.strategies.base import list_strategies, make_strategy
from playhead.replay import ResultOverride, reproduce, resume
from playhead.testing import ScriptedModel, call, text
from tests.kernel.plan.steps import analysis, plan, tool_step, verdict
from tests.kernel.strategies.looking import score, thoughts
from tests.proving import sample

if TYPE_CHECKING:
    from pathlib import Path

SENT: list[str] = []


@tool(read_only=True)
async def look(key: str) -> dict[str, Any]:
    """Look something up."""
    return {"key": key, "n": 5}


@tool
async def send(to: str) -> str:
    """Send something."""
    SENT.append(to)
    return f"sent to {to}"


LOOK, SEND, DONE = call("look", key="a"), call("send", to="ann"), text("Done: sent.")
SCRIPTS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "adaptive": ({"candidates": ["reactive", "direct"]}, [text("reactive"), LOOK, SEND, DONE]),
    "autonomous": ({}, [text("I will."), LOOK, SEND, call("finish", result="Done: sent.")]),
    "chain-of-thought": ({}, [LOOK, SEND, text("<thinking>Well.</thinking>\nDone: sent.")]),
    "direct": ({}, [LOOK, SEND, DONE]),
    "plan-execute-reflect": (
        {},
        [
            plan(tool_step("look", args={"key": "a"}), analysis("Whom?"), tool_step("send", args={"to": "ann"})),
            text("ann"),
            verdict(),
            DONE,
        ],
    ),
    "reactive": ({}, [LOOK, SEND, DONE]),
    "reflexion": (
        {},
        [
            LOOK,
            SEND,
            text("Sent."),
            text('{"issues": ["Say done."], "score": 4, "satisfied": false}'),
            DONE,
            text('{"issues": [], "score": 10, "satisfied": true}'),
        ],
    ),
    "tree-of-thought": (
        {"breadth": 2, "depth": 2, "good_enough": None},
        [thoughts("Look.", "Guess."), score(8), score(3), thoughts("By name.", "By place."), score(4), score(9),
         LOOK, SEND, DONE],
    ),
}  # fmt: skip


def agent_of(strategy: str, turns: list[Any], folder: Path | None) -> Agent:
    """Return the agent, with what its model is still to say."""
    settings = SCRIPTS[strategy][0] if strategy in SCRIPTS else {}
    model = ScriptedModel(turns)
    return Agent(
        model,
        tools=[look, send],
        strategy=make_strategy(strategy, settings),
        context=Context(meta_tools=()),
        trace=folder,
    )


def test_no_strategy_is_left_out() -> None:
    """But for the one that runs each program in a process of its own, which takes its time: it is cut in fewer places."""
    assert {*SCRIPTS, "code-action"} == set(list_strategies())


@pytest.mark.slow
@pytest.mark.parametrize("strategy", SCRIPTS)
async def test_it_goes_on(strategy: str, tmp_path: Path) -> None:
    """Cut after every line, a run comes to the same end, and its message is sent once."""
    SENT.clear()
    turns = SCRIPTS[strategy][1]
    whole = await agent_of(strategy, turns, tmp_path).run("Do it.", run_id="run")
    assert (whole.success, SENT) == (True, ["ann"])
    assert whole.trace_path is not None
    lines = whole.trace_path.read_bytes().splitlines(keepends=True)
    events = [json.loads(line) for line in lines]
    for kept in range(1, len(lines), sample(1, 3)):
        path = tmp_path / str(kept) / "run.jsonl"
        path.parent.mkdir()
        path.write_bytes(b"".join(lines[:kept]))
        kinds = [(each["kind"], each["data"].get("tool")) for each in events[:kept]]
        SENT[:] = ["ann"] * (("tool-call-started", "send") in kinds)
        left = turns[sum(kind == "llm-responded" for kind, _ in kinds) :]
        said: dict[str, Any] = {}
        if kinds.count(("tool-call-started", "send")) > kinds.count(("tool-call-completed", "send")):
            with pytest.raises(UnresolvedCallError) as caught:
                await resume(agent_of(strategy, left, None), path)
            said = {each.key: ResultOverride("send", result="sent to ann") for each in caught.value.calls}  # type: ignore[attr-defined]
        result = await resume(agent_of(strategy, left, None), path, unresolved=said)
        assert (result.output, result.steps, result.usage) == (whole.output, whole.steps, whole.usage), kept
        assert SENT == ["ann"], kept
        assert result.trace_path is not None
        if kept % 4 == 1:
            assert (await reproduce(result.trace_path)).identical


PROGRAM = "```python\nlook(key='a')\nsend(to='ann')\nsend(to='bob')\n```"
BROKEN = {
    "error": "it died",
    "calls": [{"tool": "send", "arguments": {"to": "ann"}, "ok": True, "result": "sent to ann"}],
}
"""What somebody says of a program that died after its first message."""
CUTS: dict[str, tuple[tuple[str, int], list[str], Any, list[str]]] = {
    "before the program": (("llm-responded", 1), [], None, ["ann", "bob"]),
    "in the program": (("tool-call-completed", 2), ["ann"], BROKEN, ["ann", "bob"]),
    "after the program": (("tool-call-completed", 4), ["ann", "bob"], None, ["ann", "bob"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("cut", CUTS)
async def test_a_program_goes_on(cut: str, tmp_path: Path) -> None:
    """A program is one call: what it had called is said, and what the caller says of that is not done again."""
    (kind, nth), sent, said, all_sent = CUTS[cut]
    turns = [text(PROGRAM), text(PROGRAM) if said else text("Done."), text("Done.")]
    whole = await agent_of("code-action", turns[:1] + turns[-1:], tmp_path).run("Do it.", run_id="run")
    assert whole.trace_path is not None
    lines = whole.trace_path.read_bytes().splitlines(keepends=True)
    at = [place for place, line in enumerate(lines) if json.loads(line)["kind"] == kind][nth - 1]
    path = tmp_path / "dead" / "run.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"".join(lines[: at + 1]))
    SENT[:] = sent
    unresolved: dict[str, Any] = {}
    if said:
        with pytest.raises(UnresolvedCallError, match=r'its body had called send.*"ann".*, which returned') as caught:
            await resume(agent_of("code-action", [], None), path)
        unresolved = {each.key: ResultOverride(each.tool, result=said) for each in caught.value.calls}  # type: ignore[attr-defined]
    result = await resume(agent_of("code-action", turns[1:], None), path, unresolved=unresolved)
    assert (result.output, SENT) == ("Done.", all_sent)
    assert result.trace_path is not None
    assert (await reproduce(result.trace_path)).identical
