"""Forks while runs go on: the child finds no module half loaded and no lock held by a thread that it does not have.

Only the thread that forks lives on in the child. A module that another thread was loading at that moment stays locked in
the child for ever, and so does a lock that another thread held. So whoever forks waits for what is being loaded and loads
what a run would load later; in the child the locks that an agent and its parts share are new ones.
"""

from __future__ import annotations

import os
import pkgutil
import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import Final
from weakref import WeakSet

from pydantic import BaseModel

_APART: Final = frozenset(f"playhead.{name}" for name in ("chat", "cli", "diagnose", "importing", "mcp", "replay"))
"""Packages that are not needed to run an agent: what is being loaded of them is waited for, the rest is left."""
_WHEN_ENTERED: Final = frozenset({"playhead.spans"})
"""Packages that only runs need whose spans are exported."""
_NEEDED: Final = ("psutil", "rapidfuzz.distance", "rapidfuzz.fuzz", "rfc8785")
_WAITED_FOR: Final = sys.stdlib_module_names | {
    "anyio", "google", "httpcore", "httpx", "litellm", "mcp", "ollama", "openai", "openinference",
    "opentelemetry", "playhead", "psutil", "pydantic", "pydantic_settings", "rapidfuzz", "requests", "rfc8785", "urllib3",
}  # fmt: skip
"""Packages whose loading ends by itself. One that runs a whole program while it is imported would hold up the fork."""
_loaded: set[str] = set()
"""Packages of ours of which every module is loaded."""
_locks: WeakSet[SharedLock] = WeakSet()


class SharedLock:
    """A re-entrant lock of an object that a forked child may use, too: there it is a new one."""

    def __init__(self) -> None:
        self.renew()
        _locks.add(self)

    def renew(self) -> None:
        """Begin anew."""
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def load_for_fork() -> None:
    """Load what a run may load later, and wait for what other threads are loading; alone, there is nothing to wait for."""
    if threading.active_count() == 1:
        return
    while packages := [name for name in tuple(sys.modules) if name.partition(".")[0] == "playhead" and _is_left(name)]:
        for package in packages:
            for found in pkgutil.iter_modules(sys.modules[package].__path__, f"{package}."):
                if found.name not in _APART | _WHEN_ENTERED and not found.name.endswith("__main__"):
                    _load(found.name)
            _loaded.add(package)  # not before: another thread may fork meanwhile
    _complete_models(BaseModel)
    for name in (*_NEEDED, *(name for name in tuple(sys.modules) if name.partition(".")[0] in _WAITED_FOR)):
        _load(name)


def _is_left(name: str) -> bool:
    """Return whether this is a package of which some modules may not be loaded."""
    return name not in _loaded | _APART and hasattr(sys.modules.get(name), "__path__")


def _complete_models(parent: type[BaseModel]) -> None:
    """Let pydantic do what it has put off: it does that under a lock of its own."""
    for model in parent.__subclasses__():
        if model.__module__.startswith("playhead."):
            with suppress(Exception):
                model.model_rebuild()
        _complete_models(model)


def _load(name: str) -> None:
    """Import a module, or wait until another thread has."""
    with suppress(Exception, SystemExit):  # an extra that is not there; what is broken says so when it is used
        import_module(name)


def _renew_locks() -> None:
    for lock in list(_locks):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=load_for_fork, after_in_child=_renew_locks)
