from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, ToolContext, tool
from playhead.compose import Harness, Stop, Terminate
from playhead.compose.redaction import redact_results
from playhead.testing import ScriptedModel, call, text
from tests.compose.hooked import changes, contents, fired, run_with, sent
from tests.kernel.runs import Ran, ending, record
from tests.kernel.strategies.looking import lookup
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.compose import Block

INNER = "root/child@0.0"


def child(turns: list[Any], *tools: Any, compose: Any = (), name: str = "child", **options: Any) -> Agent:
    """Return an agent to be called by another one."""
    model = ScriptedModel(turns, name=f"scripted/{name}")
    return Agent(
        model, **grouped(name=name, tools=tools, compose=compose, **{"rationale": False, "meta_tools": (), **options})
    )


async def run_boss(folder: Path, below: Agent, *blocks: Block, **options: Any) -> Ran:
    """Run an agent that calls another one once."""
    run = await record(folder, [call("child", task="Go."), text("done")], below, compose=blocks, **options)
    both = [*run.model.requests, *below.model.requests]  # type: ignore[attr-defined]
    assert sorted(sent(run), key=str) == sorted(both, key=str)
    return run


async def test_sub_agents_inherit_the_callers_hooks(tmp_path: Path):
    """The caller's hooks change the sub-agent's prompts and its answer, too, but for its seeds and those with `inherit=False`."""
    seen: list[str] = []

    def block(harness: Harness) -> None:
        harness.on("prompt.system", lambda prompt, context: f"Acme {context.agent}. {prompt}", name="header")
        harness.on("answer.final", lambda answer, context: f"{context.owner}: {answer}", name="sign")
        harness.on("prompt.system", lambda prompt, _: f"Own. {prompt}", name="own", inherit=False)
        harness.before("think", lambda context: seen.append(context.agent), inherit=False)
        harness.tap("lifecycle.*", lambda _, context: seen.append(context.agent), inherit=False)
        harness.emit("message.user", "By the way.")

    below = child([text("42")], system_prompt="Child.")
    run = await run_boss(tmp_path, below, block, system_prompt="Boss.")
    first = contents(run.model.requests[0])
    assert (first[0], first[2]) == (("system", "Own. Acme agent. Boss."), ("user", "By the way."))
    assert contents(below.model.requests[0]) == [("system", "Acme child. Child."), ("user", "Go.")]  # type: ignore[attr-defined]
    assert contents(run.model.requests[1])[-1] == ("tool", f"{INNER}: 42")
    assert run.result.output == "root: done"
    for owner, hooks in (("root", ["header", "own", "sign"]), (INNER, ["header", "sign"])):
        assert [event.hook for event in run.events("emission-changed", owner=owner)] == hooks
    assert set(seen) == {"agent"}


@pytest.mark.parametrize(
    ("answer", "status", "by"),
    [(Stop("enough"), "done", "hook_stop"), (Terminate("broken"), "failed", "hook_terminate")],
)
async def test_an_inherited_hook_ends_the_sub_agent(tmp_path: Path, answer: Any, status: str, by: str):
    """A phase hook ends the agent whose phase it is; the caller gets a result and continues."""

    def block(harness: Harness) -> None:
        harness.before("think", lambda context: answer if context.owner != "root" else None, name="hook")

    run = await run_boss(tmp_path, child([text("42")]), block)
    (completed,) = run.events("agent-completed")
    assert (completed.status, completed.terminated_by, completed.terminated_source) == (status, by, "hook:hook")
    assert (run.result.output, run.result.terminated_by, len(fired(run))) == ("done", "end_turn", 1)
    (told,) = run.events("tool-call-completed")
    assert told.ok is (status == "done")


async def test_the_redaction_of_the_caller_covers_those_below(tmp_path: Path):
    """A secret that an agent below reads is hidden from its model, and from its caller's."""
    below = child([call("lookup", key="4111"), call("lookup", key="4111")], lookup, max_iterations=1)
    run = await run_boss(tmp_path, below, redact_results(lambda words: words.replace("found 4111", "****")))
    told = [contents(request) for request in [*below.model.requests, *run.model.requests]]  # type: ignore[attr-defined]
    assert "found 4111" not in str(told)
    assert contents(run.model.requests[1])[-1] == ("tool", "****")


# --- what a tool's body asks -----------------------------------------------------------------------------------------


@tool
async def research(topic: str, context: ToolContext) -> str:
    """Research."""
    answer = await context.model.ask(f"What of {topic}?", temperature=0)
    found = await context.tools.call("lookup", key=answer.text)
    return f"{answer.text}, {found}"


async def test_hooks_change_what_a_body_gets(tmp_path: Path):
    """Hooks change the requests, answers, calls and results of a tool's body; the trace holds them as sent."""

    def inside(change: Any) -> Any:
        return lambda payload, context: change(payload) if context.owner != "root" else None

    def block(harness: Harness) -> None:
        harness.on(
            "llm.request", inside(lambda request: replace(request, parameters={"seed": 1}, tools=(lookup.spec,)))
        )
        harness.on("llm.response", inside(lambda answer: answer.model_copy(update={"text": answer.text.upper()})))
        harness.on("tool.call", inside(lambda asked: asked.model_copy(update={"arguments": {"key": "b"}})))
        harness.on("tool.result", inside(lambda result: result.model_copy(update={"result": f"<{result.result}>"})))

    run = await run_with(
        tmp_path, [call("research", topic="x"), text("one"), text("done")], block, tools=[research, lookup]
    )
    assert run.steps()[-1] == ("observation", "research", "ONE, <found b>")
    request = run.model.requests[1]
    assert (request.parameters, [spec.name for spec in request.tools]) == ({"seed": 1}, ["lookup"])
    assert [(tag, key) for tag, key, *_ in changes(run)] == [
        ("llm.request", "0"), ("llm.response", "0"), ("tool.call", "call_0"), ("tool.result", "call_0"),
    ]  # fmt: skip


@tool
async def stubborn(task: str, context: ToolContext) -> str:
    """Go on, whatever happens."""
    for _ in range(3):
        try:
            await context.model.ask(task)
        except Exception:  # noqa: BLE001, S112 - stubborn
            continue
    return "tried"


@pytest.mark.parametrize("below", [stubborn, child([text("42")], name="stubborn")], ids=["a body", "an agent"])
async def test_a_required_hook_that_fails_below_ends_the_run(tmp_path: Path, below: Any):
    """The agent relies on its required hook: when that fails below, the agent ends too, whatever a body catches."""

    def fail(*given: Any) -> None:
        if given[1].owner != "root":
            raise ValueError("no")

    def block(harness: Harness) -> None:
        harness.tap("llm.request", fail, required=True)

    run = await record(tmp_path, [call("stubborn", task="Go."), text("done")], below, compose=[block])
    end = ending(run)
    assert (end["status"], end["terminated_by"], end["output"]) == ("failed", "hook_failed", None)
    assert (len(run.model.requests), getattr(getattr(below, "model", None), "requests", [])) == (1, [])
