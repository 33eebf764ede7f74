"""Replays and reproductions of any recording, blocking."""

from __future__ import annotations

from typing import Any

from playhead import replay as again
from playhead.kernel.lifecycle.threads import run_blocking


def replay_sync(recording: Any, overrides: Any = None, **options: Any) -> Any:
    """Replay a recording, or a reference to one."""
    return run_blocking(lambda: again.replay(recording, overrides, **options))


def reproduce_sync(recording: Any, **options: Any) -> Any:
    """Reproduce a recording, or a reference to one."""
    return run_blocking(lambda: again.reproduce(recording, **options))
