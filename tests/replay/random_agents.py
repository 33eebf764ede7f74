"""Random scripted agents, for property tests: what they may do covers every path of the kernel."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel

from playhead import Agent, Approval, ToolContext, tool
from playhead.testing import ScriptedModel, Turn, call, calls, error, text
from playhead.trace.types import Request, ToolCall, Usage
from tests.options import grouped

KEYS = ("a", "b", "c")
MAX_DEPTH = 4  # one more than agents may be nested, so that the refusal is covered too


@dataclass
class Canary:
    """Sings when a body runs while nothing may run."""

    armed: bool = False
    sang: list[str] = field(default_factory=list)

    def watch(self, name: str) -> None:
        """Note a body that runs."""
        if self.armed:
            self.sang.append(name)


def random_agent(seed: int, canary: Canary, **options: Any) -> Agent:
    """Return an agent whose model, tools and sub-agents follow from the seed."""
    return _agent(random.Random(seed), canary, depth=0, **options)


def _agent(chance: random.Random, canary: Canary, depth: int, **options: Any) -> Agent:
    tools: list[Any] = chance.sample(_tools(chance, canary), k=chance.randint(1, 6))
    if depth < MAX_DEPTH and chance.random() < (0.5 if depth == 0 else 0.35):
        child = _agent(chance, canary, depth + 1)
        tools.append(child.as_tool(read_only=chance.random() < 0.7))
    names = [each.spec.name for each in tools]
    approver = _approver(chance, canary)
    return Agent(
        ScriptedModel(_turns(chance, names), name=f"scripted/depth-{depth}"),
        **grouped(
            name=f"agent{depth}",
            tools=tools,
            max_iterations=chance.randint(1, 5),
            retries=chance.randint(0, 2),
            retry_delay_s=0.001,
            max_parallel=chance.randint(1, 3),
            rationale=chance.random() < 0.5,
            required_tools=chance.sample(names, k=1) if chance.random() < 0.2 else (),
            meta_tools=chance.choice([(), ("final-answer",), ("final-answer", "recall")]),
            system_prompt=chance.choice([None, "Be brief.", ""]),
            parameters=chance.choice([{}, {"temperature": 0}]),
            approver=approver,
            **options,
        ),
    )


def _approver(chance: random.Random, canary: Canary) -> Any:
    answer = chance.choice(
        [True, False, None, "yes", Approval(approved=True, by="ann"), Approval(approved=False, why="no")]
    )

    async def approve(request: Any) -> Any:
        canary.watch("approver")
        await anyio.lowlevel.checkpoint()
        if answer is None:
            raise RuntimeError("nobody home")
        return answer

    return approve


def _tools(chance: random.Random, canary: Canary) -> list[Any]:
    delays = {key: chance.choice([0.0, 0.0, 0.001, 0.002]) for key in KEYS}

    @tool(read_only=True)
    async def read(key: str) -> str:
        """Read, sooner or later."""
        canary.watch("read")
        await anyio.sleep(delays.get(key, 0.0))
        return f"{key} {chance.random()}"

    @tool(read_only=True)
    def read_sync(key: str, times: int = 1) -> list[str]:
        """Read in a thread."""
        canary.watch("read_sync")
        time.sleep(delays.get(key, 0.0))
        return [key] * times

    @tool
    async def write(key: str) -> str:
        """Write."""
        canary.watch("write")
        return f"wrote {key}"

    @tool(read_only=True)
    async def fail(key: str) -> str:
        """Fail."""
        canary.watch("fail")
        await anyio.sleep(delays.get(key, 0.0))
        raise ValueError(f"no {key} \ud800")

    @tool(read_only=True, timeout=0.004)
    async def slow(key: str) -> str:
        """Take too long, at times."""
        canary.watch("slow")
        await anyio.sleep(0.05 if key == "a" else 0.0)
        return key

    @tool(requires_approval=True, risk="high")
    async def pay(key: str) -> str:
        """Pay, when allowed."""
        canary.watch("pay")
        return f"paid {key}"

    @tool(read_only=True, cache=True)
    async def remember(key: str) -> float:
        """Answer the same twice."""
        canary.watch("remember")
        return chance.random()

    @tool(read_only=True)
    async def odd(key: str) -> Any:
        """Return what JSON cannot hold."""
        canary.watch("odd")
        return {"a": {1: {b"\xff", "é"}, "1": float("nan")}, "b": 2**80, "c": object}[key]

    @tool(read_only=True)
    async def inner(key: str, context: ToolContext) -> str:
        """Use the ports from inside."""
        canary.watch("inner")
        answer = await context.model.ask(f"What of {key}?", temperature=0.5)
        await context.tools.call("read", key=key)
        return answer.text

    return [read, read_sync, write, fail, slow, pay, remember, odd, inner]


def _turns(chance: random.Random, names: list[str]) -> list[Any]:
    turns = [_turn(chance, names) for _ in range(chance.randint(0, 6))]
    return [*turns, _last(chance), lambda _: Turn(text="still here")] if chance.random() < 0.8 else turns


def _turn(chance: random.Random, names: list[str]) -> Any:
    kind = chance.random()
    if kind < 0.08:
        return error("busy", retryable=True)
    if kind < 0.14:
        return text("")
    if kind < 0.26:
        return text(f'I look.\n```json\n{{"name": "{chance.choice(names)}", "arguments": {{"key": "a"}}}}\n```')
    if kind < 0.3:
        made = calls(*(_call(chance, names) for _ in range(2)))
        return lambda request: _depends_on(request, made)
    return calls(*(_call(chance, names) for _ in range(chance.randint(1, 4))), **_words(chance))


def _depends_on(request: Request, made: Turn) -> Turn:
    return made if len(request.messages) % 2 else Turn(text="FINAL ANSWER: odd")


def _words(chance: random.Random) -> dict[str, Any]:
    said = chance.choice(["", "I think.", "I assume all is well because it was. Go on.", "Say \ud83d it"])
    reason = chance.choice(["", '<rationale call="1">{"why": "to know", "confidence": 0.5}</rationale>'])
    return {
        "text": said + reason,
        "thinking": chance.choice([None, '<rationale>{"why": "thought"}</rationale>']),
        "usage": chance.choice(
            [None, Usage(input_tokens=chance.randint(1, 900), output_tokens=7, cache_read_tokens=3)]
        ),
        "delay_s": chance.choice([0.0, 0.0, 0.001]),
    }


def _call(chance: random.Random, names: list[str]) -> Turn:
    name = chance.choice([*names, *names, *names, "nothing"])
    if name.startswith("agent"):
        return call(name, task=chance.choice(KEYS))
    kind = chance.random()
    if kind < 0.07:
        return Turn(calls=(ToolCall(id="", name=name, raw_arguments='{"key": '),))
    if kind < 0.14:
        return call(name, key=["wrong"])
    if kind < 0.2:
        return call(name, keys="a")
    fixed_id = chance.choice(["", "", "same"])
    return Turn(calls=(ToolCall(id=fixed_id, name=name, arguments={"key": chance.choice(KEYS)}),))


def _last(chance: random.Random) -> Turn:
    return chance.choice(
        [
            text("The end."),
            text("So.\nFinal answer: 42"),
            text("cut of", finish_reason="length"),
            call("final-answer", output="42", confidence="high"),
            calls(call("final-answer", output="42"), call("nothing")),
            error("the provider is gone"),
        ]
    )
