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

import re
from importlib import import_module

from playhead.trace import VERSION

__version__ = VERSION

with open(f"{__file__}i", encoding="utf-8") as _stub:  # noqa: PTH123 - pathlib would be half of what the import costs
    _HOMES = {name: home for home, name in re.findall(r"^from (\S+) import (\w+) as", _stub.read(), re.MULTILINE)}
__all__ = sorted(_HOMES)  # noqa: PLE0605 - the names stand in the stub alone


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'playhead' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_HOMES)
