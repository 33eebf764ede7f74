"""A live receiver of OTLP over HTTP: what programs export while they run becomes recordings.

server     the socket, and uvicorn in a thread
app        what a request is answered, on starlette
bodies     a request's body: its size, its compression, its spans
spool      what was acknowledged, on disk until it is recorded
collector  the spans of traces that go on, and their recordings
"""

from __future__ import annotations

from playhead.importing.collect.collector import Collected, Collector, NotRecorded
from playhead.importing.collect.server import CollectServer

__all__ = ["CollectServer", "Collected", "Collector", "NotRecorded"]
