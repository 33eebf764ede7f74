"""OTLP over HTTP: `POST /v1/traces`, protobuf or JSON, plain or compressed, on starlette, served by uvicorn in a thread.

An answer has the form of the request, as opentelemetry.io/docs/specs/otlp/#otlphttp wants it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Final

import anyio
import uvicorn
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from playhead.errors import UsageError
from playhead.importing.collect.collector import JSON, PROTOBUF, SMALLER, RefusedError, read_body

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from playhead.importing.collect.collector import Body
    from playhead.importing.spans import Problems

MAX_BODY: Final = 16 * 1024**2
"""Bytes of a body, as it is sent and when it is unpacked. `python -m benchmarks collecting` measures what parsing one costs; one
body is parsed at a time."""
MAX_WAITING: Final = 4 * MAX_BODY
"""Bytes of bodies that have arrived and are not taken in yet."""
REQUEST_S: Final = 20.0
"""Seconds that a body may take to arrive."""
RETRY_S: Final = 5
"""Seconds after which a sender that was told to come again may."""
MOST: Final = 200
"""Connections at once: fewer than the files that any system lets a process open."""
STOP_S: Final = 2
"""Seconds for which a server that stops waits for requests that are being taken in."""
MAX_HEAD: Final = 32 * 1024
"""Bytes of a request's head."""
OTHERS: Final = "for other reasons than those that were said"
"""What stands for the reasons of refusals beyond the first hundred."""
_MOST_REASONS: Final = 100
_LONGEST: Final = 1000
"""Characters of what is said."""
_ONLY: Final = (
    "only traces are collected, at POST /v1/traces: set OTEL_METRICS_EXPORTER and OTEL_LOGS_EXPORTER to none, and "
    "OTEL_EXPORTER_OTLP_PROTOCOL to http/protobuf"
)
_HOSTS: Final = "--host is an address of this machine: 127.0.0.1 for itself alone, 0.0.0.0 for all who reach it"
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - only compared
"""Addresses that stand for all of a machine, and what a program on it connects to."""
_WBITS: Final = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""How what is compressed so is unpacked. OTLP has gzip; Python's exporter may be set to deflate."""


