"""What a request's head asks for: a body to take, an answer without one, or a refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.importing.collect.answers import TEXT, Answer
from playhead.importing.collect.bodies import JSON, MAX_BODY, PROTOBUF, SMALLER, SUFFIXES, RefusedError

if TYPE_CHECKING:
    import h11

PATH: Final = "/v1/traces"
_HELLO: Final = Answer(200, TEXT, b"playhead collect: send OTLP to POST /v1/traces\n")
_ABOUT: Final = ("/", "/healthz")
_VERSIONS: Final = (b"1.0", b"1.1")
_READING: Final = ("GET", "HEAD")


def header(request: h11.Request, name: bytes) -> str | None:
    """Return a header; several of a name are one, with commas."""
    values = [value.decode("latin-1") for key, value in request.headers if key == name]
    return ", ".join(values) if values else None


def type_of(request: h11.Request) -> str | None:
    """Return the type of its body, when it is one of the two that OTLP has."""
    named = (header(request, b"content-type") or "").partition(";")[0].strip().lower()
    return named if named in SUFFIXES else None


def answered_at_once(request: h11.Request) -> Answer | None:
    """Return the answer to what needs no body; None for spans.

    Raises:
        RefusedError: it is neither.
    """
    method, path = request.method.decode("latin-1"), request.target.decode("latin-1").partition("?")[0]
    if request.http_version not in _VERSIONS:  # how every connection of gRPC begins
        raise RefusedError(505, "the request is HTTP/2, or gRPC: set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf")
    if header(request, b"origin") is not None:  # pages that a person visits must not write recordings
        raise RefusedError(403, "the request comes from a web page, and none may send spans here: export from a server")
    if method in _READING and path in _ABOUT:
        return _HELLO
    if path != PATH:
        raise RefusedError(
            404, f"only traces are collected, at POST {PATH}: set OTEL_METRICS_EXPORTER and OTEL_LOGS_EXPORTER to none"
        )
    if method != "POST":
        raise RefusedError(405, f"send OTLP to POST {PATH}", ("Allow", "POST"))
    _check(request)
    return None


def _check(request: h11.Request) -> None:
    """Refuse a body of which it is known already that it will not be taken."""
    if type_of(request) is None:
        named = header(request, b"content-type") or "is missing"
        raise RefusedError(415, f"Content-Type {named}: OTLP over HTTP has {PROTOBUF} and {JSON}")
    length, transfer = header(request, b"content-length"), header(request, b"transfer-encoding")
    if length is not None and transfer is not None:
        raise RefusedError(400, "the request has both Content-Length and Transfer-Encoding: where it ends is unclear")
    if transfer is not None and request.http_version == b"1.0":
        raise RefusedError(400, "the request is HTTP/1.0, which has no Transfer-Encoding")
    if length is None and transfer is None:
        raise RefusedError(411, "the request does not say how long its body is (Content-Length or chunked)")
    if length is not None and int(length) > MAX_BODY:
        raise too_large(int(length))


def too_large(size: int) -> RefusedError:
    """Return the refusal of a body of this size, or of more."""
    return RefusedError(413, f"the body is {size:,} bytes or more, at most {MAX_BODY:,} are taken: {SMALLER}")
