"""The door to whatever steers a run and is neither model nor tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.trace.events import (
    FactRecorded,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.session import Session


class FactDoor:
    """Asks for whatever steers the run and is neither model nor tool; replays serve the recorded answer."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._world = session.run.world

    async def ask(self, name: str, answer: Callable[[], Any], key: str = "") -> Any:  # noqa: ANN401 - any JSON value
        """Return the answer of `answer()`, sync or async, and record it under `name`.

        `key` tells apart questions of one name that are open at the same time.
        """
        self._session.require_running()
        value = await self._world.fact(self._session.owner, name, key, answer)
        self._session.emit(FactRecorded(name=name, key=key, value=value))
        return value

    async def sleep(self, seconds: float) -> None:
        """Let time pass; in a replay it has passed already."""
        await self._world.sleep(seconds)