class CollectServer:
    """Listens, in a thread of its own, until it is stopped."""

    def __init__(self, take: Callable[[Body], None], host: str = "127.0.0.1", port: int = 4318) -> None:
        """Listen.

        Args:
            take: takes a body in; when it returns, the request is answered with success. Called by one thread at a time.
            host: the address to listen at.
            port: the port; 0: any that is free.

        Raises:
            UsageError: nobody can listen there.
        """
        self.refused: Counter[str] = Counter()
        """Requests that were not taken, by why."""
        self._take = take
        self._waiting = 0
        self._one = anyio.CapacityLimiter(1)
        self._socket = _listen(host, port)
        bound, number = self._socket.getsockname()[:2]
        self.is_open = not ipaddress.ip_address(bound.partition("%")[0]).is_loopback
        """Whether others than programs on this machine may reach it."""
        reached = _EVERYWHERE.get(bound, bound)
        self.address = f"http://[{reached}]:{number}" if ":" in reached else f"http://{reached}:{number}"
        """What OTEL_EXPORTER_OTLP_ENDPOINT is set to."""
        config = uvicorn.Config(
            self._application(),
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MOST,
            h11_max_incomplete_event_size=MAX_HEAD,
            timeout_graceful_shutdown=STOP_S,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="playhead-collect", daemon=True
        )

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Take no new request; one that is being taken in is answered, if that takes less than `STOP_S`."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()
        self._socket.close()

    def _application(self) -> Starlette:
        async def hello(_: Request) -> Response:
            return PlainTextResponse("playhead collect: send OTLP to POST /v1/traces\n")

        async def other(request: Request, _: Exception) -> Response:
            return self._refused(RefusedError(404, f"{request.method[:20]} {request.url.path[:100]}: {_ONLY}"), "")

        routes = [Route("/v1/traces", self._traces, methods=["POST"]), Route("/", hello), Route("/healthz", hello)]
        return Starlette(routes=routes, exception_handlers={404: other, 405: other})

    async def _traces(self, request: Request) -> Response:
        """Answer an export: with success once its spans are on disk."""
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        content = bytearray()
        try:
            _check(request, content_type)
            await self._receive(request, content)
            encoding = request.headers.get("content-encoding") or "identity"
            given = content_type, bytes(content), encoding.strip().lower()
            problems = await anyio.to_thread.run_sync(self._taken, *given, limiter=self._one)
            return _accepted(content_type, problems)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except RefusedError as error:
            return self._refused(error, content_type)
        except Exception as error:  # noqa: BLE001 - whatever it is, the sender keeps its spans
            bug = f"this is a bug in Playhead ({type(error).__name__}); please report it"
            return self._refused(RefusedError(500, bug), content_type)
        finally:
            self._waiting -= len(content)

    async def _receive(self, request: Request, content: bytearray) -> None:
        try:
            async with asyncio.timeout(REQUEST_S):
                async for piece in request.stream():
                    if self._waiting + len(piece) > MAX_WAITING:
                        raise RefusedError(
                            503, f"more than {MAX_WAITING:,} bytes wait to be taken in: send again later"
                        )
                    self._waiting += len(piece)
                    content += piece
                    if len(content) > MAX_BODY:
                        raise _too_large(len(content))
        except asyncio.CancelledError:
            raise RefusedError(503, "the collector stops: send again later") from None
        except TimeoutError:
            raise RefusedError(408, f"the request took more than {REQUEST_S:g} seconds to arrive") from None

    def _taken(self, content_type: str, content: bytes, encoding: str) -> Problems:
        body = read_body(content_type, content if encoding == "identity" else _unpacked(content, encoding))
        self._take(body)
        return body.problems

    def _refused(self, error: RefusedError, content_type: str) -> Response:
        """Return why a body was not taken, and count it. OTLP wants a Status, of which the message alone is set."""
        why = str(error).encode("utf-8", "replace").decode()[:_LONGEST]
        known = why in self.refused or len(self.refused) < _MOST_REASONS
        self.refused[why if known else OTHERS] += 1
        headers = {"Retry-After": str(RETRY_S)} if error.status == 503 else None  # noqa: PLR2004 - HTTP's
        if content_type == JSON:
            return JSONResponse({"message": why}, error.status, headers)
        if content_type == PROTOBUF:
            return Response(Status(message=why).SerializeToString(), error.status, headers, PROTOBUF)
        return PlainTextResponse(why + "\n", error.status, headers)


def _listen(host: str, port: int) -> socket.socket:
    try:
        if not host or "\0" in host:
            raise OSError("there is no address of this name")  # noqa: TRY301 - as the system says it of others
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, ValueError, OverflowError) as error:  # ValueError: a label that is too long
        raise UsageError(
            f"cannot listen at {host!r}, port {port}: {getattr(error, 'strerror', None) or error}. {_HOSTS}; --port 0 takes a "
            "free port"
        ) from None


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


def _unpacked(content: bytes, encoding: str) -> bytes:
    """Return a body without its compression; no more than `MAX_BODY` bytes are ever unpacked.

    Raises:
        RefusedError: it is compressed in another way, damaged, or larger.
    """
    if encoding not in _WBITS:
        raise RefusedError(415, f"Content-Encoding {encoding[:100]}: only gzip and deflate are taken")
    unpacker = zlib.decompressobj(_WBITS[encoding])
    try:
        plain = unpacker.decompress(content, MAX_BODY + 1)
    except zlib.error as error:
        raise RefusedError(400, f"the body is not {encoding}: {error}") from None
    if len(plain) > MAX_BODY:
        raise RefusedError(413, f"the body is more than {MAX_BODY:,} bytes when it is unpacked: {SMALLER}")
    if not unpacker.eof or unpacker.unused_data:
        raise RefusedError(400, f"the body is not one whole {encoding} stream")
    return plain


def _accepted(content_type: str, problems: Problems) -> Response:
    """Return that a body was taken, with how many of its spans were none, and what else was left out of it."""
    rejected = sum(count for why, count in problems.items() if why.startswith("spans "))
    why = ", ".join(f"{count:,} {what}" for what, count in problems.items())[:_LONGEST]
    if content_type == JSON:
        partial = {"partialSuccess": {"rejectedSpans": str(rejected), "errorMessage": why}}
        return JSONResponse(partial if problems else {})
    said = ExportTracePartialSuccess(rejected_spans=rejected, error_message=why) if problems else None
    return Response(ExportTraceServiceResponse(partial_success=said).SerializeToString(), media_type=PROTOBUF)
