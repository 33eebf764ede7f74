"""A provider, and tools, that count by themselves what they were really asked: the oracle of the schedules."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from anyio.lowlevel import checkpoint

from playhead.compose.killswitches.output_cap import output_cap
from playhead.errors import ModelRequestError, ModelUnavailableError, RateLimitError
from playhead.trace.types import Completion, Prices, ToolCall, Usage

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping

    from playhead.trace.types import Message, Request

PRICES = Prices(input_usd=3e-06, output_usd=1.5e-05, cache_read_usd=3e-07, cache_write_usd=3.75e-06)
UNCAPPED = 4096
"""Tokens of an answer when the request states no cap: as many as `budget_limit` takes it to have."""


@dataclass
class Asked:
    """One attempt at a request, as the provider saw it."""

    who: str
    """The task, or for the body of a tool what it asked: each agent has a task of its own."""
    cap: int
    capped: bool
    """Whether the request stated the cap."""
    tokens: int
    """What was billed: the worst case, until it is known."""
    usd: Decimal


@dataclass
class Provider:
    """What all models and tools of a schedule did."""

    asked: list[Asked] = field(default_factory=list)
    bodies: Counter = field(default_factory=Counter)
    """How often which body ran, by owner, call id and tool."""
    undercounted: int = 0
    """Prompt tokens that were counted too low, of requests at the same time, at most; and of all that nobody answered."""
    lock: Any = field(default_factory=threading.RLock)
    _under: int = 0

    @contextmanager
    def asking(self, request: Request, prompt: int, counted: int) -> Iterator[Asked]:
        """Count a request, as the dearest it can be until something else is known."""
        stated = output_cap(request.parameters)
        cap = UNCAPPED if stated is None else stated
        asked = Asked(_who(request), cap, stated is not None, prompt + cap, worst_usd(prompt, cap))
        under = max(0, prompt - counted)
        with self.lock:
            self.asked.append(asked)
            self._under += under
            self.undercounted = max(self.undercounted, self._under)
        try:
            yield asked
        finally:
            with self.lock:
                if asked.tokens != prompt + cap:  # else nobody ever says how long the prompt was
                    self._under -= under

    def ran(self, owner: str, call_id: str, tool: str) -> None:
        """Count a body."""
        with self.lock:
            self.bodies[owner, call_id, tool] += 1

    @property
    def tokens(self) -> int:
        """All that was billed."""
        return sum(each.tokens for each in self.asked)

    @property
    def usd(self) -> Decimal:
        """All that was billed."""
        return sum((each.usd for each in self.asked), Decimal())


def _who(request: Request) -> str:
    first = next(message for message in request.messages if message.role == "user")
    assert isinstance(first.content, str)
    return first.content


def worst_usd(prompt: int, cap: int) -> Decimal:
    """Return the most that a request may cost: all of its prompt is written to the cache."""
    return prompt * Decimal(str(PRICES.cache_write_usd)) + cap * Decimal(str(PRICES.output_usd))


def usd(usage: Usage) -> Decimal:
    """Return what an answer costs."""
    plain = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens
    return (
        plain * Decimal(str(PRICES.input_usd))
        + usage.cache_read_tokens * Decimal(str(PRICES.cache_read_usd))
        + worst_usd(usage.cache_write_tokens, usage.output_tokens)
    )


class RandomModel:
    """Answers at random, and never with more tokens than the request allows, as a real provider does."""

    def __init__(
        self, chance: random.Random, provider: Provider, name: str, tools: list[str], counts: float | None = 1
    ) -> None:
        self.name = name
        self._counts = counts  # which share of a prompt's tokens it counts; None: it cannot count
        self.tools = tools
        self._chance = chance
        self._provider = provider
        self._asked = 0

    @property
    def secrets(self) -> Mapping[str, str]:
        """Return no secrets."""
        return {}

    async def prices(self) -> Prices | None:
        """Return what a token costs."""
        return PRICES

    async def complete(self, request: Request) -> Completion:
        """Answer at some time, or fail."""
        chance, prompt = self._chance, prompt_tokens(request)
        with self._provider.asking(request, prompt, self._counted(prompt)) as asked:
            for _ in range(chance.choice((0, 0, 1, 2, 5))):
                await checkpoint()
            if (kind := chance.random()) < 0.08:  # the provider may have worked for it: the worst case stays
                raise ModelUnavailableError("busy")
            if kind < 0.1:
                raise ModelRequestError("refused")  # or worked for, and not understood
            if kind < 0.12:
                asked.tokens, asked.usd = 0, Decimal()
                raise RateLimitError("slow down")
            usage = self._usage(prompt, asked.cap)
            if usage is not None:
                asked.tokens, asked.usd = usage.total_tokens, usd(usage)
            return self._answer(request, usage)

    async def count_tokens(self, request: Request) -> int | None:
        """Return how many tokens are said to be in the prompt before it is sent, at some time."""
        for _ in range(self._chance.choice((0, 0, 1))):
            await checkpoint()
        return None if self._counts is None else self._counted(prompt_tokens(request))

    def _counted(self, prompt: int) -> int:
        return prompt if self._counts is None else int(prompt * self._counts)

    def _usage(self, prompt: int, cap: int) -> Usage | None:
        chance = self._chance
        if chance.random() < 0.05:
            return None  # it does not say
        output = min(cap, chance.choice((1, chance.randint(1, 60), chance.randint(1, 400))))
        read = chance.choice((0, 0, prompt // 2))
        written = chance.choice((0, 0, prompt - read, (prompt - read) // 2))
        return Usage(
            input_tokens=prompt,
            output_tokens=output,
            cache_read_tokens=read,
            cache_write_tokens=written,
            reasoning_tokens=output // 2,
        )

    def _answer(self, request: Request, usage: Usage | None) -> Completion:
        chance = self._chance
        calls = self._calls() if request.tools and self.tools and chance.random() < 0.8 else ()
        return Completion(
            text="" if calls else chance.choice(("done", "Final answer: 42", "done", "")),
            tool_calls=calls,
            finish_reason="tool_calls" if calls else "stop",
            usage=usage or Usage(),
            cost_usd=None if usage is None or chance.random() < 0.5 else float(usd(usage)),
        )

    def _calls(self) -> tuple[ToolCall, ...]:
        names = [self._chance.choice(self.tools) for _ in range(self._chance.choice((1, 1, 2, 3, 5)))]
        return tuple(ToolCall(id="", name=name, arguments=self._arguments(name)) for name in names)

    def _arguments(self, name: str) -> dict[str, Any]:
        if name.startswith("agent"):
            with self._provider.lock:
                self._asked += 1
                return {"task": f"task {self._asked} of {self.name}"}
        return {"key": self._chance.choice("abc")}


def prompt_tokens(request: Request) -> int:
    """Return the tokens of a prompt: not more than it has bytes."""
    return sum(_tokens(message) for message in request.messages) + 5 * len(request.tools)


def _tokens(message: Message) -> int:
    assert isinstance(message.content, str)
    return 2 + len(message.content.encode()) // 2 + 6 * len(message.tool_calls)
