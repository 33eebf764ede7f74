"""Requests that are arriving. None may take long; and when there are too many, the one that has taken longest goes.

So a client that sends byte by byte, or nothing, keeps nobody out, however many of it there are.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final

from playhead.importing.collect.bodies import MAX_BODY, RefusedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

MOST: Final = 200
"""Connections that are waited for at once: fewer than the files that any system lets a process open."""
MAX_HELD: Final = 4 * MAX_BODY
"""Bytes of bodies that are here and not taken in yet."""
MAX_QUEUE: Final = 64
"""Requests that have arrived and wait for those before them."""
REQUEST_S: Final = 20.0
"""Seconds from the first byte of a request to its last."""


class Arrivals:
    """What is arriving. For one event loop."""

    def __init__(self) -> None:
        self._deadlines: dict[asyncio.Timeout, None] = {}
        self._evicted: set[asyncio.Timeout] = set()
        self._held = 0
        self._queue = 0
        self.stopped = False
        """Whether nothing more is waited for."""

    @property
    def has_room(self) -> bool:
        """Whether one more can be waited for without another having to go."""
        return not self.stopped and len(self._deadlines) < MOST

    @asynccontextmanager
    async def arriving(self, seconds: float) -> AsyncIterator[asyncio.Timeout]:
        """Wait for a client no longer than this.

        Raises:
            RefusedError: there were too many, or the collector stops.
            TimeoutError: it took too long.
        """
        if len(self._deadlines) >= MOST:
            self._end(next(iter(self._deadlines)))
        deadline = asyncio.timeout(0 if self.stopped else seconds)
        try:
            async with deadline:
                self._deadlines[deadline] = None
                yield deadline
        except TimeoutError:
            if self.stopped:
                raise RefusedError(503, "the collector stops: send again later") from None
            if deadline in self._evicted:
                raise RefusedError(503, "too many requests arrive at once: send again later") from None
            raise
        finally:
            self._deadlines.pop(deadline, None)
            self._evicted.discard(deadline)

    def limit(self, deadline: asyncio.Timeout, seconds: float) -> None:
        """Wait for a client so long from now on, unless it has to go already."""
        if deadline in self._deadlines and not deadline.expired():
            deadline.reschedule(asyncio.get_running_loop().time() + seconds)

    def stop(self) -> None:
        """Wait for nobody any more."""
        self.stopped = True
        for deadline in list(self._deadlines):
            self._end(deadline)

    @contextmanager
    def holding(self) -> Iterator[Holding]:
        """Account for a body as long as it is here."""
        holding = Holding()
        try:
            yield holding
        finally:
            self._held -= holding.size

    def hold(self, holding: Holding, size: int) -> None:
        """Take so much more of a body.

        Raises:
            RefusedError: too much is here already.
        """
        if self._held + size > MAX_HELD:
            raise RefusedError(503, f"more than {MAX_HELD:,} bytes would wait to be taken in: send again later")
        self._held += size
        holding.size += size

    @contextmanager
    def queueing(self) -> Iterator[None]:
        """Account for a request that has arrived.

        Raises:
            RefusedError: too many wait already.
        """
        if self._queue >= MAX_QUEUE:
            raise RefusedError(503, f"{MAX_QUEUE} requests wait to be taken in: send again later")
        self._queue += 1
        try:
            yield
        finally:
            self._queue -= 1

    def _end(self, deadline: asyncio.Timeout) -> None:
        self._deadlines.pop(deadline, None)
        if not deadline.expired():
            self._evicted.add(deadline)
            deadline.reschedule(asyncio.get_running_loop().time())


class Holding:
    """The bytes of one body that are here."""

    size = 0
