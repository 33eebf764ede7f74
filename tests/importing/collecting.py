"""What is sent to a collector, and what it answers."""

from __future__ import annotations

import gzip
import json
import socket
import urllib.error
import urllib.request
from contextlib import suppress
from typing import Any

from playhead.importing.collect.collector import Collector, read_body
from tests.importing.traces import CAPTURED, shop

PROTOBUF, JSON = "application/x-protobuf", "application/json"
LANGGRAPH = gzip.decompress((CAPTURED / "langgraph.pb.gz").read_bytes())


def take(made: Collector, content: bytes, content_type: str = PROTOBUF) -> None:
    """Let a collector take a body, as its server does."""
    made.take(read_body(content_type, content))


def recorded(made: Collector, *, all_of_them: bool = False) -> list[Any]:
    """Record what is due, and return it: there is no trace that cannot be recorded."""
    found = list(made.record(all_of_them=all_of_them))
    assert all(each.run is not None for each in found)
    return found


def post(
    address: str, content: bytes, content_type: str = PROTOBUF, path: str = "/v1/traces", **headers: str
) -> tuple[int, bytes]:
    """Send a body, and return status and answer."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(address + path, content, {"Content-Type": content_type, **named}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def document(*places: int) -> bytes:
    """Return a request with these spans of a run."""
    spans = [shop().spans[place] for place in places or range(4)]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


def head(*headers: str, version: str = "1.1", method: str = "POST", content_type: str = PROTOBUF) -> bytes:
    """Return the head of a request."""
    lines = (f"{method} /v1/traces HTTP/{version}", "Host: x", f"Content-Type: {content_type}", *headers, "", "")
    return "\r\n".join(lines).encode()


def chunks(content: bytes, size: int = 1000, end: str = "") -> bytes:
    """Return a body in chunks."""
    parts = [content[at : at + size] for at in range(0, len(content), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + f"0\r\n{end}\r\n".encode()


def connected(address: str) -> socket.socket:
    """Return a connection."""
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def raw(address: str, sent: bytes, answers: int = 1) -> bytes:
    """Send bytes, and return what is answered: as much as comes of that many answers."""
    with connected(address) as connection:
        with suppress(OSError):  # it was refused before it had come
            connection.sendall(sent)
        said = b""
        while said.count(b"HTTP/1.1 ") < answers or b"\r\n\r\n" not in said:
            said += connection.recv(65536)
        return said + (
            b"" if b"content-length: 0" in said else connection.recv(65536) if said.endswith(b"\r\n\r\n") else b""
        )
