"""What every captured program shares: the task, a provider that answers from a script, and a tracer provider that exports OTLP.

The task is to read two facts at once, to send a mail, and to answer. The provider speaks OpenAI's chat completions.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

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


TASK = "How high is Mount Zed, and how deep is Lake Quill? Mail both to ann@example.com."
SYSTEM = "You answer with facts from the tools."
ANSWERS: tuple[Answer, ...] = (
    calls(("lookup", {"key": "Mount Zed"}), ("lookup", {"key": "Lake Quill"}), content="I look both up."),
    calls(("send_mail", {"to": "ann@example.com", "body": "4,180 feet and 61 metres"})),
    text("Mount Zed is 4,180 feet high, Lake Quill 61 metres deep; both are mailed."),
)
FACTS = {"Mount Zed": "4,180 feet", "Lake Quill": "61 metres"}
MAILBOX = Path("/tmp/playhead-capture-mailbox")


def lookup(key: str) -> str:
    """Look a fact up.

    Args:
        key: what to look up.
    """
    return FACTS[key]


def send_mail(to: str, body: str) -> str:
    """Send a mail.

    Args:
        to: the address.
        body: the text.
    """
    with MAILBOX.open("a") as mailbox:
        mailbox.write(f"{to}: {body}\n")
    return f"sent to {to}"


def tracer_provider(service: str, *before: SpanProcessor) -> TracerProvider:
    """Return a provider that exports in batches, after what other processors do, and make it the process's own."""
    made = TracerProvider(resource=Resource.create({"service.name": service}))
    for each in before:
        made.add_span_processor(each)
    made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(made)
    return made
