"""The public API as users write it; mypy checks this file, and nobody runs it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, assert_type

from playhead import (
    Agent,
    Approval,
    ApprovalRequest,
    PlayheadError,
    Recording,
    RunError,
    RunResult,
    ToolContext,
    check_trace,
    load_recording,
    register_strategy,
    reproduce,
    reproduce_sync,
    tool,
)
from playhead.kernel.state import KernelState, Step, transition
from playhead.kernel.tools import FunctionTool
from playhead.replay import Divergence, Reproduction
from playhead.testing import ScriptedModel, TickingClock, Turn, call, calls, error, text, with_match
from playhead.trace.events import LlmRequested, LlmResponded
from playhead.trace.integrity import Check
from playhead.trace.types import Completion, ImagePart, Message, Prices, Request, TextPart, Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.models.base import Model
    from playhead.kernel.session import Session
    from playhead.trace.line import Record

# --- tools -----------------------------------------------------------------------------------------------------------


@tool
def plain(key: str) -> str:
    """Do it."""
    return key


@tool(read_only=True, timeout=2.5, risk="high", key=["key"], cache=True)
async def declared(key: str, context: ToolContext) -> list[str]:
    """Do it."""
    answer = await context.model.ask("What?", temperature=0)
    assert_type(answer, LlmResponded)
    assert_type(context.deadline_us, int | None)
    await context.tools.call("plain", key=answer.text)
    return [key]


assert_type(plain, FunctionTool)
assert_type(declared, FunctionTool)
tool(risk="huge")  # type: ignore[call-overload]
tool(timeout="5")  # type: ignore[call-overload]
tool(read_only=True, colour="red")  # type: ignore[call-overload]


# --- agents ----------------------------------------------------------------------------------------------------------


def approve(request: ApprovalRequest) -> bool | Approval:
    """Decide on a call."""
    return request.risk == "low" or Approval(approved=False, why=f"too risky for {request.owner}", by="ann")


async def approve_later(request: ApprovalRequest) -> Approval:
    """Decide on a call after a while."""
    return Approval(approved=request.tool == "plain")


def function(key: str) -> str:
    """Do it without a decorator."""
    return key


helper = Agent("ollama/qwen3:8b", name="helper", description="Helps.", tools=[plain])
agent = Agent(
    "openai/gpt-4o-mini",
    name="boss",
    tools=[plain, declared, function, helper, helper.as_tool(read_only=True)],
    strategy="reactive",
    strategy_settings={"a": 1},
    system_prompt="Be brief.",
    examples=[Message(id=0, role="user", content="How high?")],
    parameters={"temperature": 0},
    max_iterations=3,
    max_retries=0,
    retry_delay_s=0.5,
    max_parallel=2,
    rationale=False,
    required_tools=["plain"],
    meta_tools=("final-answer",),
    approver=approve,
    redact=[str.lower],
    trace=Path("traces"),
    api_base="http://localhost:8000/v1",
    api_key="none",
    clock=TickingClock,
)
Agent("openai/gpt-4o-mini", approver=approve_later, trace=None)
Agent("openai/gpt-4o-mini", trace="traces")
Agent("openai/gpt-4o-mini", tool=[plain])  # type: ignore[call-arg]
Agent("openai/gpt-4o-mini", max_iterations="3")  # type: ignore[arg-type]
Agent(5)  # type: ignore[arg-type]


async def run() -> None:
    """Run the agent in every way there is."""
    assert_type(await agent.run("Do it."), RunResult)
    await agent.run((TextPart(text="What is this?"), ImagePart(url="https://example.org/a.png")), run_id="run")
    result = agent.run_sync("Do it.")
    assert_type(result.status, Literal["done", "failed"])
    assert_type(result.trace_path, Path | None)
    assert_type(result.usage, Usage)
    assert_type(result.cost_usd, float | None)
    assert_type(result.steps, tuple[Step, ...])
    assert_type(result.success, bool)


def watch(record: Record) -> None:
    """Hear of an event."""
    assert_type(record.owner, str)
    if isinstance(record.event, LlmRequested):
        assert_type(record.event.model, str)


undo = agent.subscribe("llm-requested", watch)
undo()
agent.subscribe(None, watch)
agent.subscribe("llm-requested", lambda: None)  # type: ignore[arg-type, misc]


def fail() -> None:
    """Catch what a run may raise."""
    try:
        agent.run_sync("Do it.")
    except RunError as caught:
        assert_type(caught.trace_path, Path | None)
    except PlayheadError as caught:
        assert_type(caught.exit_code, int)


# --- reading and replaying -------------------------------------------------------------------------------------------

recording = load_recording("latest")
assert_type(recording, Recording)
assert_type(recording.owners["root"].exchanges[0].requested, LlmRequested)
assert_type(recording.root.request(recording.root.exchanges[0].requested), Request)
assert_type(check_trace(Path("run.jsonl")), Check)
assert_type(reproduce_sync("latest"), Reproduction)


async def replay() -> None:
    """Reproduce a recording."""
    outcome = await reproduce(recording, agent=agent)
    assert_type(outcome.divergences, tuple[Divergence, ...])


# --- one's own -------------------------------------------------------------------------------------------------------


class Mine:
    """A model of the user's."""

    name = "mine/model"

    @property
    def secrets(self) -> dict[str, str]:
        """Return what nobody may record."""
        return {"MINE_KEY": "secret"}

    async def prices(self) -> Prices | None:
        """Return what a token costs."""
        return None

    async def complete(self, request: Request) -> Completion:
        """Answer."""
        return Completion(text=str(len(request.messages)), usage=Usage(input_tokens=1))


class NotMine:
    """What lacks everything."""


mine: Model = Mine()
not_mine: Model = NotMine()  # type: ignore[assignment]
Agent(Mine())


async def simple(state: KernelState, session: Session) -> KernelState:
    """Answer at once."""
    answer = await session.model.complete(state.thread)
    return transition(state, output=answer.text)


register_strategy("simple", simple)
register_strategy("wrong", lambda state: state)  # type: ignore[arg-type, misc]


# --- for tests -------------------------------------------------------------------------------------------------------


def answer(request: Request) -> Turn:
    """Answer a request."""
    return text(f"{len(request.messages)}")


script: list[Turn | Callable[[Request], Turn]] = [
    call("plain", key="a"),
    calls(call("plain", key="a"), text="Both."),
    answer,
    error("no", retryable=True),
]
assert_type(ScriptedModel([*script, with_match(text("a"), "b")]).requests, list[Request])
anything: Any = plain("a")
