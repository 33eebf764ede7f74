"""Runs for the backends to show: one of each strategy, and what else is apt to be shown wrongly.

Everything is scripted, priced and timed, so what a backend has to say of each run is known beforehand.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from openinference.instrumentation import using_metadata, using_session, using_tags, using_user

from examples.tools import calculator, lookup
from playhead import Agent, RunError, RunResult, tool
from playhead.compose import killswitches
from playhead.testing import ScriptedModel, TickingClock, Turn, call, calls, error, text
from playhead.trace.types import ImagePart, Message, Prices, TextPart, Usage
from tests.kernel.plan.steps import analysis, plan, tool_step, verdict
from tests.kernel.strategies.looking import score, thoughts
from tests.options import grouped
from tests.spans.spans import trees_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.trace.types import Completion, Content, Request

TASK: Final = "How high is Mount Zed in metres?"
ANSWER: Final = "Mount Zed is 1,274 metres high."
MODEL: Final = "openai/gpt-4o-mini"
PRICES: Final = Prices(input_usd=15e-8, output_usd=60e-8, cache_read_usd=7.5e-8)
"""Of that model, as the tables of the backends have them."""
SESSION: Final = "5f6f9f0c-70a1-4b4c-9c8c-0d4f0f0a5e55"
USER: Final = "ann"
STEP_US: Final = 17_000
STARTED_US: Final = time.time_ns() // 1000 - 600_000_000
"""Ten minutes ago: backends show what is new."""
HOSTILE: Final = (
    "<script>alert(1)</script><img src=x onerror=alert(1)> \x00\x1b[31m \u202e \ud800 {{7*7}} '; DROP TABLE spans;-- "
    '"quoted" \\ ${jndi:ldap://x} \N{PILE OF POO} ' + json.dumps({"$type": "bytes", "openinference.span.kind": "LLM"})
)
MESSAGES: Final = 200
"""Of the long thread."""
TURNS: Final = 40
"""Of the run that calls a tool in each turn."""

LOOK: Final = call("lookup", key="Mount Zed")
CALCULATE: Final = call("calculator", expression="4180 * 0.3048")
CACHED: Final = Usage(input_tokens=1_000, output_tokens=200, cache_read_tokens=600, reasoning_tokens=50)


class PricedModel(ScriptedModel):
    """A scripted model that costs something."""

    async def prices(self) -> Prices | None:
        """Return US dollars per token."""
        return PRICES

    async def complete(self, request: Request) -> Completion:
        """Return the next turn, with its cost."""
        answer = await super().complete(request)
        usage = answer.usage
        read = usage.cache_read_tokens
        prompt = (usage.input_tokens - read) * PRICES.input_usd + read * (PRICES.cache_read_usd or 0.0)
        return replace(answer, cost_usd=prompt + usage.output_tokens * PRICES.output_usd)


@tool
def send(to: str, body: dict[str, Any]) -> dict[str, Any]:
    """Send a message."""
    return {"to": to, "sent": True, "body": body}


@tool(read_only=True, kind="retriever")
def search(query: str) -> list[dict[str, Any]]:
    """Search the atlas."""
    return [{"id": "a1", "score": 0.75, "content": f"{query} is 4,180 feet high.", "metadata": {"page": 12}}]


@tool(read_only=True)
def broken(key: str) -> str:
    """Look up in a database that is gone."""
    raise ConnectionError(f"the database is gone; it was asked for {key}")


def agent(turns: list[Any], *tools: Any, model: str = MODEL, **options: Any) -> Agent:
    """Return an agent on a script, whose clock ticks."""
    defaults: dict[str, Any] = {
        "name": "guide",
        "system_prompt": "You are a guide to the mountains.",
        "clock": partial(TickingClock, STARTED_US, STEP_US),
        "retry_delay_s": 0,
        "rationale": False,
        "meta_tools": (),
    }
    return Agent(
        PricedModel(turns, name=model), **grouped(tools=tools or (lookup, calculator), **{**defaults, **options})
    )


def plain(turns: list[Any], *tools: Any, task: Content = TASK, **options: Any) -> Callable[[Path, str], RunResult]:
    """Return a scene: one task for one agent, whatever becomes of it."""
    return lambda folder, run_id: run(agent(turns, *tools, trace=folder, **options), task, run_id)


def run(one: Agent, task: Content, run_id: str) -> RunResult:
    """Run an agent and return the result, also that of a failure."""
    try:
        return one.run_sync(task, run_id=run_id)
    except RunError as raised:
        result: Any = raised.result
    return result


def sub_agents(folder: Path, run_id: str) -> RunResult:
    """Ask another agent twice at once."""

    def research(request: Request) -> Turn:
        last = request.messages[-1]
        return call("lookup", key=last.content) if last.role == "user" else text(str(last.content))

    researcher = agent([research] * 4, lookup, name="researcher", description="Looks facts up.")
    both = calls(call("researcher", task="Mount Zed"), call("researcher", task="Lake Quill"))
    return run(agent([both, text(ANSWER)], researcher, trace=folder), TASK, run_id)


def in_a_session(folder: Path, run_id: str) -> RunResult:
    """Run for a user, in a session, with tags and metadata, as an application says with OpenInference."""
    with ExitStack() as said:
        said.enter_context(using_session(SESSION))
        said.enter_context(using_user(USER))
        said.enter_context(using_tags(["mountains", "test"]))
        said.enter_context(using_metadata({"tenant": "alps", "seat": 4}))
        return run(agent([LOOK, CALCULATE, text(ANSWER)], trace=folder), TASK, run_id)


def long_thread() -> list[Message]:
    """Return the messages of a long talk."""
    return [
        Message(id=each + 1, role="assistant" if each % 2 else "user", content=f"message {each}")
        for each in range(MESSAGES)
    ]


IMAGE: Final = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAABgAAAAYCAIAAABvFaqvAAAAH0lEQVR4nGNQWOBAFcQwatCoQaMGjRo0atCoQQNvEAAyVUAf9kqf5QAA"
    "AABJRU5ErkJggg=="
)
"""A green square."""
JUDGED: Final = [
    LOOK,
    CALCULATE,
    text("1,274."),
    text('{"issues": ["The unit is missing."], "score": 4, "satisfied": false}'),
    text(ANSWER),
    text('{"issues": [], "score": 10, "satisfied": true}'),
]
PLAN: Final = plan(
    tool_step("lookup", args={"key": "Mount Zed"}),
    analysis("Convert it to metres."),
    tool_step("send", args={"to": "ann", "body": {"metres": 1274}}),
)
PROGRAM: Final = """I do it in one go.
```python
print(lookup("Mount Zed"))
return calculator("4180 * 0.3048")
```"""

STRATEGIES: Final[dict[str, Callable[[Path, str], RunResult]]] = {
    "adaptive": plain(
        [text("reactive"), LOOK, text(ANSWER)],
        strategy="adaptive",
        strategy_settings={"candidates": ["reactive", "direct"]},
    ),
    "autonomous": plain([text("I will."), LOOK, CALCULATE, call("finish", result=ANSWER)], strategy="autonomous"),
    "chain-of-thought": plain(
        [LOOK, text(f"<thinking>The table says 4,180 feet.</thinking>\n{ANSWER}")], strategy="chain-of-thought"
    ),
    "code-action": plain([text(PROGRAM), text(ANSWER)], strategy="code-action"),
    "direct": plain([LOOK, text(ANSWER)], strategy="direct"),
    "plan-execute-reflect": plain(
        [PLAN, text("1,274 metres"), verdict(), text(ANSWER)], lookup, send, strategy="plan-execute-reflect"
    ),
    "reactive": plain([LOOK, CALCULATE, text(ANSWER, thinking="4180 feet are 1274 metres.")]),
    "reflexion": plain(JUDGED, strategy="reflexion"),
    "tree-of-thought": plain(
        [thoughts("Look it up and convert it.", "Guess."), score(9), score(2), LOOK, CALCULATE, text(ANSWER)],
        strategy="tree-of-thought",
        strategy_settings={"breadth": 2, "depth": 2},
    ),
}
"""One run of each strategy."""

OTHERS: Final[dict[str, Callable[[Path, str], RunResult]]] = {
    "sub-agents": sub_agents,
    "parallel-calls": plain(
        [calls(LOOK, call("lookup", key="Lake Quill"), call("lookup", key="Port Amber")), text(ANSWER)]
    ),
    "failed-tool": plain([call("broken", key="Mount Zed"), LOOK, text(ANSWER)], broken, lookup),
    "retried-model": plain([error("overloaded", retryable=True), LOOK, text(ANSWER)]),
    "failed-model": plain([LOOK, error("no such model")]),
    "killswitch": plain([LOOK] * 9, compose=[killswitches.max_iterations(2)]),
    "images": plain(
        [text("A green square.")],
        task=(TextPart(text="What is this?"), ImagePart(url=IMAGE), ImagePart(url="https://example.org/peak.png")),
    ),
    "cached": plain([text(ANSWER, usage=CACHED)]),
    "unknown-model": plain([text(ANSWER)], model="acme/alpha"),
    "forty-turns": plain([LOOK] * TURNS + [text(ANSWER)], max_iterations=TURNS + 1),
    "retriever": plain([call("search", query="Mount Zed"), text(ANSWER)], search),
    "long-thread": plain([LOOK, text(ANSWER)], examples=long_thread()),
    "hostile": plain(
        [call("send", to=HOSTILE, body={HOSTILE: [HOSTILE]}), text(HOSTILE, thinking=HOSTILE)],
        send,
        task=HOSTILE,
        system_prompt=HOSTILE,
    ),
    "session-1": in_a_session,
    "session-2": in_a_session,
}
"""What else is apt to be shown wrongly."""

SCENES: Final = STRATEGIES | OTHERS
TREES: Final = trees_in(Path(__file__).with_name("trees.txt")) | {
    "forty-turns": ["AGENT agent:guide", *[f"  LLM llm:{MODEL}", "  TOOL tool:lookup"] * TURNS, f"  LLM llm:{MODEL}"]
}
"""The spans of each scene: a line for each, below its parent and in the order in which they began."""


def record_all(folder: Path) -> dict[str, RunResult]:
    """Record every scene under its name, and return what each run returned."""
    return {name: scene(folder, name) for name, scene in SCENES.items()}
