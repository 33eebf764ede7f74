"""A live receiver of OTLP over HTTP: what programs export while they run becomes recordings.

bodies      a request's body: its size, its compression, its spans
spool       what was acknowledged, on disk until it is recorded
assembly    the spans of traces that go on, and when one has ended
collector   from a body to a recording
server      HTTP
"""

from __future__ import annotations

from playhead.importing.collect.collector import Collected, Collector
from playhead.importing.collect.server import CollectServer

__all__ = ["CollectServer", "Collected", "Collector"]
