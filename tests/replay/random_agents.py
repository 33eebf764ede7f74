"""Random scripted agents: what their models do is a function of what they are told, so that they can die and be resumed.

Side effects are counted outside of the agents, as the world would count them: by who called what, where.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import anyio.lowlevel

from playhead import Agent, Approval, ToolContext, tool
from playhead.compose import Stop
from playhead.compose import killswitches as ks
from playhead.testing import ScriptedModel, Turn, call, calls, error, text
from playhead.trace.types import ToolCall, Usage
from tests.options import grouped

if TYPE_CHECKING:
    from playhead.trace.types import Request

KEYS = ("a", "b", "c")
TIMED = ("remember", "slow", "write_sync")


@dataclass
class Outside:
    """The world outside of the runs: it stays as it is when one of them dies."""

    effects: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """How often which call had its side effect: by agent, id of the call and tool."""
    asked: Counter[str] = field(default_factory=Counter)
    """Live requests to models, by model."""
    ran: Counter[str] = field(default_factory=Counter)
    """How often the body of each tool ran, and the approver."""

    def act(self, context: ToolContext) -> None:
        """Have a side effect."""
        self.effects[context.owner, context.call_id, context.tool] += 1

    def enter(self) -> None:
        """Be the world in which tools act from now on, in this task."""
        _world.set(self)

    def copy(self) -> Outside:
        """Return the same world."""
        return Outside(Counter(self.effects), Counter(self.asked), Counter(self.ran))


_world: ContextVar[Outside] = ContextVar("world")


def random_agent(seed: int, outside: Outside, **options: Any) -> Agent:
    """Return an agent whose model, tools, hooks and sub-agents follow from the seed."""
    outside.enter()
    return _agent(random.Random(seed), outside, 0, **options)


def plain_agent(seed: int, **options: Any) -> Agent:
    """Return an agent without hooks and switches but the given ones, in which nothing depends on time."""
    outside = Outside()
    outside.enter()
    return _agent(random.Random(seed), outside, 0, plain=True, **options)


def _agent(chance: random.Random, outside: Outside, depth: int, *, plain: bool = False, **options: Any) -> Agent:
    known = [each for each in _tools() if not (plain and each.spec.name in TIMED)]
    tools: list[Any] = [*known] if plain else chance.sample(known, k=chance.randint(2, 6))
    if depth < 3 and chance.random() < (plain or 0.6 if depth == 0 else 0.3):
        tools.append(_agent(chance, outside, depth + 1, plain=plain).as_tool(read_only=chance.random() < 0.7))
    names = [each.spec.name for each in tools]
    seed, name = chance.random(), f"scripted/depth-{depth}"
    return Agent(
        ScriptedModel([_mind(seed, names, outside, name)] * 400, name=name, keep_requests=False),
        **grouped(
            name=f"agent{depth}",
            tools=tools,
            max_iterations=chance.randint(2, 5),
            retries=chance.randint(0, 2),
            retry_delay_s=0,
            max_parallel=chance.randint(1, 3),
            rationale=chance.random() < 0.5,
            required_tools=chance.sample(names, k=1) if chance.random() < 0.2 else (),
            meta_tools=chance.choice([(), ("final-answer",)]),
            approver=_approver(chance.choice(KEYS), outside),
            **{"compose": [] if plain else chance.sample(_blocks(chance), k=chance.choice([0, 0, 1, 2, 3])), **options},
        ),
    )


def _mind(seed: float, names: list[str], outside: Outside, name: str) -> Any:
    """Return a model that answers the same request in the same way, whenever and however often it is asked."""

    def answer(request: Request) -> Turn:
        outside.asked[name] += 1
        said = repr([(each.role, each.content) for each in request.messages])
        digest = hashlib.sha256(f"{seed} {request.attempt} {said}".encode(errors="replace")).digest()
        turns = sum(each.role == "assistant" for each in request.messages)
        return _turn(random.Random(digest), names, turns)

    return answer


def _turn(chance: random.Random, names: list[str], turns: int) -> Turn:
    kind = chance.random()
    if kind < 0.08:
        return error("busy", retryable=True)
    if kind < 0.1:
        return error("gone")
    if kind < 0.13:
        return text("")
    if kind < 0.18:
        return text(f'I look.\n```json\n{{"name": "{chance.choice(names)}", "arguments": {{"key": "a"}}}}\n```')
    if kind < 0.2 + 0.1 * turns:
        cut = text("cut of", finish_reason="length")
        return chance.choice([text("The end."), text("Final answer: 42"), call("final-answer", output="42"), cut])
    words = chance.choice(
        ["", "I assume all is well because it was. Go on.", '<rationale call="1">{"why": "so"}</rationale>']
    )
    usage = Usage(input_tokens=chance.randint(1, 900), output_tokens=7)
    return calls(*(_call(chance, names) for _ in range(chance.randint(1, 4))), text=words, usage=usage)


def _call(chance: random.Random, names: list[str]) -> Turn:
    name = chance.choice([*names, *names, *names, "nothing"])
    if name.startswith("agent"):
        return call(name, task=chance.choice(KEYS))
    if chance.random() < 0.04:
        return Turn(calls=(ToolCall(id="", name=name, raw_arguments='{"key": '),))
    return call(name, key=["wrong"] if chance.random() < 0.05 else chance.choice(KEYS))


def _approver(refused: str, outside: Outside) -> Any:
    async def approve(request: Any) -> Any:
        outside.ran["approver"] += 1
        await anyio.lowlevel.checkpoint()
        return Approval(approved=request.arguments["key"] != refused, by="ann")

    return approve


def _blocks(chance: random.Random) -> list[Any]:
    """Return blocks of hooks and killswitches; what they do is a function of what they see."""
    turn = chance.randint(0, 3)

    def shout(harness: Any) -> None:
        harness.on("tool.result", lambda passed, _: passed.model_copy(update={"result": "LOUD"}) if passed.ok else None)

    def whisper(harness: Any) -> None:
        harness.on(
            "message.user", lambda message, _: message.model_copy(update={"content": f"psst: {message.content}"})
        )

    def stop(harness: Any) -> None:
        harness.before("act", lambda context: Stop("enough") if context.iteration == turn else None)

    def swap(harness: Any) -> None:
        harness.on(
            "tool.call",
            lambda asked, _: (
                asked.model_copy(update={"arguments": {"key": "b"}}) if asked.arguments == {"key": "a"} else None
            ),
        )

    return [
        shout,
        whisper,
        stop,
        swap,
        ks.max_iterations(turn + 2),
        ks.budget_limit(max_tokens=2_000_000),
        ks.tool_limit("*", chance.randint(2, 5), on_trigger=chance.choice(["stop", "refuse"])),
        ks.require_approval_for("*", chance.choice([lambda _: True, lambda _: False])),
    ]


@cache  # to make a tool takes a millisecond
def _tools() -> list[Any]:  # noqa: C901 - tools
    def ran(name: str, context: ToolContext | None = None) -> None:
        _world.get().ran[name] += 1
        if context is not None:
            _world.get().act(context)

    @tool(read_only=True)
    async def read(key: str) -> str:
        """Read, sooner or later."""
        ran("read")
        for _ in range({"a": 2, "b": 0, "c": 4}[key]):
            await anyio.lowlevel.checkpoint()
        return f"read {key}"

    @tool(read_only=True, cache=True)
    def remember(key: str) -> list[str]:
        """Read in a thread."""
        ran("remember")
        return [key]

    @tool(read_only=True, timeout=0.05)
    async def slow(key: str) -> str:
        """Take too long, at times."""
        ran("slow")
        await anyio.sleep(5 if key == "a" else 0)
        return key

    @tool(read_only=True)
    async def odd(key: str) -> Any:
        """Return what JSON cannot hold."""
        ran("odd")
        return {"a": {1: {b"\xff", "é"}, "1": float("nan")}, "b": 2**80, "c": object}[key]

    @tool
    async def write(key: str, context: ToolContext) -> str:
        """Write."""
        ran("write", context)
        await anyio.lowlevel.checkpoint()
        return f"wrote {key}"

    @tool
    def write_sync(key: str, context: ToolContext) -> dict[str, str]:
        """Write in a thread."""
        ran("write_sync", context)
        return {"wrote": key}

    @tool(read_only=True)
    async def fail(key: str) -> str:
        """Fail."""
        ran("fail")
        raise ValueError(f"no {key} \ud800")

    @tool
    async def break_it(key: str, context: ToolContext) -> str:
        """Do something, and then fail."""
        ran("break_it", context)
        raise ValueError(f"broke {key}")

    @tool(requires_approval=True, risk="high")
    async def pay(key: str, context: ToolContext) -> str:
        """Pay, when allowed."""
        ran("pay", context)
        return f"paid {key}"

    @tool(read_only=True)
    async def inner(key: str, context: ToolContext) -> str:
        """Use the ports from inside."""
        ran("inner")
        answer = await context.model.ask(f"What of {key}?", temperature=0.5)
        return answer.text

    @tool
    async def outer(key: str, context: ToolContext) -> str:
        """Do something, and call another tool that does."""
        ran("outer", context)
        found = await context.tools.call("write", key=key)
        return f"outer {found}"

    @tool(read_only=True)
    async def sneaky(key: str, context: ToolContext) -> str:
        """Say that it only reads, and call one that writes."""
        ran("sneaky")
        found = await context.tools.call("write", key=key)
        return f"sneaked {found}"

    return [read, remember, slow, odd, write, write_sync, fail, break_it, pay, inner, outer, sneaky]
