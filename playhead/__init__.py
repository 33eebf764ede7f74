"""Playhead: a flight recorder and time machine for LLM agents.

The packages, each importing only from those before it:

    errors, settings ← trace ← diagnose ← kernel ← compose ← agent ← instrument ← replay ← cli

`trace` is the record of a run, `diagnose` reads it, `kernel` is the agent loop, `compose` holds hooks, policies and
killswitches, `agent` is the entry point for runs, streams and chats, `instrument` records loops, clients and tools that
are not Playhead's, `replay` runs recordings again, and `mcp` provides the tools of MCP servers. The function `replay` is in `playhead.replay`, because `playhead.replay` is the subpackage.
They share one package because the standard library would shadow a top-level package called `trace`.

Warnings (a trace that cannot be written, a failing subscriber) go to the logger `playhead`. It has no handler of its
own, so warnings reach stderr in programs that have not configured logging.

The public names are declared in `__init__.pyi` and loaded on first use, so importing Playhead is fast.
"""

from __future__ import annotations

from playhead.trace import VERSION
from playhead.trace.public import public_names

__version__ = VERSION
__all__, __getattr__ = public_names(__name__, f"{__file__}i")


def __dir__() -> list[str]:
    return __all__
