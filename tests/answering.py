"""A server on this machine that answers every POST as a function says."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from email.message import Message

    Answer = tuple[int, dict[str, str], Iterable[bytes]]
    """Status, headers, and the parts of the body."""


@contextmanager
def answering(answer: Callable[[str, Message, bytes], Answer]) -> Iterator[str]:
    """Yield the server's address; the function is given the path, the headers and the body of each request."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, headers, parts = answer(self.path, self.headers, body)
            self.send_response_only(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):  # nobody reads on
                for part in parts:
                    self.wfile.write(part)

        def log_message(self, *_: Any) -> None:
            """Be quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
