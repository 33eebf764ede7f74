"""OTLP over HTTP: `POST /v1/traces`, protobuf or JSON, plain or gzip, on starlette, served by uvicorn in a thread.

A response has the format of its request (opentelemetry.io/docs/specs/otlp/#otlphttp).
"""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Final

import anyio
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from playhead.importing.collect.collector import JSON, PROTOBUF, SMALLER, RefusedError, read_body
from playhead.importing.collect.listening import ThreadedServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from playhead.importing.collect.collector import Body
    from playhead.importing.otlp import Problems

MAX_BODY: Final = 16 * 1024**2
"""Largest body in bytes, compressed or decompressed; `python -m benchmarks collecting` measures the cost of parsing one."""
REQUEST_S: Final = 20.0
"""Seconds that a body may take to arrive."""
RETRY_S: Final = 5
"""Seconds after which a sender may retry."""
_UNAVAILABLE: Final = 503
_ONLY_TRACES: Final = (
    "only traces are collected, at POST /v1/traces: set OTEL_METRICS_EXPORTER and OTEL_LOGS_EXPORTER to none, and "
    "OTEL_EXPORTER_OTLP_PROTOCOL to http/protobuf"
)
_HOSTS: Final = "--host is an address of this machine: 127.0.0.1 for itself alone, 0.0.0.0 for all who reach it; "


class CollectServer(ThreadedServer):
    """Listens in a thread of its own until it is stopped."""

    def __init__(self, take: Callable[[Body], None], host: str = "127.0.0.1", port: int = 4318) -> None:
        """Listen.

        Args:
            take: accepts a body; when it returns, the response is success. Called by one thread at a time.
            host: the address to listen at.
            port: the port; 0 for any free one.

        Raises:
            UsageError: it cannot listen there.
        """
        self.refused: Counter[str] = Counter()
        """Number of refused requests by reason; reasons are fixed sentences, so that clients cannot fill the memory with them."""
        self._take = take
        self._one = anyio.CapacityLimiter(1)
        super().__init__(self._application(), host, port, _HOSTS)

    def _application(self) -> Starlette:
        async def refused(request: Request, error: Exception) -> Response:
            return self._refused(request, error)

        async def not_found(request: Request, _: Exception) -> Response:
            return self._refused(request, RefusedError(404, _ONLY_TRACES))

        return Starlette(
            routes=[Route("/v1/traces", self._traces, methods=["POST"])],
            exception_handlers={RefusedError: refused, 404: not_found, 405: not_found},
        )

    async def _traces(self, request: Request) -> Response:
        """Answer an export: with success once its spans are on disk."""
        _check(request)
        try:
            content = await _received(request)
            problems = await anyio.to_thread.run_sync(self._store, request, content, limiter=self._one)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        return _accepted(_content_type(request), problems)

    def _store(self, request: Request, content: bytes) -> Problems:
        try:
            body = read_body(_content_type(request), _decompressed(request, content))
            self._take(body)
        except RefusedError:
            raise
        except Exception as error:  # noqa: BLE001 - no bug may look like success
            bug = f"this is a bug in Playhead ({type(error).__name__}); please report it"
            raise RefusedError(500, bug) from None
        return body.problems

    def _refused(self, request: Request, error: Exception) -> Response:
        """Count a refusal and return its response: an OTLP Status with only the message set."""
        why = str(error)
        self.refused[why] += 1
        status = error.status if isinstance(error, RefusedError) else 500
        headers = {"Retry-After": str(RETRY_S)} if status == _UNAVAILABLE else None
        content_type = _content_type(request)
        if content_type == JSON:
            return JSONResponse({"message": why}, status, headers)
        if content_type == PROTOBUF:
            return Response(Status(message=why).SerializeToString(), status, headers, PROTOBUF)
        return PlainTextResponse(why + "\n", status, headers)


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _check(request: Request) -> None:
    """Refuse a request whose headers are not acceptable."""
    if "origin" in request.headers:  # web pages in the user's browser must not write recordings
        raise RefusedError(403, "the request comes from a web page, and none may send spans here: export from a server")
    if _content_type(request) not in (PROTOBUF, JSON):
        raise RefusedError(415, f"the Content-Type of OTLP over HTTP is {PROTOBUF} or {JSON}")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > MAX_BODY:
        raise _too_large()


async def _received(request: Request) -> bytes:
    content = bytearray()
    try:
        async with asyncio.timeout(REQUEST_S):
            async for piece in request.stream():
                content += piece
                if len(content) > MAX_BODY:
                    raise _too_large()
    except TimeoutError:
        raise RefusedError(408, f"the request took more than {REQUEST_S:g} seconds to arrive") from None
    return bytes(content)


def _too_large() -> RefusedError:
    return RefusedError(413, f"the body has more than {MAX_BODY:,} bytes: {SMALLER}")


def _decompressed(request: Request, content: bytes) -> bytes:
    """Return a decompressed body; at most `MAX_BODY` bytes are decompressed.

    Raises:
        RefusedError: it has another compression, is damaged, or is larger.
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding == "identity":
        return content
    if encoding != "gzip":
        raise RefusedError(415, "the Content-Encoding is not gzip, the only one supported")
    stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        plain = stream.decompress(content, MAX_BODY + 1)
    except zlib.error:
        raise RefusedError(400, "the body is not gzip") from None
    if len(plain) > MAX_BODY:
        raise _too_large()
    if not stream.eof or stream.unused_data:
        raise RefusedError(400, "the body is not one whole gzip stream")
    return plain


def _accepted(content_type: str, problems: Problems) -> Response:
    """Return success, with the number of malformed spans and what else was left out."""
    rejected = sum(count for why, count in problems.items() if why.startswith("spans without a valid"))
    why = ", ".join(f"{count:,} {what}" for what, count in problems.items())
    if content_type == JSON:
        partial = {"partialSuccess": {"rejectedSpans": str(rejected), "errorMessage": why}}
        return JSONResponse(partial if problems else {})
    said = ExportTracePartialSuccess(rejected_spans=rejected, error_message=why) if problems else None
    return Response(ExportTraceServiceResponse(partial_success=said).SerializeToString(), media_type=PROTOBUF)
