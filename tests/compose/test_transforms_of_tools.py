from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import tool
from playhead.testing import call, calls, text
from tests.compose.hooked import (
    TEXT_CALL,
    changes,
    contents,
    on,
    open_calls,
    run_with,
    suppress,
)
from tests.kernel.runs import data

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.types import ToolCall


SCRIPT = [call("lookup", key="a"), text("done")]

# --- messages --------------------------------------------------------------------------------------------------------


async def test_a_result_for_the_model(tmp_path: Path):
    """A changed result message changes what the model gets; steps keep the result."""
    run = await run_with(
        tmp_path, SCRIPT, on("message.tool-result", lambda message, _: message.model_copy(update={"content": "***"}))
    )
    assert contents(run.model.requests[1])[-1] == ("tool", "***")
    assert run.steps()[-1] == ("observation", "lookup", "found a")
    assert changes(run) == [("message.tool-result", "call_0_0", "hook", {"content": "found a"}, {"content": "***"})]


@pytest.mark.parametrize(("turn", "left"), [(call("lookup", key="a"), [("tool", "(removed)")]), (text(TEXT_CALL), [])])
async def test_a_suppressed_result(tmp_path: Path, turn: Any, left: Any):
    """A removed result is gone; where a provider wants an answer to every call, the answer says so."""
    run = await run_with(tmp_path, [turn, text("done")], suppress("message.tool-result"))
    assert contents(run.model.requests[1])[3:] == left
    assert "found a" not in str(run.model.requests)
    assert (run.steps()[-1], open_calls(run)) == (("observation", "lookup", "found a"), [])


# --- tools -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", [call("lookup", key="a"), text(TEXT_CALL)], ids=["native", "text"])
async def test_a_call(tmp_path: Path, turn: Any):
    """The changed call is what runs, what is hashed and recorded, and what the steps show."""

    def change(asked: ToolCall, context: Any) -> ToolCall:
        assert (context.tool, context.call_id) == (asked.name, asked.id)
        return asked.model_copy(update={"name": "save", "arguments": {"value": "b"}})

    run = await run_with(tmp_path, [turn, text("done")], on("tool.call", change))
    (started,) = run.events("tool-call-started")
    assert (started.tool, started.args) == ("save", {"value": "b"})
    assert run.steps() == [("action", "save", '{"value": "b"}'), ("observation", "save", "saved b")]
    assert run.model.requests[1].messages[-1].name == "save"
    assert [each[2:] for each in changes(run)] == [
        ("hook", {"name": "lookup", "arguments": {"key": "a"}}, {"name": "save", "arguments": {"value": "b"}})
    ]
    assert open_calls(run) == []


@pytest.mark.parametrize("turn", [call("lookup", key="a"), text(TEXT_CALL)], ids=["native", "text"])
async def test_a_suppressed_call_is_refused(tmp_path: Path, turn: Any):
    """A removed call does not run; the model gets an error result, and the thread stays in order."""
    run = await run_with(tmp_path, [turn, text("done")], suppress("tool.call"))
    (completed,) = run.events("tool-call-completed")
    assert data(completed)["ended"] == "refused"
    assert "a hook removed the call of lookup" in contents(run.model.requests[1])[-1][1]
    assert (run.result.output, open_calls(run)) == ("done", [])


async def test_changed_arguments_are_checked_and_approved(tmp_path: Path):
    """Validation and approval apply to the arguments as the hook left them."""
    asked: list[Any] = []

    @tool(requires_approval=True)
    async def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    def approve(request: Any) -> bool:
        asked.append(request.arguments)
        return True

    def change(each: ToolCall, context: Any) -> ToolCall:
        return each.model_copy(update={"arguments": {"amount": [5, "much"][context.iteration]}})

    run = await run_with(
        tmp_path,
        [call("pay", amount=1), call("pay", amount=2), text("done")],
        on("tool.call", change),
        tools=[pay],
        approver=approve,
    )
    assert asked == [{"amount": 5}]
    assert [event.ok for event in run.events("tool-call-completed")] == [True, False]


async def test_a_result(tmp_path: Path):
    """The model and the steps get the changed result; the trace keeps what the tool returned."""
    run = await run_with(
        tmp_path, SCRIPT, on("tool.result", lambda result, _: result.model_copy(update={"result": {"key": 1}}))
    )
    assert contents(run.model.requests[1])[-1] == ("tool", '{"key": 1}')
    assert run.steps()[-1] == ("observation", "lookup", '{"key": 1}')
    assert [event.result for event in run.events("tool-call-completed")] == ["found a"]
    assert changes(run) == [
        ("tool.result", "call_0_0", "hook", {"ok": True, "result": "found a", "error": None}, {"ok": True, "result": {"key": 1}, "error": None})
    ]  # fmt: skip


async def test_parallel_calls(tmp_path: Path):
    """Calls that run beside each other pass hooks one after the other, in asking order, so that nothing depends on time."""
    order: list[str] = []

    async def change(asked: ToolCall, context: Any) -> ToolCall:
        order.append(f"in {asked.id}")
        await anyio.sleep(0.003 / len(order))
        order.append(f"out {asked.id}")
        assert context.call_id == asked.id
        return asked.model_copy(update={"arguments": {"key": f"{(asked.arguments or {})['key']}{asked.id[-1]}"}})

    turns = [calls(call("lookup", key="x"), call("lookup", key="y"), call("lookup", key="z")), text("done")]
    run = await run_with(tmp_path, turns, on("tool.call", change))
    assert order == [f"{way} call_0_{place}" for place in range(3) for way in ("in", "out")]
    assert {(key, after["arguments"]["key"]) for _, key, _, _, after in changes(run)} == {
        ("call_0_0", "x0"), ("call_0_1", "y1"), ("call_0_2", "z2"),
    }  # fmt: skip
    assert contents(run.model.requests[1])[-3:] == [("tool", f"found {each}") for each in ("x0", "y1", "z2")]


async def test_calls_that_hooks_gave_side_effects_run_alone(tmp_path: Path):
    """Where hooks give one call of a batch side effects, each of them runs alone, for what it is after the hooks."""
    inside: list[str] = []
    overlaps: list[tuple[str, ...]] = []

    async def body(name: str) -> str:
        inside.append(name)
        overlaps.append(tuple(inside))
        await anyio.sleep(0.005)
        inside.remove(name)
        return name

    @tool(read_only=True)
    async def look(key: str) -> str:
        """Look."""
        return await body(key)

    @tool
    async def pay(key: str) -> str:
        """Pay."""
        return await body(f"pay {key}")

    def change(asked: ToolCall, _: Any) -> ToolCall | None:
        return asked.model_copy(update={"name": "pay"}) if asked.arguments in ({"key": "a"}, {"key": "b"}) else None

    turns = [calls(*(call("look", key=key) for key in "abcd")), text("done")]
    run = await run_with(tmp_path, turns, on("tool.call", change), tools=[look, pay], max_parallel=4)
    assert overlaps == [("pay a",), ("pay b",), ("c",), ("d",)]
    assert [content for role, content in contents(run.model.requests[1]) if role == "tool"] == [
        "pay a",
        "pay b",
        "c",
        "d",
    ]
