"""What to make of a run's events: server-sent events for a browser, a list, a text."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from playhead.agent.streaming.events import TextDelta, TextDiscarded
from playhead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Iterable

    from playhead.agent.streaming.events import StreamEvent


def as_json(event: StreamEvent) -> dict[str, Any]:
    """Return an event as a JSON object; `type` is the name of its class."""
    return {"type": type(event).__name__, **asdict(event)}


async def to_sse(events: AsyncIterable[StreamEvent], *, heartbeat_s: float | None = None) -> AsyncIterator[bytes]:
    """Yield a run's events as server-sent events: `event:` is the name of the class, `data:` its fields as JSON.

    The iterator does not end the run when nobody reads any more; an `async with` around it does.

    Args:
        events: a handle, or what else yields events.
        heartbeat_s: seconds of silence after which a comment is sent, so that no proxy closes the connection.

    Raises:
        UsageError: the handle's events are read already, or `heartbeat_s` is no time.
    """
    if heartbeat_s is not None and not heartbeat_s > 0:
        raise UsageError(f"heartbeat_s is a number of seconds above 0; it is {heartbeat_s!r}")
    coming = aiter(events)
    while True:
        # Not cancelled for a heartbeat: that would end a generator, and the stream without its last event.
        coming_next = asyncio.ensure_future(anext(coming, None))
        try:
            while not (await asyncio.wait([coming_next], timeout=heartbeat_s))[0]:
                yield b": heartbeat\n\n"
        finally:
            coming_next.cancel()
        event = coming_next.result()
        if event is None:
            return
        yield _framed(event)


async def collect(events: AsyncIterable[StreamEvent]) -> list[StreamEvent]:
    """Return all events of a run, when it is over."""
    return [event async for event in events]


def text_of(events: Iterable[StreamEvent], owner: str = "root") -> str:
    """Return what an agent's model said, in the order of its requests, without what was discarded."""
    said: dict[tuple[int, int], str] = {}
    for event in events:
        if isinstance(event, TextDelta) and event.owner == owner:
            place = (event.request, event.attempt)
            said[place] = said.get(place, "") + event.text
        elif isinstance(event, TextDiscarded) and event.owner == owner:
            said.pop((event.request, event.attempt), None)
    return "".join(said[place] for place in sorted(said))


def _framed(event: StreamEvent) -> bytes:
    # One line: JSON escapes every line break.
    data = json.dumps(as_json(event), ensure_ascii=False, separators=(",", ":"))
    return f"event: {type(event).__name__}\ndata: {data}\n\n".encode(errors="replace")
