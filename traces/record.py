"""Records the samples of this folder on a real model server.

    python -m traces.record http://127.0.0.1:8091/v1

Each sample is one run; `README.md` says what it shows. A sample that ends in another way than it is meant to is reported
and not kept.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from examples.tools import calculator, lookup
from playhead import Agent, Context, LiteLLM, RunError, tool
from playhead.kernel.models import resolve_model
from playhead.trace.types import Message, ToolCall

FOLDER = Path(__file__).parent
MODEL = "openai/qwen2.5-coder-1.5b"
CONVERT = "How high is Mount Zed in feet, and how much is that in metres?"
SHOW_HOW = (
    Message(id=0, role="user", content="How deep is Lake Quill, times three?"),
    Message(
        id=1, role="assistant", tool_calls=(ToolCall(id="example_0", name="lookup", arguments={"key": "Lake Quill"}),)
    ),
    Message(id=2, role="tool", content=str(lookup("Lake Quill")), tool_call_id="example_0", name="lookup"),
    Message(
        id=3,
        role="assistant",
        tool_calls=(ToolCall(id="example_1", name="calculator", arguments={"expression": "61 * 3"}),),
    ),
    Message(id=4, role="tool", content="183", tool_call_id="example_1", name="calculator"),
    Message(id=5, role="assistant", content="Three times the depth of Lake Quill is 183 metres."),
)


@tool
def book_room(hotel: str, nights: int) -> str:  # noqa: ARG001
    """Book a hotel room."""
    raise ConnectionError(f"the booking service of {hotel} does not answer")


@tool(requires_approval=True, risk="high")
def send_money(to: str, amount: float) -> str:
    """Send money to somebody."""
    return f"sent {amount} to {to}"


@dataclass(frozen=True)
class Sample:
    """One recording to make."""

    name: str
    task: str
    terminated_by: tuple[str, ...]
    """The endings that show what the sample is for."""
    tools: tuple[Any, ...] = (lookup, calculator)
    options: dict[str, Any] = field(default_factory=dict)


def samples(api_base: str) -> list[Sample]:
    """Return the samples."""
    researcher = Agent(
        resolve_model(MODEL, api_base=api_base),
        name="researcher",
        description="Looks facts up. Give it one question.",
        tools=[lookup],
        parameters={"temperature": 0, "max_tokens": 200},
        max_iterations=3,
        context=Context(rationale=False),
        trace=None,
    )
    answered = ("end_turn", "final_answer", "final_answer_tool")
    return [
        Sample("several-tools", CONVERT, answered, options={"examples": SHOW_HOW, "context": Context(rationale=False)}),
        Sample("stated-reasons", CONVERT, (*answered, "max_iterations")),
        Sample("failed-call", "Book two nights at the Grand Zed for me.", (*answered, "max_iterations"), (book_room,),
               {"context": Context(rationale=False)}),
        Sample("limit-reached", CONVERT, ("max_iterations",), options={"max_iterations": 1}),
        Sample("denied-approval", "Send 40 dollars to Ann.", (*answered, "max_iterations"), (send_money,),
               {"approver": lambda _: False, "context": Context(rationale=False)}),
        Sample("no-tools", "Name the three primary colours of light.", answered, ()),
        Sample("sub-agents", "Ask the researcher how deep Lake Quill is, then ask how many people live in Port Amber.",
               (*answered, "max_iterations"), (researcher,), {"context": Context(rationale=False)}),
        Sample("cut-answer", "Count from 1 to 200.", ("output_truncated",), (),
               {"parameters": {"temperature": 0, "max_tokens": 60}}),
        Sample("direct", CONVERT, answered, options={"strategy": "direct", "examples": SHOW_HOW}),
        Sample("chain-of-thought", "A shop sells pens at 3 for 2 dollars. How much do 12 pens cost?", answered, (),
               {"strategy": "chain-of-thought"}),
        Sample("autonomous", CONVERT, (*answered, "max_iterations"),
               options={"strategy": "autonomous", "context": Context(rationale=False), "max_iterations": 8}),
        Sample("reflexion", "Explain in two sentences why the sky is blue, for a child.", (*answered, "unsatisfied"), (),
               {"strategy": "reflexion", "max_iterations": 20}),
    ]  # fmt: skip


def record(sample: Sample, api_base: str) -> bool:
    """Record one sample and put it in its place when it ended as it should."""
    options = {"parameters": {"temperature": 0, "max_tokens": 300}, "max_iterations": 5, **sample.options}
    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(LiteLLM(MODEL, api_base=api_base), tools=sample.tools, trace=folder, **options)
        with suppress(RunError):
            result = agent.run_sync(sample.task, run_id=sample.name)
            kept = result.terminated_by in sample.terminated_by
            print(
                f"{sample.name:16} {'kept' if kept else 'NOT KEPT'} {result.terminated_by} {str(result.output)[:80]!r}"
            )
            if kept and result.trace_path is not None:
                (FOLDER / result.trace_path.name).write_bytes(result.trace_path.read_bytes())
            return kept
    print(f"{sample.name:16} NOT KEPT: the run failed")
    return False


def main() -> int:
    """Record every sample, or those named after the address."""
    api_base, *names = sys.argv[1:]
    chosen = [sample for sample in samples(api_base) if not names or sample.name in names]
    kept = [record(sample, api_base) for sample in chosen]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
