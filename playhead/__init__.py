"""Playhead: a flight recorder and time machine for LLM agents.

The rooms, each importing only from those before it:

    errors, settings ← trace ← diagnose ← kernel ← compose ← agent ← replay ← cli

`trace` is what happened, `diagnose` reads it, `kernel` is the loop that makes it happen, `compose` what may change or stop
it, `agent` the one way to run, to follow a run and to talk with an agent, `replay` runs a recording again; `mcp` has the tools of
other servers. (The function `replay` is in `playhead.replay`: here its name would be the room's.) They stand in one package because
a top-level package called `trace` would be shadowed by the standard library's.

Warnings (a trace that cannot be written, a subscriber that fails) go to the logger `playhead`. It has no handler of its
own, so that they reach stderr in a program that has not configured logging.

The public names stand in `__init__.pyi`, and are loaded when they are first used: importing Playhead costs next to nothing.
"""

from __future__ import annotations

from playhead.trace import VERSION
from playhead.trace.public import public_names

__version__ = VERSION
__all__, __getattr__ = public_names(__name__, f"{__file__}i")


def __dir__() -> list[str]:
    return __all__
