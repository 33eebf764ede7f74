"""The public API as users write it; mypy checks this file, and nobody runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, assert_type

from playhead import (
    Agent,
    Approval,
    ApprovalRequest,
    Context,
    Execution,
    LiteLLM,
    Recording,
    RunHandle,
    RunResult,
    Strategy,
    ToolContext,
    check_trace,
    load_recording,
    register_strategy,
    tool,
)
from playhead.agent.chat import ChatMessage, ChatReply
from playhead.agent.streaming import StreamEvent, to_sse
from playhead.compose import (
    SUPPRESS,
    CallContext,
    Harness,
    HookContext,
    NudgeContext,
    PhaseContext,
    Recover,
    Resume,
    Skip,
    Stop,
    Terminate,
    ToolResultContext,
)
from playhead.compose.killswitches import max_iterations
from playhead.compose.redaction import redact_results
from playhead.diagnose.integrity import Check
from playhead.kernel.state import KernelState, Step, transition
from playhead.kernel.strategies import Reflexion
from playhead.kernel.tools import FunctionTool
from playhead.replay import Divergence, reproduce
from playhead.testing import ScriptedModel, TickingClock, Turn, call, calls, error, text, with_match
from playhead.trace.events import LlmRequested, LlmResponded, ToolCallCompleted
from playhead.trace.types import (
    Content,
    ImagePart,
    Message,
    Rationale,
    Request,
    TextPart,
    ToolCall,
    ToolSpec,
    Usage,
)

if TYPE_CHECKING:
    from playhead.kernel.hooks import Suppressed
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


def function(key: str) -> str:
    """Do it without a decorator."""
    return key


helper = Agent("ollama/qwen3:8b", name="helper", description="Helps.", tools=[plain])
agent = Agent(
    LiteLLM("openai/gpt-4o-mini", api_base="http://localhost:8000/v1", api_key="none"),
    tools=[plain, declared, function, helper, helper.as_tool(read_only=True)],
    strategy=Reflexion(max_retries=2),
    examples=[Message(id=0, role="user", content="How high?")],
    parameters={"temperature": 0},
    execution=Execution(retries=0, retry_delay_s=0.5, max_parallel=2),
    context=Context(rationale=False, meta_tools=("final-answer",)),
    approver=approve,
    redact=[str.lower],
    trace=Path("traces"),
    clock=TickingClock,
)
Agent("openai/gpt-4o-mini", trace=None)
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


# --- hooks ----------------------------------------------------------------------------------------------------------


def contexts(hook: HookContext, nudge: NudgeContext, result: ToolResultContext, phase: PhaseContext) -> None:
    """Read what a hook is given beside the payload."""
    assert_type(hook.state, KernelState | None)
    assert_type(hook.iteration, int | None)
    assert_type(nudge.severity, Literal["info", "warn", "critical"])
    assert_type(result.duration_ms, float)
    assert_type(result.repaired, bool)
    assert_type(phase.state, KernelState)
    assert_type(phase.timing, Literal["before", "after", "on-error"])


def header_line(prompt: str, context: HookContext) -> str:
    """Change a prompt."""
    return f"{context.agent}: {prompt}"


async def translate(message: Message, context: HookContext) -> Message | None:
    """Change a message after a while."""
    return message.model_copy(update={"content": "…"}) if context.owner == "root" else None


def redact_step(step: Step, context: ToolResultContext) -> Step:
    """Keep a step."""
    return step


def limit(context: PhaseContext) -> Stop | Skip | None:
    """Steer a run."""
    return Stop("enough") if context.state.iteration > context.max_iterations else None


def go_on(error: Exception, context: PhaseContext) -> Recover | None:
    """Survive an error."""
    return Recover(transition(context.state, meta={"error": str(error)}), "once more")


def own_hooks(harness: Harness) -> None:
    """Register hooks by tag, pattern, list and predicate."""
    harness.on("prompt.system", header_line)
    harness.on("message.user", translate)
    harness.on("message.*", translate)
    harness.on("observation.tool-result", redact_step)
    harness.on("answer.final", lambda answer, context: SUPPRESS if answer is None else None)
    harness.on(["prompt.system", "nudge.*"], header_line)
    harness.on(lambda tag: tag.endswith("system"), header_line)
    assert_type(harness.use(max_iterations(5)), Callable[[], None])
    harness.before("think", limit, required=True)
    harness.after("*", limit)
    harness.on_error("*", go_on)
    harness.emit("message.user", "By the way.")


def hooks_by_tag(
    harness: Harness,
    task: Callable[[Content, HookContext], Content],
    tools: Callable[[tuple[ToolSpec, ...], HookContext], list[ToolSpec]],
    request: Callable[[Request, HookContext], Request | None],
    response: Callable[[LlmResponded, HookContext], Awaitable[LlmResponded]],
    nudge: Callable[[str, NudgeContext], str | Suppressed | None],
    asked: Callable[[ToolCall, CallContext], ToolCall | Suppressed],
    result: Callable[[ToolCallCompleted, ToolResultContext], ToolCallCompleted],
    reason: Callable[[Rationale, CallContext], Rationale | Suppressed],
    event: Callable[[dict[str, Any], HookContext], dict[str, Any]],
    anything: Callable[[object, HookContext], str],
    cite: Callable[[PhaseContext], Awaitable[Resume | Terminate | None]],
) -> None:
    """Register what takes exactly what passes."""
    harness.on("prompt.task", task)
    harness.on("prompt.tools", tools)
    harness.on("llm.request", request)
    harness.on("llm.response", response)
    harness.on("nudge.novelty", nudge)
    harness.on("nudge.**", nudge)
    harness.on("tool.call", asked, required=True, timeout_s=2.5)
    harness.on("tool.result", result)
    harness.on("decision.rationale", reason)
    harness.on("lifecycle.*", event)
    harness.tap("control.strategy-switched", event)
    harness.tap("**", anything, name="audit", inherit=False)()
    harness.before("complete", cite)


def wrong_hooks(harness: Harness, count: Callable[[int, HookContext], int]) -> None:
    """Register what is not: another payload or context, a tag or an option that there is not."""
    harness.on("prompt.system", count)  # type: ignore[arg-type]
    harness.on("prompt.system", translate)  # type: ignore[arg-type]
    harness.on("prompt.task", header_line)  # type: ignore[arg-type]
    harness.on("prompt.sistem", header_line)  # type: ignore[arg-type]
    harness.on("prompt.*", header_line)  # type: ignore[arg-type]
    harness.on("message.user", redact_step)  # type: ignore[arg-type]
    harness.on("tool.call", redact_step)  # type: ignore[arg-type]
    harness.on("prompt.system", header_line, requird=True)  # type: ignore[call-overload]
    harness.on("prompt.system", header_line, timeout_s="5")  # type: ignore[call-overload]
    harness.before("thinck", limit)  # type: ignore[arg-type]
    harness.before("think", go_on)  # type: ignore[arg-type]
    harness.on_error("think", limit)  # type: ignore[arg-type]


Agent("openai/gpt-4o-mini", compose=[own_hooks, max_iterations(5, on_trigger="terminate"), redact_results(str.lower)])
assert_type(agent.compose(own_hooks), Callable[[], None])
max_iterations(5, on_trigger="halt")  # type: ignore[arg-type]
Agent("openai/gpt-4o-mini", compose=[own_hooks(Harness())])  # type: ignore[func-returns-value, list-item]


# --- reading and replaying -------------------------------------------------------------------------------------------

recording = load_recording("latest")
assert_type(recording, Recording)
assert_type(recording.owners["root"].exchanges[0].requested, LlmRequested)
assert_type(recording.root.request(recording.root.exchanges[0].requested), Request)
assert_type(check_trace(Path("run.jsonl")), Check)


async def replay() -> None:
    """Reproduce a recording."""
    outcome = await reproduce(recording, agent=agent)
    assert_type(outcome.divergences, tuple[Divergence, ...])


# --- one's own -------------------------------------------------------------------------------------------------------


def models(mine: ScriptedModel) -> None:
    """Take for a model what has its methods, and nothing else."""
    model: Model = mine
    not_mine: Model = object()  # type: ignore[assignment]
    Agent(model)
    Agent(not_mine)


class Simple(Strategy):
    """Answer at once."""

    name = "simple"

    system: str = "Be brief."

    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Answer."""
        answer = await session.model.complete(state.thread)
        return transition(state, output=answer.text)


