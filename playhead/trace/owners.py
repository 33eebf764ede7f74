"""The names of owners: `root`, and below it the calls that led to an agent, such as `root/researcher@3.0`.

All code that splits such names is here: a tool's name may contain a `/`, and each call ends with its turn and position.
"""

from __future__ import annotations

import re
from typing import Final

_PLACE: Final = re.compile(r"@(?:-|\d+)\.\d+(?=/|$)")
_PLACES: Final = re.compile(r"@(-|\d{1,9})\.(\d{1,9})(?=/|$)", re.ASCII)


def agent_path(owner: str) -> str:
    """Return an owner without turns and places: `root/researcher@3.0` is `root/researcher`."""
    return _PLACE.sub("", owner)


def owner_inside(owner: str, tool: str, iteration: int | None, position: int) -> str:
    """Return the owner of the events that a call causes: its use of the ports, or the sub-agent that it starts."""
    return f"{owner}/{tool}@{'-' if iteration is None else iteration}.{position}"


def lineage(owner: str) -> list[str]:
    """Return the owners from the root down to this one, both included."""
    above = [owner.partition("/")[0], *(owner[: place.end()] for place in _PLACE.finditer(owner))]
    return above if above[-1] == owner else [*above, owner]


def parent_of(owner: str) -> str:
    """Return the owner that made the call; empty for the root."""
    ends = [0, len(owner.partition("/")[0]), *(place.end() for place in _PLACE.finditer(owner))]
    return owner[: ends[-1] if ends[-1] < len(owner) else ends[-2]]


def own_name(owner: str) -> str:
    """Return an owner without those above it: `researcher@3.0`, with its turn and place."""
    return owner.removeprefix(f"{parent_of(owner)}/")


def tool_of(owner: str) -> str:
    """Return the tool that the owner's call names; empty for the root."""
    return own_name(owner).rpartition("@")[0]


def depth_of(owner: str) -> int:
    """Return how many agents and calls are above an owner; 0 for the root."""
    return len(lineage(owner)) - 1


def places_of(owner: str) -> tuple[tuple[int, int], ...]:
    """Return the turns and positions in an owner's name. As a sort key, they put an owner right after its parent."""
    return tuple((int(turn) if turn != "-" else -1, int(position)) for turn, position in _PLACES.findall(owner))


def is_within(owner: str, top: str) -> bool:
    """Return whether `owner` is `top` or below it."""
    return owner == top or owner.startswith(f"{top}/")
