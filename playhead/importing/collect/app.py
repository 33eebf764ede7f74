"""OTLP over HTTP as an application of starlette: `POST /v1/traces`, protobuf or JSON, plain or compressed.

An answer has the form of the request, as opentelemetry.io/docs/specs/otlp/#otlphttp wants it.
"""

from __future__ import annotations

import asyncio
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

from playhead.importing.collect.bodies import JSON, MAX_BODY, PROTOBUF, SMALLER, RefusedError, read_body, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from playhead.importing.collect.bodies import Body
    from playhead.importing.readers import Problems

MAX_HELD: Final = 4 * MAX_BODY
"""Bytes of bodies that have arrived and are not taken in yet."""
REQUEST_S: Final = 20.0
"""Seconds that a body may take to arrive."""
RETRY_S: Final = 5
"""Seconds after which a sender that was told to come again may."""
_LONGEST: Final = 1000
"""Characters of what is said."""
_ONLY: Final = (
    "only traces are collected, at POST /v1/traces: set OTEL_METRICS_EXPORTER and OTEL_LOGS_EXPORTER to none, and "
    "OTEL_EXPORTER_OTLP_PROTOCOL to http/protobuf"
)


def app_of(take: Callable[[Body], None], tell: Callable[[str], None]) -> Starlette:
    """Return the application.

    Args:
        take: takes a body in; when it returns, the request is answered with success. Called by one thread at a time.
        tell: takes why a request was refused.
    """
    receiver = _Receiver(take, tell)

    async def hello(_: Request) -> Response:
        return PlainTextResponse("playhead collect: send OTLP to POST /v1/traces\n")

    async def other(request: Request, _: Exception) -> Response:
        why = f"{request.method[:20]} {request.url.path[:100]}: {_ONLY}"
        tell(why)
        return PlainTextResponse(why + "\n", 404)

    routes = [
        Route("/v1/traces", receiver.traces, methods=["POST"]),
        Route("/", hello),
        Route("/healthz", hello),
    ]
    return Starlette(routes=routes, exception_handlers={404: other, 405: other})


class _Receiver:
    """Takes bodies one at a time, so that what parsing costs is bounded."""

    def __init__(self, take: Callable[[Body], None], tell: Callable[[str], None]) -> None:
        self._take = take
        self._tell = tell
        self._held = 0
        self._one = anyio.CapacityLimiter(1)

    async def traces(self, request: Request) -> Response:
        """Answer an export: with success once its spans are on disk."""
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        content = bytearray()
        try:
            _check(request, content_type)
            await self._receive(request, content)
            encoding = request.headers.get("content-encoding")
            problems = await anyio.to_thread.run_sync(
                self._taken, content_type, bytes(content), encoding, limiter=self._one
            )
            return _accepted(content_type, problems)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except RefusedError as error:
            refused = error
        except Exception as error:  # noqa: BLE001 - whatever it is, the sender keeps its spans
            refused = RefusedError(500, f"this is a bug in Playhead ({type(error).__name__}); please report it")
        finally:
            self._held -= len(content)
        self._tell(str(refused))
        return _refused(refused, content_type)

    async def _receive(self, request: Request, content: bytearray) -> None:
        try:
            async with asyncio.timeout(REQUEST_S):
                async for piece in request.stream():
                    if self._held + len(piece) > MAX_HELD:
                        raise RefusedError(503, f"more than {MAX_HELD:,} bytes wait to be taken in: send again later")
                    self._held += len(piece)
                    content += piece
                    if len(content) > MAX_BODY:
                        raise _too_large(len(content))
        except asyncio.CancelledError:
            raise RefusedError(503, "the collector stops: send again later") from None
        except TimeoutError:
            raise RefusedError(408, f"the request took more than {REQUEST_S:g} seconds to arrive") from None

    def _taken(self, content_type: str, content: bytes, encoding: str | None) -> Problems:
        body = read_body(content_type, unpacked(content, encoding))
        self._take(body)
        return body.problems


def _check(request: Request, content_type: str) -> None:
    """Refuse a body of which it is known before it comes that it will not be taken."""
    if "origin" in request.headers:  # pages that a person visits must not write recordings
        raise RefusedError(403, "the request comes from a web page, and none may send spans here: export from a server")
    if content_type not in (PROTOBUF, JSON):
        raise RefusedError(
            415, f"Content-Type {content_type[:100] or 'is missing'}: OTLP over HTTP has {PROTOBUF} and {JSON}"
        )
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > MAX_BODY:
        raise _too_large(int(length))


def _too_large(size: int) -> RefusedError:
    return RefusedError(413, f"the body is {size:,} bytes or more, at most {MAX_BODY:,} are taken: {SMALLER}")


def _accepted(content_type: str, problems: Problems) -> Response:
    """Return that a body was taken, with how many of its spans were none, and what else was left out of it."""
    rejected = sum(count for why, count in problems.items() if why.startswith("spans "))
    why = ", ".join(f"{count:,} {what}" for what, count in problems.items())[:_LONGEST]
    if content_type == JSON:
        partial = {"partialSuccess": {"rejectedSpans": str(rejected), "errorMessage": why}}
        return JSONResponse(partial if problems else {})
    said = ExportTracePartialSuccess(rejected_spans=rejected, error_message=why) if problems else None
    content = ExportTraceServiceResponse(partial_success=said).SerializeToString()
    return Response(content, media_type=PROTOBUF)


def _refused(error: RefusedError, content_type: str) -> Response:
    """Return why a body was not taken. OTLP wants a Status, of which the message alone is set."""
    why = str(error).encode("utf-8", "replace").decode()[:_LONGEST]
    headers = {"Retry-After": str(RETRY_S)} if error.status == 503 else None  # noqa: PLR2004 - HTTP's
    if content_type == JSON:
        return JSONResponse({"message": why}, error.status, headers)
    if content_type == PROTOBUF:
        return Response(Status(message=why).SerializeToString(), error.status, headers, PROTOBUF)
    return PlainTextResponse(why + "\n", error.status, headers)
