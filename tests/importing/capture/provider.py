"""A provider that speaks OpenAI's chat completions and answers from a script: what the captured frameworks talk to."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Answer = dict[str, Any]


def text(content: str) -> Answer:
    """Return the message of an answer in words."""
    return {"role": "assistant", "content": content}


def calls(*made: tuple[str, dict[str, Any]], content: str | None = None) -> Answer:
    """Return the message of an answer that asks for calls, each a name and its arguments."""
    tool_calls = [
        {
            "id": f"call_{name}_{place}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for place, (name, arguments) in enumerate(made)
    ]
    return {"role": "assistant", "content": content, "tool_calls": tool_calls}


@contextmanager
def scripted(*answers: Answer) -> Iterator[str]:
    """Serve the answers in order, the last one again and again, and yield the base address."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            message = left.pop(0) if len(left) > 1 else left[0]
            body = json.dumps(_completion(message, len(answers) - len(left))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()


def _completion(message: Answer, turn: int) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{turn}",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": "scripted-1",
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if message.get("tool_calls") else "stop"}
        ],
        "usage": {"prompt_tokens": 100 + turn, "completion_tokens": 10 + turn, "total_tokens": 110 + 2 * turn},
    }
