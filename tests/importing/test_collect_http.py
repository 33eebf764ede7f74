"""HTTP as the live receiver speaks it: what is not clear is refused in words, and no client keeps another one out."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import sys
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

from playhead.errors import NotImportableError, UsageError
from playhead.importing.collect import collector as collector_module
from playhead.importing.collect import server as server_module
from playhead.importing.collect.collector import FOLDER
from playhead.importing.collect.server import MAX_BODY, CollectServer
from playhead.importing.limits import Room
from playhead.importing.readers.rows import spans_of_message
from tests.importing.collecting import (
    JSON,
    LANGGRAPH,
    PROTOBUF,
    chunks,
    collecting,
    connected,
    document,
    head,
    post,
    raw,
    recorded,
)
from tests.importing.traces import shop
from tests.proving import sample

if TYPE_CHECKING:
    from pathlib import Path

REFUSED: dict[str, tuple[int, dict[str, Any], str]] = {
    "no otlp": (400, {"content": b"\xff\xff\xff"}, "no OTLP message"),
    "no json": (400, {"content": b"{", "content_type": JSON}, "not JSON"),
    "deep json": (400, {"content": b"[" * 5000, "content_type": JSON}, "not JSON, or nested too deep"),
    "other json": (
        400,
        {"content": b'{"a": 1}', "content_type": JSON},
        "an object with resourceSpans, a list, is wanted",
    ),
    "no gzip": (400, {"content": b"no", "Content_Encoding": "gzip"}, "the body is not gzip"),
    "torn gzip": (400, {"content": gzip.compress(b"x" * 999)[:-9], "Content_Encoding": "gzip"}, "not one whole gzip"),
    "a form": (415, {"content": b"a=1", "content_type": "application/x-www-form-urlencoded"}, "OTLP over HTTP has"),
    "zstd": (415, {"content": b"", "Content_Encoding": "zstd"}, "only gzip"),
    "br": (415, {"content": b"", "Content_Encoding": "br"}, "only gzip"),
    "gzip twice": (415, {"content": b"", "Content_Encoding": "gzip, gzip"}, "only gzip"),
    "no deflate": (400, {"content": b"no", "Content_Encoding": "deflate"}, "the body is not deflate"),
    "two gzips": (400, {"content": gzip.compress(b"") * 2, "Content_Encoding": "gzip"}, "not one whole gzip"),
    "no list": (400, {"content": b'{"resourceSpans": 5}', "content_type": JSON}, "a list, is wanted"),
    "empty json": (400, {"content": b"", "content_type": JSON}, "not JSON"),
    "nested messages": (400, {"content": b"\xff\xff\x03" * 999_999}, "no OTLP message"),
    "metrics": (404, {"content": b"", "path": "/v1/metrics"}, "only traces are collected"),
    "a web page": (403, {"content": b"", "Origin": "https://evil.example"}, "from a web page"),
}


def test_refuses_what_it_cannot_read(tmp_path: Path) -> None:
    """With the right status, and a sentence; nothing is kept of it."""
    with collecting(tmp_path) as (made, address):
        for name, (status, given, why) in REFUSED.items():
            answered, said = post(address, **given)
            assert (answered, why in said.decode("utf-8", "replace")) == (status, True), (name, said)
        assert recorded(made, all_of_them=True) == []
        assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == ["lock"]


def test_refuses_what_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the length that is said, before anything is read; by what comes in chunks; and by what is unpacked."""
    bomb = gzip.compress(b"\0" * (MAX_BODY + 1))
    with collecting(tmp_path) as (_, address):
        status, said = post(address, bomb, Content_Encoding="gzip")
        assert (status, b"when it is unpacked" in said) == (413, True)
        monkeypatch.setattr(server_module, "MAX_BODY", 100)
        status, said = post(address, LANGGRAPH)
        assert (status, b"at most 100 are taken" in said) == (413, True)
        assert b" 413 " in raw(address, head("Transfer-Encoding: chunked") + chunks(LANGGRAPH))
        monkeypatch.setattr(server_module, "MAX_WAITING", 50)
        assert b" 503 " in raw(address, head("Transfer-Encoding: chunked") + chunks(LANGGRAPH))


