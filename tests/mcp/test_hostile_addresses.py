"""Addresses that are no servers, or send too much: one clear error, in bounded memory."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from playhead.errors import ToolServerError
from playhead.mcp import mcp_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def answering(answer: Callable[[Any], None]) -> Iterator[str]:
    """Yield the address of a server that answers every request so."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            answer(self)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp?token=secret"
    finally:
        server.shutdown()
        server.server_close()


def _endless(handler: Any) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b"[" * 65536)
    except OSError:
        pass


def _compressed(handler: Any) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Encoding", "gzip")
    handler.send_header("Content-Length", "2")
    handler.end_headers()
    handler.wfile.write(b"{}")


def _other(handler: Any) -> None:
    body = b"<html>hello \x1b[2J</html>"
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def _refusing(handler: Any) -> None:
    handler.send_error(401, "who are you?")


ADDRESSES = {
    "endless": (_endless, "it sent a message of more than 67108864 bytes"),
    "compressed": (_compressed, "it sent a compressed answer"),
    "a web page": (_other, "cannot be used: "),
    "unauthorized": (_refusing, "cannot be used: "),
}


@pytest.mark.parametrize(("answer", "why"), ADDRESSES.values(), ids=ADDRESSES)
def test_it_is_one_clear_error(answer: Callable[[Any], None], why: str) -> None:
    """The reason is said, and the address without what may be secret in it."""
    with answering(answer) as url, pytest.raises(ToolServerError) as raised:
        mcp_tools(url=url, start_timeout_s=5).__enter__()
    assert why in str(raised.value)
    assert "secret" not in str(raised.value)
    assert "\x1b" not in str(raised.value)


def test_nobody_at_the_address() -> None:
    """A closed port is one clear error."""
    with pytest.raises(ToolServerError, match=r"the MCP server http://127.0.0.1:9/mcp cannot be used: "):
        mcp_tools(url="http://user:secret@127.0.0.1:9/mcp").__enter__()
