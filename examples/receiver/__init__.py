"""A backend for examples: takes spans on this machine, and says what it was sent. No more than a way to look at them."""

from __future__ import annotations

import gzip
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

if TYPE_CHECKING:
    from types import TracebackType

    from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Receiver:
    """Listens on a free port of this machine until the block is left."""

    spans: list[Span] = field(default_factory=list)
    """What came, in the order in which it ended."""
    resource: dict[str, str] = field(default_factory=dict)
    """Whose spans they are."""
    path: str = ""
    """Where the last request went."""
    headers: dict[str, str] = field(default_factory=dict)
    """Those of the last request, by lower-case name."""

    def __enter__(self) -> Self:
        """Begin to listen."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.take(self)

            def log_message(self, *_: object) -> None:
                """Be quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        """Keep the spans of a request, and answer it."""
        body = gzip.decompress(handler.rfile.read(int(handler.headers["Content-Length"])))
        self.path, self.headers = handler.path, {name.lower(): value for name, value in handler.headers.items()}
        for each in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resource.update((one.key, one.value.string_value) for one in each.resource.attributes)
            self.spans += [span for scope in each.scope_spans for span in scope.spans]
        handler.send_response(200)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    def tree(self) -> list[str]:
        """Return a line for each span, below its parent."""
        below: dict[bytes, list[Span]] = {}
        for span in sorted(self.spans, key=lambda each: each.start_time_unix_nano):
            below.setdefault(span.parent_span_id, []).append(span)
        return _lines(below, b"", 0)


def _lines(below: dict[bytes, list[Span]], parent: bytes, depth: int) -> list[str]:
    lines: list[str] = []
    for span in below.get(parent, ()):
        lines += [f"{'  ' * depth}{value(span, 'openinference.span.kind')} {span.name}"]
        lines += _lines(below, span.span_id, depth + 1)
    return lines


def value(span: Span, name: str) -> str:
    """Return an attribute of a span; nothing when it has none of this name."""
    return next((each.value.string_value for each in span.attributes if each.key == name), "")