@pytest.mark.parametrize(
    ("content_type", "content"),
    [(JSON, b'[{},["a"' * 400), (PROTOBUF, b"\x0a\x00" * 1001), (PROTOBUF, b"\x0a\x02\x12\x00" * 600)],
    ids=["json", "messages", "messages in messages"],
)
def test_refuses_what_is_small_and_parsed_large(
    content_type: str, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two bytes may be a message of 176: parts are counted before anything is parsed."""
    monkeypatch.setattr(collector_module, "MAX_HELD", 100_000)
    with collecting(tmp_path) as (_, address):
        status, said = post(address, gzip.compress(content), content_type, Content_Encoding="gzip")
        assert (status, b"bytes of memory: export smaller batches" in said) == (413, True)


@pytest.mark.parametrize(
    "content",
    [b"\x0a\x05\x12", b"\x0b" * 9, b"\xff" * 11, b"\x0a\x03\x12\x03\x0a", b"\x0a\xff\xff\xff\xff\x0f"],
    ids=["cut off", "a group", "no end", "inner", "length"],
)
def test_a_message_that_is_none_is_no_large_one(content: bytes) -> None:
    """What is cut off, has unknown kinds or numbers without an end is refused where it is counted, too."""
    with pytest.raises(NotImportableError, match="no OTLP message"):
        list(spans_of_message(content, Counter(), Room()))


TAKEN: dict[str, bytes] = {
    "chunked": head("Transfer-Encoding: chunked") + chunks(LANGGRAPH),
    "chunked with trailer": head("Transfer-Encoding: chunked") + chunks(LANGGRAPH, end="Checksum: 1\r\n"),
    "chunked gzip": head("Transfer-Encoding: chunked", "Content-Encoding: gzip") + chunks(gzip.compress(LANGGRAPH)),
    "deflate": head("Transfer-Encoding: chunked", "Content-Encoding: deflate") + chunks(zlib.compress(LANGGRAPH)),
    "http 1.0": head(f"Content-Length: {len(LANGGRAPH)}", version="1.0") + LANGGRAPH,
    "charset": head(f"Content-Length: {len(document())}", content_type="application/json; charset=utf-8") + document(),
    "no spans": head("Content-Length: 0"),
}


@pytest.mark.parametrize("name", sorted(TAKEN))
def test_takes_a_body_however_it_is_sent(name: str, tmp_path: Path) -> None:
    """In chunks, of HTTP/1.0, with parameters of its type, and without any spans."""
    with collecting(tmp_path) as (made, address):
        assert b" 200 " in raw(address, TAKEN[name]).partition(b"\r\n")[0]
        assert len(recorded(made, all_of_them=True)) == (name != "no spans")


def test_fields_that_are_not_known_are_passed_over(tmp_path: Path) -> None:
    """OTLP wants it so: a newer exporter may send more."""
    spans = [span | {"new": {"a": [1]}, "flags": 3} for span in shop().spans]
    content = {"resourceSpans": [{"new": 1, "scopeSpans": [{"spans": spans, "x": None}]}], "later": {}}
    with collecting(tmp_path) as (made, address):
        assert post(address, json.dumps(content).encode(), JSON) == (200, b"{}")
        assert len(recorded(made, all_of_them=True)) == 1


UNREADABLE: dict[str, tuple[int, bytes]] = {
    "other lengths": (400, head("Content-Length: 3", "Content-Length: 4") + b"abcd"),
    "negative": (400, head("Content-Length: -1")),
    "no chunk": (400, head("Transfer-Encoding: chunked") + b"zz\r\n"),
    "long head": (400, head("X: " + "x" * 200_000)),
    "no http": (400, b"\x16\x03\x01\x02\x00\x01\r\n\r\n"),
    "grpc": (404, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "get": (404, head(method="GET")),
    "put": (404, head("Content-Length: 0", method="PUT")),
    "preflight": (404, head("Origin: https://evil.example", method="OPTIONS")),
}


@pytest.mark.parametrize("name", sorted(UNREADABLE))
def test_refuses_requests_that_are_not_clear(name: str, tmp_path: Path) -> None:
    """With a status; nothing is kept of it, and the next request is taken."""
    status, sent = UNREADABLE[name]
    with collecting(tmp_path) as (made, address):
        answer = raw(address, sent).decode("utf-8", "replace")
        assert answer[:12] == f"HTTP/1.1 {status}", answer
        assert post(address, LANGGRAPH)[0] == 200
        assert len(recorded(made, all_of_them=True)) == 1


def test_head_has_no_body(tmp_path: Path) -> None:
    """What asks whether the collector is there, as health checks do."""
    with collecting(tmp_path) as (_, address):
        assert raw(address, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").endswith(
            b"send OTLP to POST /v1/traces\n"
        )
        assert raw(address, b"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").endswith(b"\r\n\r\n")


def test_a_client_may_wait_for_a_go(tmp_path: Path) -> None:
    """`Expect: 100-continue`, as curl sends it: it is told to go on, or refused before it has sent its body."""
    with collecting(tmp_path) as (_, address):
        with connected(address) as connection:
            connection.sendall(head(f"Content-Length: {len(LANGGRAPH)}", "Expect: 100-continue"))
            assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")
            connection.sendall(LANGGRAPH)
            assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
        with connected(address) as connection:
            connection.sendall(head("Content-Length: 99999999", "Expect: 100-continue"))
            assert connection.recv(1000).startswith(b"HTTP/1.1 413 ")


def test_requests_share_a_connection(tmp_path: Path) -> None:
    """One after the other, and sent ahead of the answers; each is answered, in order."""
    one = head(f"Content-Length: {len(document())}", content_type=JSON) + document()
    other = head("Transfer-Encoding: chunked") + chunks(LANGGRAPH)
    with collecting(tmp_path) as (made, address):
        assert raw(address, one + other + one, answers=3).count(b"HTTP/1.1 200") == 3
        assert len(recorded(made, all_of_them=True)) == 2


def test_a_refusal_has_the_form_of_the_request(tmp_path: Path) -> None:
    """OTLP wants a Status: as JSON, or as protobuf."""
    with collecting(tmp_path) as (_, address):
        assert "not JSON" in json.loads(post(address, b"", JSON)[1])["message"]
        assert "no OTLP" in Status.FromString(post(address, b"\xff")[1]).message


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused after a while; meanwhile others are answered."""
    monkeypatch.setattr(server_module, "REQUEST_S", 0.2)
    with collecting(tmp_path) as (_, address), connected(address) as slow:
        slow.sendall(head("Content-Length: 999") + b"a")
        assert post(address, LANGGRAPH)[0] == 200
        assert slow.recv(1000).startswith(b"HTTP/1.1 408 ")


def test_a_stop_acknowledges_no_half_request(tmp_path: Path) -> None:
    """Who had sent half a body has no success, and so sends it again; who sends nothing holds nothing up."""
    with collecting(tmp_path) as (_, address):
        half, idle = connected(address), connected(address)
        half.sendall(head(f"Content-Length: {len(LANGGRAPH)}") + LANGGRAPH[:-1])
        assert post(address, LANGGRAPH)[0] == 200
    assert b" 200 " not in half.recv(1000)
    assert idle.recv(1000) == b""
    half.close()
    idle.close()


@pytest.mark.parametrize(
    ("host", "port", "why"),
    [
        ("192.0.2.1", 0, "Cannot assign requested address"),
        ("nosuch.invalid", 0, "--host is"),
        ("", 0, "there is no address of this name"),
        ("a" * 99, 0, "--host is"),
        ("a\0b", 0, "--host is"),
    ],
    ids=["elsewhere", "unknown", "empty", "long", "null"],
)
def test_an_address_that_is_none_is_told(host: str, port: int, why: str) -> None:
    """With what to give instead."""
    with pytest.raises(UsageError) as caught:
        CollectServer(lambda _: None, host, port)
    assert why in str(caught.value)


def test_a_port_that_is_not_to_be_had_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that needs privileges: the tests may have them, so the system's answer is made up."""

    class Denied(socket.socket):
        def bind(self, address: Any) -> None:
            raise PermissionError(13, f"Permission denied: {address}")

    monkeypatch.setattr(socket, "socket", Denied)
    with pytest.raises(UsageError, match="Permission denied"):
        CollectServer(lambda _: None, port=80)


_BOUND = """
import resource, sys
from google.protobuf.internal.encoder import TagBytes, _VarintBytes
from playhead.importing.collect.collector import read_body

def within(number, content):
    return TagBytes(number, 2) + _VarintBytes(len(content)) + content

read_body("application/x-protobuf", b"")
content = within(1, within(2, within(2, b"") * int(sys.argv[1])))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
read_body("application/x-protobuf", content)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak is counted in other units")
def test_the_memory_of_a_body_is_bounded() -> None:
    """A million empty spans, of two bytes each: less than 250 MiB; the guide has the figure of the benchmark."""
    done = subprocess.run(
        [sys.executable, "-c", _BOUND, str(sample(850_000, 85_000))],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 250
