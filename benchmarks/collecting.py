"""What the worst bodies cost that `playhead collect` takes: memory while they are parsed, and seconds. Each in a process."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psutil

from playhead.importing.collect.collector import JSON, MAX_HELD, PROTOBUF, RefusedError, read_body
from playhead.importing.collect.server import MAX_BODY

if TYPE_CHECKING:
    from collections.abc import Callable

IDS = b"\x0a\x10" + b"a" * 16 + b"\x12\x08" + b"b" * 8
MANY = MAX_HELD // 310
"""Messages, about as many as are taken."""


def within(number: int, content: bytes) -> bytes:
    """Return a field of protobuf."""
    length, encoded = len(content), b""
    while length > 0x7F:  # noqa: PLR2004 - the last byte has no highest bit
        encoded += bytes((length & 0x7F | 0x80,))
        length >>= 7
    return bytes((number << 3 | 2,)) + encoded + bytes((length,)) + content


def span(content: bytes) -> bytes:
    """Return a request with a span."""
    return within(1, within(2, within(2, IDS + content)))


def array(value: bytes, count: int) -> bytes:
    """Return a request with a span that has an attribute with many values."""
    return span(within(9, b"\x0a\x01a" + within(2, within(5, value * count))))


def listed(item: bytes, parts: int) -> bytes:
    """Return JSON with as many of these as fit, of so many parts each."""
    count = min(MANY // parts, MAX_BODY // len(item) - 10)
    return b'{"resourceSpans":[' + b",".join([item[:-1]] * count) + b"]}"


def pairs() -> bytes:
    """Return an object with many values, each a text of its own under a name of its own."""
    texts = (f"{number:08d}".encode() for number in range(MANY // 2))
    return b"".join(b"\x0a\x16\x0a\x08" + text + b"\x12\x0a\x0a\x08" + text for text in texts)


def json_pairs() -> bytes:
    """Return the same as JSON."""
    texts = [f"{number:08d}" for number in range(MANY // 5)]
    values = ",".join(f'{{"key":"{text}","value":{{"stringValue":"{text}"}}}}' for text in texts)
    ids = '{"traceId":"' + "a" * 32 + '","spanId":"' + "b" * 16
    value = '","attributes":[{"key":"a","value":{"kvlistValue":{"values":[' + values + "]}}}]}"
    return ('{"resourceSpans":[{"scopeSpans":[{"spans":[' + ids + value + "]}]}]}").encode()


BODIES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "empty resources": (PROTOBUF, lambda: b"\x0a\x00" * MANY),
    "empty scopes": (PROTOBUF, lambda: within(1, b"\x12\x00" * MANY)),
    "empty spans": (PROTOBUF, lambda: within(1, within(2, b"\x12\x00" * MANY))),
    "spans": (PROTOBUF, lambda: within(1, within(2, within(2, IDS) * 199_000))),
    "empty attributes": (PROTOBUF, lambda: span(b"\x4a\x00" * MANY)),
    "empty events": (PROTOBUF, lambda: span(b"\x5a\x00" * MANY)),
    "empty links": (PROTOBUF, lambda: span(b"\x6a\x00" * MANY)),
    "lists in a list": (PROTOBUF, lambda: array(b"\x0a\x02\x2a\x00", MANY // 2)),
    "objects in a list": (PROTOBUF, lambda: array(b"\x0a\x04\x32\x02\x0a\x00", MANY // 3)),
    "pairs": (PROTOBUF, lambda: span(within(9, b"\x0a\x01a" + within(2, within(6, pairs()))))),
    "a text": (PROTOBUF, lambda: span(within(9, b"\x0a\x01a" + within(2, within(1, b"a" * (MAX_BODY - 999)))))),
    "json objects": (JSON, lambda: listed(b"{},", 2)),
    "json objects of one": (JSON, lambda: listed(b'{"":0},', 2)),
    "json objects of objects": (JSON, lambda: listed(b'{"":{}},', 3)),
    "json pairs": (JSON, json_pairs),
    "json numbers": (JSON, lambda: listed(b"1e9,", 1)),
    "json texts": (JSON, lambda: listed(b'"\xc4\x80 12345678",', 1)),
    "json text": (JSON, lambda: b'{"resourceSpans":[],"a":"' + b"\xc4\x80" * (MAX_BODY // 2 - 99) + b'"}'),
}


def main() -> None:
    """Measure every body in a process of its own."""
    for name in BODIES:
        subprocess.run([sys.executable, "-m", "benchmarks.collecting", name], check=True)  # noqa: S603 - our own


def measure(name: str) -> None:
    """Measure one."""
    content_type, make = BODIES[name]
    content = make()
    read_body(content_type, b"" if content_type == PROTOBUF else b"{}")
    before = psutil.Process().memory_info().rss
    began = time.perf_counter()
    try:
        said = f"{len(read_body(content_type, content).spans):,} spans"
    except RefusedError as error:
        said = f"refused: {error}"
    seconds = time.perf_counter() - began
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before) / 2**20  # KiB on Linux
    print(f"{name:24} {len(content) / 2**20:5.1f} MiB: {peak:4.0f} MiB, {seconds:4.1f} s, {said}")


if __name__ == "__main__":
    measure(sys.argv[1])
