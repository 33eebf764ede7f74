"""Threads that must not be held up by code of the user's: they wait for it a moment, and then go on without it."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_S: Final = 0.02
"""Seconds that such a thread waits for an observer."""
_state = threading.local()


@contextmanager
def in_haste() -> Iterator[None]:
    """Let observers of what this thread records hold it up for a moment at most."""
    before = hasty()
    _state.hasty = True
    try:
        yield
    finally:
        _state.hasty = before


def hasty() -> bool:
    """Return whether this thread must not be held up."""
    return getattr(_state, "hasty", False)


def patiently(action: Callable[[], object]) -> None:
    """Do it in a thread of its own, and wait a moment for that."""
    thread = threading.Thread(target=action, name="playhead-observer", daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
