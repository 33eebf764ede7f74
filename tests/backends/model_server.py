"""A server with OpenAI's Responses API for a playground to call: it keeps what it is asked, and answers."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ANSWER = "The stub has read it."


class ModelServer(ThreadingHTTPServer):
    """Answers every request alike."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[dict[str, Any]] = []
        """The body of each request."""

    @property
    def address(self) -> str:
        """The base URL of its API."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer

    def do_POST(self) -> None:
        """Answer a request to the Responses API, as a stream."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(body)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for number, (kind, fields) in enumerate(_events()):
            event = {"type": kind, "sequence_number": number, **fields}
            self.wfile.write(f"event: {kind}\ndata: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def _events() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events of an answer and their fields."""
    where = {"item_id": "m", "output_index": 0, "content_index": 0}
    said = {"type": "output_text", "text": ANSWER, "annotations": []}
    message = {"id": "m", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    response = {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "stub",
        "status": "in_progress",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5, **details}
    whole = {**message, "status": "completed", "content": [said]}
    yield "response.created", {"response": response}
    yield "response.output_item.added", {"output_index": 0, "item": message}
    yield "response.content_part.added", {**where, "part": {**said, "text": ""}}
    yield "response.output_text.delta", {**where, "delta": ANSWER, "logprobs": []}
    yield "response.output_text.done", {**where, "text": ANSWER, "logprobs": []}
    yield "response.output_item.done", {"output_index": 0, "item": whole}
    yield "response.completed", {"response": {**response, "status": "completed", "output": [whole], "usage": usage}}


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """Run the server until the block is left."""
    server = ModelServer()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
