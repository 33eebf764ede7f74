"""OTLP over HTTP: `POST /v1/traces`, protobuf or JSON, plain or gzip (opentelemetry.io/docs/specs/otlp/#otlphttp)."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import UsageError
from playhead.importing.collect.bodies import JSON, MAX_BODY, PROTOBUF, RefusedError, checked_type, read_body, unpacked
from playhead.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.importing.collect.bodies import Body

PATH: Final = "/v1/traces"
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
TIMEOUT_S: Final = 10
"""Seconds that a request may take to arrive."""
MOST: Final = 64
"""Requests that are served at once."""
_RETRY_S: Final = 5


class CollectServer:
    """Listens, in threads of its own, until it is stopped."""

    def __init__(self, take: Callable[[Body], None], host: str = "127.0.0.1", port: int = 4318) -> None:
        """Listen.

        Args:
            take: is given every body that can be read; raises `RefusedError` when it cannot take it.
            host: the address to listen at.
            port: the port; 0: any that is free.

        Raises:
            UsageError: nobody can listen there.
        """
        handler = type("Handler", (_Handler,), {"take": staticmethod(take)})
        try:
            self._server = _Server((host, port), handler)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(
                f"cannot listen at {host}:{port}: {why}. Is another collector there? --port names another"
            ) from None
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="playhead-collect", daemon=True
        )

    @property
    def address(self) -> str:
        """What OTEL_EXPORTER_OTLP_ENDPOINT is set to."""
        host, port = self._server.server_address[:2]
        name = f"[{host!s}]" if ":" in str(host) else str(host)
        return f"http://{name}:{port}"

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Serve no new request; those that are being served are answered first."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # what is being taken is answered
    block_on_close = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._places = threading.BoundedSemaphore(MOST)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as socketserver has them
        self._places.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Say nothing: a client that goes away is its own business."""


class _Handler(BaseHTTPRequestHandler):
    take: Callable[[Body], None]
    timeout = TIMEOUT_S
    server_version = f"playhead/{VERSION}"
    sys_version = ""

    def do_POST(self) -> None:
        try:
            content_type = self._checked()
            body = read_body(content_type, unpacked(self._content(), self.headers["Content-Encoding"]))
            self.take(body)
        except RefusedError as error:
            self._refuse(error)
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, the sender keeps its spans
            self._refuse(RefusedError(500, f"this is a bug in Playhead ({type(error).__name__}); please report it"))
            return
        rejected = sum(body.problems.values())
        self._answer(200, content_type, _accepted(content_type, rejected, ", ".join(body.problems)))

    def do_GET(self) -> None:
        if self.path in ("/", "/healthz"):
            self._answer(200, "text/plain", b"playhead collect: send OTLP to POST /v1/traces\n")
        else:
            self._refuse(RefusedError(405 if self.path == PATH else 404, f"send OTLP to POST {PATH}"))

    def log_message(self, *_: object) -> None:
        """Say nothing: the runs are what is told."""

    def _checked(self) -> str:
        if self.headers["Origin"] is not None:
            raise RefusedError(403, "the request comes from a web page, which has no spans to export")
        if self.path.partition("?")[0] != PATH:
            raise RefusedError(
                404,
                f"only traces are collected, at POST {PATH}: set OTEL_METRICS_EXPORTER and OTEL_LOGS_EXPORTER to none",
            )
        return checked_type(self.headers["Content-Type"])

    def _content(self) -> bytes:
        length = self.headers["Content-Length"]
        if length is None or not length.isdecimal():
            raise RefusedError(411, "the request does not say how long its body is (Content-Length)")
        if int(length) > MAX_BODY:
            raise RefusedError(
                413, f"the body is {int(length):,} bytes, at most {MAX_BODY:,} are taken: export smaller batches"
            )
        content = self.rfile.read(int(length))
        if len(content) < int(length):
            raise RefusedError(400, "the body is shorter than the request says")
        return content

    def _refuse(self, error: RefusedError) -> None:
        self.close_connection = True  # the body may not have been read
        message = str(error).encode("utf-8", "replace")
        self._answer(error.status, "text/plain; charset=utf-8", message + b"\n")

    def _answer(self, status: int, content_type: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        if status == 503:  # noqa: PLR2004 - the one that may pass
            self.send_header("Retry-After", str(_RETRY_S))
        self.end_headers()
        self.wfile.write(content)


def _accepted(content_type: str, rejected: int, why: str) -> bytes:
    """Return an ExportTraceServiceResponse, which says how many spans were none."""
    if content_type == JSON:
        partial = {"partialSuccess": {"rejectedSpans": str(rejected), "errorMessage": why}} if rejected else {}
        return json.dumps(partial).encode()
    assert content_type == PROTOBUF  # noqa: S101 - there are two
    return _partial_success(rejected, why.encode()) if rejected else b""


def _partial_success(rejected: int, why: bytes) -> bytes:
    """Return the message `partial_success {rejected_spans, error_message}`, field by field: it is that short."""
    why = why[:100]
    inner = b"\x08" + _varint(rejected) + b"\x12" + _varint(len(why)) + why
    return b"\x0a" + _varint(len(inner)) + inner


def _varint(number: int) -> bytes:
    encoded = b""
    while number > 0x7F:  # noqa: PLR2004 - the last byte has no highest bit
        encoded += bytes((number & 0x7F | 0x80,))
        number >>= 7
    return encoded + bytes((number,))
