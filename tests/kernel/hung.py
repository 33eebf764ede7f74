"""Code that hangs until a test releases it, and agents that reach it in a model, tool, hook, approver or observer."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from playhead import Agent, tool
from playhead.errors import PlayheadError
from playhead.testing import ScriptedModel, call, text
from tests.kernel.strategies.looking import lookup
from tests.options import grouped
from tests.proving import sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LIMIT_S = sample(0.12, 0.5)
"""What the runs are limited to: long enough for a busy machine to reach the code that hangs."""
BOUND_S = sample(0.25, 60.0)
"""How long after its limit a run has a result at the latest; a busy machine keeps no bound."""


@dataclass
class Hang:
    """Ways to hang, and what releases them."""

    released: threading.Event = field(default_factory=threading.Event)
    pipe: tuple[int, int] = field(default_factory=os.pipe)
    started: threading.Event = field(default_factory=threading.Event)

    def block(self) -> str:
        """Hang as `time.sleep` does."""
        self.started.set()
        self.released.wait(30)
        return "late"

    def hold(self, _record: object) -> None:
        """Hang as an observer of an event."""
        self.block()

    def spin(self) -> str:
        """Hang without ever waiting."""
        self.started.set()
        end = time.monotonic() + 30
        while not self.released.is_set() and time.monotonic() < end:
            pass
        return "late"

    def read(self) -> str:
        """Hang in a blocking read."""
        self.started.set()
        os.read(self.pipe[0], 1)
        return "late"

    def compute(self) -> str:
        """Hang in a C function that releases the interpreter."""
        self.started.set()
        hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
        return "late"

    async def wait(self) -> str:
        """Wait in the loop until cancelled."""
        self.started.set()
        await anyio.sleep_forever()
        return "late"

    async def tidy(self) -> str:
        """Wait in the loop, and take a moment to clean up when cancelled."""
        self.started.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.02)
        return "late"

    async def swallow(self) -> str:
        """Wait in the loop and swallow every cancellation."""
        self.started.set()
        while not self.released.is_set():
            try:
                await asyncio.sleep(0.005)
            except asyncio.CancelledError:
                continue
        return "late"

    def asynchronously(self, kind: str) -> Callable[[], Any]:
        """Return a coroutine function that hangs in this way."""
        if kind in ("wait", "swallow", "tidy"):
            return getattr(self, kind)

        async def hang() -> Any:
            return getattr(self, kind)()

        return hang


@contextmanager
def hanging() -> Iterator[Hang]:
    """Release everything that hangs when the test ends."""
    hang = Hang()
    try:
        yield hang
    finally:
        hang.released.set()
        os.write(hang.pipe[1], b"xxxx")


class HungModel(ScriptedModel):
    """Calls `lookup`, and then hangs."""

    def __init__(self, hang: Callable[[], Any]) -> None:
        super().__init__([call("lookup", key="a"), text("never")])
        self._hang = hang

    async def complete(self, request: Any) -> Any:
        """Answer once."""
        if request.number:
            await self._hang()
        return await super().complete(request)


def hook_at(point: list[str], hook: Any, harness: Any) -> None:
    """Register a hook at a point: a phase, a tag, or a tag that is tapped or required."""
    match point:
        case ["before", phase]:
            harness.before(phase, hook, timeout_s=60)
        case ["after", phase]:
            harness.after(phase, hook, timeout_s=60)
        case ["tap", tag]:
            harness.tap(tag, hook, timeout_s=60)
        case [*words, tag]:
            harness.on(tag, hook, required=words == ["required"], timeout_s=60)


def hung_agent(where: str, kind: str, hang: Hang, folder: Path | None, *switches: Any) -> Agent:
    """Return an agent that looks up `a` and then hangs in its `model`, a tool, `approver`, `hook …` or `observer …`."""
    body = hang.asynchronously(kind)

    @tool(name="hung", timeout=None, requires_approval=where == "approver")
    async def in_loop() -> str:
        return await body()

    @tool(name="hung", timeout=None)
    def in_thread() -> str:
        return getattr(hang, kind)()

    async def hook(*_: Any) -> None:
        await body()

    def approve(_request: Any) -> Any:
        return getattr(hang, kind)()

    place, _, point = where.partition(" ")

    calls_it = where in ("async tool", "sync tool", "approver", "observer killswitch-fired", "observer run-completed")
    turns = [call("lookup", key="a"), *([call("hung")] if calls_it else []), text("done")]
    agent = Agent(
        HungModel(body) if where == "model" else ScriptedModel(turns),
        **grouped(
            tools=[lookup, in_thread if where == "sync tool" else in_loop],
            approver=approve if where == "approver" else None,
            rationale=False,
            meta_tools=(),
            trace=folder,
            compose=[*switches, *([partial(hook_at, point.split(), hook)] if place == "hook" else [])],
        ),
    )
    if place == "observer":
        agent.subscribe(point, hang.hold)
    return agent


def timed(run: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[float, Any]:
    """Return the seconds of a run, and its result or error."""
    began = time.monotonic()
    try:
        result = run(*args, **kwargs)
    except PlayheadError as error:
        result = error
    return time.monotonic() - began, result
