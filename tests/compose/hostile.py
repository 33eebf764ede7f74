"""Hooks that fail in every way there is, and every place to put them."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from playhead.compose import PHASES
from playhead.errors import RunEndedError
from tests.compose.hooked import EMITTED, EVERYTHING, everything, run_with

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playhead.compose import Block
    from tests.kernel.runs import Ran

PLACES = [
    *(f"{role} {tag}" for role in ("on", "tap") for tag in EMITTED),
    *(f"{timing} {phase}" for timing in ("before", "after") for phase in PHASES),
]
"""Every chokepoint as a transform and as a tap, and both sides of every phase."""


def placed(place: str, hook: Any, **options: Any) -> Block:
    """Return a block that registers a hook at a place."""
    role, at = place.split(" ")
    return lambda harness: getattr(harness, role)(at, hook, **{"name": "hostile", **options})


def where(place: str) -> str:
    """Return how the trace calls a place."""
    role, at = place.split(" ")
    return at if role in ("on", "tap") else place


class Odd(BaseException):
    """What is no `Exception`."""


class MuteError(Exception):
    """Cannot say what is wrong."""

    def __str__(self) -> str:
        raise RuntimeError("mute")


def raising(error: BaseException) -> Callable[..., Any]:
    """Return a hook that raises this."""

    def hook(*_: Any) -> None:
        raise error

    return hook


def raising_later(error: BaseException) -> Callable[..., Any]:
    """Return an asynchronous hook that raises this."""

    async def hook(*_: Any) -> None:
        await anyio.lowlevel.checkpoint()
        raise error

    return hook


async def hang(*_: Any) -> None:
    """Take for ever."""
    await anyio.sleep_forever()


async def outlast(*_: Any) -> str:
    """Return something after the time is up."""
    try:
        await anyio.sleep_forever()
    finally:
        return "late"  # noqa: B012 - that is what is hostile about it


def nap(*_: Any) -> None:
    """Hold up the run."""
    time.sleep(0.001)


HOSTILE: dict[str, tuple[Any, dict[str, Any]]] = {
    "error": (raising(ValueError("no")), {}),
    "mute": (raising(MuteError()), {}),
    "exit": (raising(SystemExit(3)), {}),
    "cancelled": (raising(asyncio.CancelledError("by hand")), {}),
    "run ended": (raising(RunEndedError("says the hook")), {}),
    "async error": (raising_later(ValueError("no")), {}),
    "async cancelled": (raising_later(asyncio.CancelledError("by hand")), {}),
    "async timeout": (raising_later(TimeoutError()), {}),
    "async hang": (hang, {"timeout_s": 0.002}),
    "async late": (outlast, {"timeout_s": 0.002}),
    "too many": (lambda: None, {}),
    "slow": (nap, {}),
}


async def run_all(folder: Path, *blocks: Block) -> Ran:
    """Run what passes every chokepoint."""
    return await run_with(folder, everything(), *blocks, rationale=True, **EVERYTHING)