register_strategy(Simple)
register_strategy("simple")  # type: ignore[arg-type]
Agent("openai/gpt-4o-mini", strategy=Simple(system="Be long."))
Simple(sistem="Be long.")  # type: ignore[call-arg]
Reflexion(max_retries="two")  # type: ignore[arg-type]


# --- while a run goes on ---------------------------------------------------------------------------------------------


async def follow(agent: Agent) -> None:
    """Follow a run, and chat."""
    handle = agent.start("Do it.", density="full")
    assert_type(handle, RunHandle)
    agent.start("Do it.", density="some")  # type: ignore[arg-type]
    async for event in handle:
        assert_type(event, StreamEvent)
    assert_type(handle.stop("enough"), bool)
    assert_type(handle.result, RunResult | None)
    assert_type(await handle, RunResult)
    async with agent.start("Do it.") as entered:
        assert_type(entered, RunHandle)
        async for frame in to_sse(entered, heartbeat_s=15):
            assert_type(frame, bytes)
    with agent.session(persist=Path("chats"), id="one") as chat:
        assert_type(await chat.chat("Hello"), ChatReply)
        assert_type(chat.history(), list[ChatMessage])
        assert_type(await chat.stream("Hello"), RunResult)


# --- for tests -------------------------------------------------------------------------------------------------------

script: list[Turn | Callable[[Request], Turn]] = [
    call("plain", key="a"),
    calls(call("plain", key="a"), text="Both."),
    lambda request: text(f"{len(request.messages)}"),
    error("no", retryable=True),
]
assert_type(ScriptedModel([*script, with_match(text("a"), "b")]).requests, list[Request])
