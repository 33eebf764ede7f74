"""A collector on loopback that decodes what it is sent, and answers as it is told."""

from __future__ import annotations

import gzip
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass(frozen=True)
class Reply:
    """What the collector answers to one request."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    delay_s: float = 0.0
    hang_up: bool = False


@dataclass(frozen=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    size: int
    spans: tuple[Span, ...]
    request: ExportTraceServiceRequest
    reply: Reply

    @property
    def ids(self) -> list[str]:
        """The span ids, in hexadecimal digits."""
        return [span.span_id.hex() for span in self.spans]


OK = Reply()


def ordered(request: ExportTraceServiceRequest) -> ExportTraceServiceRequest:
    """Return a request with the attributes of each span in the order of their names."""
    for span in spans_in(request):
        attributes = sorted(span.attributes, key=lambda each: each.key)
        del span.attributes[:]
        span.attributes.extend(attributes)
    return request


def spans_in(request: ExportTraceServiceRequest) -> list[Span]:
    """Return the spans of a request."""
    return [span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]


def at_most(size: int) -> Callable[[Received], Reply]:
    """Return a rule by which a request of more bytes is too large."""
    return lambda received: Reply(413) if received.size > size else OK


def rejecting(count: int, why: str) -> Reply:
    """Return an answer that accepts a request, and yet rejects some of its spans."""
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans = count
    response.partial_success.error_message = why
    return Reply(body=response.SerializeToString())


class Collector(ThreadingHTTPServer):
    """Takes spans; `replies` are used up first, then every answer is `usual`, or what a rule says."""

    daemon_threads = True

    def __init__(self, *replies: Reply, usual: Reply = OK, rule: Callable[[Received], Reply] | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies, self.usual, self.rule = list(replies), usual, rule
        self.requests: list[Received] = []
        self.arrived = threading.Condition()
        threading.Thread(target=lambda: self.serve_forever(poll_interval=0.01), daemon=True).start()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"

    def close(self) -> None:
        """Listen no more."""
        self.shutdown()
        self.server_close()

    @property
    def taken(self) -> list[Span]:
        """Every span that was accepted, as often as it was."""
        return [span for each in list(self.requests) if each.reply.status == 200 for span in each.spans]

    @property
    def counts(self) -> Counter[str]:
        """How often each span was accepted, by its id."""
        return Counter(span.span_id.hex() for span in self.taken)

    def wait_for(self, spans: int, within_s: float = 5.0) -> None:
        """Wait until so many different spans were accepted."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.counts) >= spans, within_s), self.counts


class _Handler(BaseHTTPRequestHandler):
    server: Collector
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer with a body comes 40 ms later

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        body = gzip.decompress(content) if self.headers.get("Content-Encoding") == "gzip" else content
        request = ExportTraceServiceRequest.FromString(body)
        reply = self.server.replies.pop(0) if self.server.replies else self.server.usual
        headers = {name.lower(): value for name, value in self.headers.items()}
        time.sleep(reply.delay_s)
        with self.server.arrived:
            received = Received(self.path, headers, len(body), tuple(spans_in(request)), request, reply)
            if self.server.rule is not None:
                reply = self.server.rule(received)
                received = replace(received, reply=reply)
            self.server.requests.append(received)
            self.server.arrived.notify_all()
        if reply.hang_up:
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, *_: Any) -> None:
        """Be quiet."""

    def handle(self) -> None:
        with suppress(ConnectionError):  # of a client that was killed, or did not wait
            super().handle()
