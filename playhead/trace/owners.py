"""The names of owners: `root`, and below it the calls that led to an agent, such as `root/researcher@3.0`."""

from __future__ import annotations

import re
from typing import Final

_PLACE: Final = re.compile(r"@(?:-|\d+)\.\d+(?=/|$)")


def agent_path(owner: str) -> str:
    """Return an owner without turns and places: `root/researcher@3.0` is `root/researcher`."""
    return _PLACE.sub("", owner)
