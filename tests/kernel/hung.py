"""Code that hangs, until a test lets it go, and how long a run under a limit takes with it."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from playhead import Agent, tool
from playhead.errors import PlayheadError
from playhead.testing import ScriptedModel, call, text
from tests.options import grouped
from tests.proving import sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LIMIT_S = sample(0.12, 0.5)
"""What the runs are limited to: long enough for a busy machine to get to the code that hangs."""
BOUND_S = sample(0.25, 60.0)
"""How long after its limit a run has a result at the latest; a busy machine keeps no bound."""
TRIES = 3
"""Measurements, of which the best counts: other processes may hold this one up."""


@dataclass
class Hang:
    """Lets everything go that hangs."""

    released: threading.Event = field(default_factory=threading.Event)
    pipe: tuple[int, int] = field(default_factory=os.pipe)
    started: threading.Event = field(default_factory=threading.Event)
    returned: list[str] = field(default_factory=list)
    """What came back late."""

    def block(self) -> str:
        """Hang as `time.sleep` does."""
        self.started.set()
        self.released.wait(30)
        self.returned.append("late")
        return "late"

    def hold(self, _record: object) -> None:
        """Hang in hearing of an event."""
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

    async def wait(self) -> str:
        """Hang in the loop, and obey its cancellation."""
        self.started.set()
        await anyio.sleep_forever()
        return "late"

    async def swallow(self) -> str:
        """Hang in the loop, whoever cancels it."""
        self.started.set()
        while not self.released.is_set():
            try:
                await asyncio.sleep(0.005)
            except asyncio.CancelledError:
                continue
        self.returned.append("late")
        return "late"

    def asynchronously(self, kind: str) -> Callable[[], Any]:
        """Return a coroutine function that hangs in this way."""
        if kind in ("wait", "swallow"):
            return getattr(self, kind)

        async def hang() -> Any:
            return getattr(self, kind)()

        return hang


@contextmanager
def hanging() -> Iterator[Hang]:
    """Let everything go when the test is over."""
    hang = Hang()
    try:
        yield hang
    finally:
        hang.released.set()
        os.write(hang.pipe[1], b"xxxx")


@tool(read_only=True)
async def lookup(key: str) -> str:
    """Look up."""
    return f"found {key}"


class HungModel(ScriptedModel):
    """Calls `lookup`, and then hangs."""

    def __init__(self, hang: Callable[[], Any]) -> None:
        super().__init__([call("lookup", key="a"), text("never")])
        self._hang = hang

    async def complete(self, request: Any) -> Any:
        """Answer, once."""
        if request.number:
            await self._hang()
        return await super().complete(request)


def hung_agent(where: str, kind: str, hang: Hang, folder: Path, *switches: Any) -> Agent:
    """Return an agent that looks up `a`, and then hangs in its model or in a tool."""
    options: dict[str, Any] = {"rationale": False, "meta_tools": (), "trace": folder, "compose": switches}
    if where == "model":
        return Agent(HungModel(hang.asynchronously(kind)), **grouped(tools=[lookup], **options))
    body = getattr(hang, kind) if where == "sync tool" else hang.asynchronously(kind)

    async def in_loop() -> str:
        return await body()

    def in_thread() -> str:
        return body()

    hung = tool(name="hung", timeout=None)(in_thread if where == "sync tool" else in_loop)
    return Agent(
        ScriptedModel([call("lookup", key="a"), call("hung"), text("never")]),
        **grouped(tools=[lookup, hung], **options),
    )


def timed(run: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[float, Any]:
    """Return the seconds of a run, and what came of it."""
    began = time.monotonic()
    try:
        result = run(*args, **kwargs)
    except PlayheadError as error:
        result = error
    return time.monotonic() - began, result


async def timed_await(run: Any) -> tuple[float, Any]:
    """Return the seconds of a run, and what came of it."""
    began = time.monotonic()
    try:
        result = await run
    except PlayheadError as error:
        result = error
    return time.monotonic() - began, result
