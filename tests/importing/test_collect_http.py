"""HTTP as the live receiver speaks it: a request it cannot take is refused in words, and no client keeps another one out."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

from playhead.errors import UsageError
from playhead.importing.collect import collector as collector_module
from playhead.importing.collect import listening
from playhead.importing.collect import server as server_module
from playhead.importing.collect.collector import FOLDER
from playhead.importing.collect.server import MAX_BODY, CollectServer
from tests.importing.collecting import (
    JSON,
    LANGGRAPH,
    PROTOBUF,
    chunks,
    connected,
    document,
    head,
    post,
    raw,
    recorded,
)
from tests.importing.traces import shop

if TYPE_CHECKING:
    from pathlib import Path

REFUSED: dict[str, tuple[int, dict[str, Any], str]] = {
    "no otlp": (400, {"content": b"\xff\xff\xff"}, "not an OTLP message"),
    "no json": (400, {"content": b"{", "content_type": JSON}, "not JSON"),
    "deep json": (400, {"content": b"[" * 5000, "content_type": JSON}, "not JSON, or nested too deep"),
    "half a character": (400, {"content": document().replace(b"How", b"\\ud83d"), "content_type": JSON}, "not JSON"),
    "other json": (
        400,
        {"content": b'{"resourceSpans": 5}', "content_type": JSON},
        "an object with resourceSpans, a list",
    ),
    "no gzip": (400, {"content": b"no", "Content_Encoding": "gzip"}, "the body is not gzip"),
    "torn gzip": (400, {"content": gzip.compress(b"x" * 999)[:-9], "Content_Encoding": "gzip"}, "not one whole gzip"),
    "a form": (
        415,
        {"content": b"a=1", "content_type": "application/x-www-form-urlencoded"},
        "the Content-Type of OTLP over HTTP is",
    ),
    "zstd": (415, {"content": b"", "Content_Encoding": "zstd"}, "not gzip, the only one"),
    "metrics": (404, {"content": b"", "path": "/v1/metrics"}, "only traces are collected"),
    "a web page": (403, {"content": b"", "Origin": "https://evil.example"}, "from a web page"),
}


def test_refuses_what_it_cannot_read(tmp_path: Path, collecting: Any) -> None:
    """With the right status, and a sentence in the form of the request; nothing of it is stored."""
    with collecting(tmp_path) as (made, address):
        for name, (status, given, why) in REFUSED.items():
            answered, said = post(address, **given)
            assert (answered, why in said.decode("utf-8", "replace")) == (status, True), (name, said)
        assert "not JSON" in json.loads(post(address, b"", JSON)[1])["message"]
        assert "not an OTLP" in Status.FromString(post(address, b"\xff")[1]).message
        assert raw(address, head(method="GET")).startswith(b"HTTP/1.1 404")
        assert raw(address, head("Content-Length: 3", "Content-Length: 4") + b"abcd").startswith(b"HTTP/1.1 400")
        assert recorded(made, all_of_them=True) == []
        assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == ["lock"]


def test_refuses_what_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collecting: Any) -> None:
    """By its stated length, before anything is read; by what comes in chunks; and by what is decompressed."""
    bomb = gzip.compress(b"\0" * (MAX_BODY + 1))
    with collecting(tmp_path) as (_, address):
        status, said = post(address, bomb, Content_Encoding="gzip")
        assert (status, b"more than 16,777,216 bytes" in said) == (413, True)
        monkeypatch.setattr(server_module, "MAX_BODY", 100)
        status, said = post(address, LANGGRAPH)
        assert (status, b"more than 100 bytes" in said) == (413, True)
        assert b" 413 " in raw(address, head("Transfer-Encoding: chunked") + chunks(LANGGRAPH))


@pytest.mark.parametrize(
    ("content_type", "content"),
    [(JSON, b'[{},["a"' * 400), (PROTOBUF, b"\x0a\x00" * 1001), (PROTOBUF, b"\x0a\x02\x12\x00" * 600)],
    ids=["json", "messages", "messages in messages"],
)
def test_refuses_what_is_small_and_parsed_large(
    content_type: str, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collecting: Any
) -> None:
    """Two bytes may become a message of 176: parts are counted before anything is parsed."""
    monkeypatch.setattr(collector_module, "MAX_HELD", 100_000)
    with collecting(tmp_path) as (_, address):
        status, said = post(address, gzip.compress(content), content_type, Content_Encoding="gzip")
        assert (status, b"bytes of memory: export smaller batches" in said) == (413, True)


TAKEN: dict[str, bytes] = {
    "chunked gzip": head("Transfer-Encoding: chunked", "Content-Encoding: gzip") + chunks(gzip.compress(LANGGRAPH)),
    "charset": head(f"Content-Length: {len(document())}", content_type="application/json; charset=utf-8") + document(),
    "no spans": head("Content-Length: 0"),
}


@pytest.mark.parametrize("name", sorted(TAKEN))
def test_takes_a_body_however_it_is_sent(name: str, tmp_path: Path, collecting: Any) -> None:
    """In chunks, with parameters of its type, and without any spans."""
    with collecting(tmp_path) as (made, address):
        assert b" 200 " in raw(address, TAKEN[name]).partition(b"\r\n")[0]
        assert len(recorded(made, all_of_them=True)) == (name != "no spans")


def test_unknown_fields_are_ignored(tmp_path: Path, collecting: Any) -> None:
    """OTLP wants it so: a newer exporter may send more."""
    spans = [span | {"new": {"a": [1]}, "flags": 3} for span in shop().spans]
    content = {"resourceSpans": [{"new": 1, "scopeSpans": [{"spans": spans, "x": None}]}], "later": {}}
    with collecting(tmp_path) as (made, address):
        assert post(address, json.dumps(content).encode(), JSON) == (200, b"{}")
        assert len(recorded(made, all_of_them=True)) == 1


def test_a_body_that_does_not_arrive_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collecting: Any
) -> None:
    """After a while; meanwhile others are answered."""
    monkeypatch.setattr(server_module, "REQUEST_S", 0.1)
    with collecting(tmp_path) as (_, address), connected(address) as slow:
        slow.sendall(head("Content-Length: 999") + b"a")
        assert post(address, LANGGRAPH)[0] == 200
        assert slow.recv(1000).startswith(b"HTTP/1.1 408 ")


def test_a_stop_acknowledges_no_half_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sender of half a body gets no success, and so sends it again."""
    monkeypatch.setattr(listening, "STOP_S", 0)
    server = CollectServer(lambda _: None, port=0)
    server.start()
    with connected(server.address) as half:
        half.sendall(head(f"Content-Length: {len(LANGGRAPH)}") + LANGGRAPH[:-1])
        assert post(server.address, LANGGRAPH)[0] == 200
        server.stop()
        assert b" 200 " not in half.recv(1000)


@pytest.mark.parametrize(
    ("host", "why"),
    [("192.0.2.1", "Cannot assign requested address"), ("nosuch.invalid", "--host is"), ("", "it is not an address")],
)
def test_an_address_where_it_cannot_listen_is_refused(host: str, why: str) -> None:
    """With what to give instead."""
    with pytest.raises(UsageError) as caught:
        CollectServer(lambda _: None, host, 0)
    assert why in str(caught.value)


def test_an_address_that_other_machines_reach_is_known() -> None:
    """The command warns of it, since there is no password, and names an address that this machine reaches."""
    for host, is_open in (("127.0.0.1", False), ("0.0.0.0", True)):  # noqa: S104 - only listened at
        server = CollectServer(lambda _: None, host, 0)
        assert (server.is_open, server.address.startswith("http://127.0.0.1:")) == (is_open, True)
        server.stop()
