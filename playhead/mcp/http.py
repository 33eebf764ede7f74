"""A server at an address, spoken to by streamable HTTP through the `mcp` package, with bounded answers."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from playhead.errors import UsageError
from playhead.mcp.plain import one_line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

MAX_MESSAGE_BYTES: Final = 64 * 2**20
"""The longest message that a server may send."""


@dataclass
class HttpServer:
    """A server at an address."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    trouble: str | None = None
    """What went wrong on the wire, when we know it."""

    def account(self) -> str:
        """Return what is known of the connection's end, for an error message."""
        return self.trouble or ""

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[Any, None]:
        """Connect when the first message is sent."""
        headers = {"Accept-Encoding": "identity", **self.headers}
        async with create_mcp_http_client(headers=headers) as client:
            client.event_hooks = {"response": [self._bound]}
            async with streamable_http_client(
                self.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES
            ) as streams:
                yield streams

    async def _bound(self, response: httpx2.Response) -> None:
        """See to it that an answer that is no stream of events is read to a limit only."""
        if response.headers.get("content-encoding", "identity") != "identity":
            self.trouble = "it sent a compressed answer, which nobody asked for"
            raise httpx2.DecodingError(self.trouble, request=response.request)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _Bounded(response.stream, self)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, server: HttpServer) -> None:  # noqa: ANN401 - sync or async by its type, async here
        self._stream = stream
        self._server = server

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = 0
        async for part in self._stream:
            total += len(part)
            if total > MAX_MESSAGE_BYTES:
                self._server.trouble = f"it sent a message of more than {MAX_MESSAGE_BYTES} bytes"
                raise httpx2.ReadError(self._server.trouble)
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


def checked_url(url: str) -> str:
    """Return an address as it may be shown: without a password and a query, which may be secret.

    Raises:
        UsageError: it is no http address.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise UsageError("url must be an http(s) address, such as http://127.0.0.1:8000/mcp")
    return one_line(f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path}")
