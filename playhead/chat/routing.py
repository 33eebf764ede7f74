"""Does a message ask for something to be done? Decided by its words alone: no model is asked, and no token spent."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

# fmt: off
ACTIONS: Final = frozenset({
    "add", "book", "browse", "buy", "calculate", "call", "cancel", "check", "compute", "convert", "copy", "count",
    "create", "delete", "deploy", "download", "edit", "execute", "fetch", "find", "get", "install", "list", "lookup",
    "measure", "move", "open", "order", "pay", "post", "query", "read", "refund", "remove", "rename", "retrieve", "run",
    "save", "schedule", "search", "send", "show", "start", "stop", "sum", "test", "update", "upload", "verify", "write",
})
# fmt: on
"""English verbs of which one is enough."""
LONGEST: Final = 20_000
"""Characters of a message that are looked at."""
_WORD: Final = re.compile(r"[^\W_]+")


def wants_tools(text: str, tools: Iterable[str]) -> bool:
    """Return whether a message asks for action: it has a verb of action, or names a tool."""
    text = text[:LONGEST].casefold()
    words = _WORD.findall(text)
    if not ACTIONS.isdisjoint(words) or ("look", "up") in set(pairwise(words)):
        return True
    spoken = f" {' '.join(words)} "
    return any(f" {' '.join(_WORD.findall(name.casefold()))} " in spoken for name in tools)
