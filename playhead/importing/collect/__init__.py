"""A live receiver of OTLP over HTTP: what programs export while they run becomes recordings.

listening   the socket
server      two threads: one waits for clients, one takes in
connection  HTTP
arrivals    what is arriving, and that nobody takes long
requests    what a request asks for
answers     what it is answered
bodies      a request's body: its size, its compression, its spans
weight      what a body costs when it is parsed
spool       what was acknowledged, on disk until it is recorded
assembly    the spans of traces that go on, and when one has ended
collector   from a body to a recording
"""

from __future__ import annotations

from playhead.importing.collect.collector import Collected, Collector, NotRecorded
from playhead.importing.collect.server import CollectServer

__all__ = ["CollectServer", "Collected", "Collector", "NotRecorded"]
