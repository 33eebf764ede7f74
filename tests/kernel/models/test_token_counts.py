"""Counting a prompt on the server that will get it: llama.cpp's way, vLLM's way, and servers that cannot."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from playhead.kernel.models import litellm
from playhead.kernel.models.base import CountsTokens
from playhead.kernel.models.litellm import LiteLLM
from playhead.trace.types import Message, Request, ToolSpec
from tests.proving import bound

if TYPE_CHECKING:
    from collections.abc import Iterator

Asked = list[tuple[str, dict[str, Any], str | None]]
Serve = "Callable[[dict[str, Any]], tuple[str, Asked]]"

REQUEST = Request(
    "openai/own",
    (Message(id=0, role="user", content="How high?"),),
    (ToolSpec(name="lookup", description="Look up."),),
    {"temperature": 0, "max_tokens": 9},
)
MESSAGES = [{"role": "user", "content": "How high?"}]
TOOLS = [
    {
        "type": "function",
        "function": {"name": "lookup", "description": "Look up.", "parameters": {"type": "object", "properties": {}}},
    }
]


@pytest.fixture
def serve() -> Iterator[Any]:
    """Return a function that starts a server with these answers by path, and gives its address and what it is asked."""
    servers: list[ThreadingHTTPServer] = []

    def start(answers: dict[str, Any]) -> tuple[str, Asked]:
        asked: Asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                asked.append((self.path, body, self.headers.get("Authorization")))
                answer = answers.get(self.path)
                if isinstance(answer, threading.Event):
                    answer.wait(5)
                status = answer if isinstance(answer, int) else 404 if answer is None else 200
                content = answer if isinstance(answer, bytes) else json.dumps(str(answer)).encode()
                content = json.dumps(answer).encode() if isinstance(answer, dict | list) else content
                with suppress(OSError):  # nobody waits any more
                    self._send(status, content)

            def _send(self, status: int, content: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/v1", asked

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


async def test_llama_cpp(serve: Any):
    """The prompt is made by the server's own template, tools included, and counted by its own tokenizer."""
    address, asked = serve({"/apply-template": {"prompt": "<|im_start|>How high?"}, "/tokenize": {"tokens": [1, 2, 3]}})
    model = LiteLLM("openai/own", api_base=address, api_key="sk-own")
    assert isinstance(model, CountsTokens)
    assert await model.count_tokens(REQUEST) == 3
    template = {"messages": MESSAGES, "tools": TOOLS}
    text = {"content": "<|im_start|>How high?", "add_special": True, "parse_special": True}
    assert asked == [("/apply-template", template, "Bearer sk-own"), ("/tokenize", text, "Bearer sk-own")]


async def test_vllm(serve: Any):
    """A server that counts messages itself is asked for that."""
    address, asked = serve({"/tokenize": {"count": 17, "max_model_len": 4096}})
    assert await LiteLLM("openai/own", api_base=address, api_key="k").count_tokens(REQUEST) == 17
    body = {"model": "own", "add_generation_prompt": True, "messages": MESSAGES, "tools": TOOLS}
    assert asked[-1] == ("/tokenize", body, "Bearer k")


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"/tokenize": {"count": "many"}},
        {"/tokenize": {"count": 0}},
        {"/tokenize": [17]},
        {"/apply-template": {"prompt": 5}},
        {"/apply-template": {"prompt": "x"}, "/tokenize": {"tokens": 3}},
        {"/apply-template": b"<html>", "/tokenize": b"\xff"},
    ],
)
async def test_a_server_that_cannot_tell_is_not_asked_again(
    serve: Any, answers: dict[str, Any], caplog: pytest.LogCaptureFixture
):
    """What is no count is none; that prompts are estimated is said."""
    address, asked = serve(answers)
    model = LiteLLM("openai/own", api_base=address, api_key="k")
    assert await model.count_tokens(REQUEST) is None
    before = len(asked)
    assert await model.count_tokens(REQUEST) is None
    assert len(asked) == before
    said = [record.getMessage() for record in caplog.records if record.name == "playhead"]
    assert said == [f"{address} does not count tokens: prompts of openai/own are estimated"]


async def test_a_server_that_hangs(serve: Any, monkeypatch: pytest.MonkeyPatch):
    """It is waited for once, for all its endpoints together, and then not again."""
    monkeypatch.setattr(litellm, "COUNT_TIMEOUT_S", 0.5)
    go_on = threading.Event()
    address, asked = serve({"/apply-template": go_on})
    model = LiteLLM("openai/own", api_base=address, api_key="k")
    began = time.monotonic()
    assert await model.count_tokens(REQUEST) is None
    assert time.monotonic() - began < bound(4)
    assert await model.count_tokens(REQUEST) is None
    assert len(asked) == 1
    go_on.set()


async def test_nobody_there():
    """A server that is down has no count, and its request says that it is down."""
    model = LiteLLM("openai/own", api_base="http://127.0.0.1:9/v1", api_key="k")
    assert await model.count_tokens(REQUEST) is None


async def test_a_hosted_provider_is_not_asked(monkeypatch: pytest.MonkeyPatch):
    """Without an address of one's own nobody is asked, and nobody knows."""
    monkeypatch.delenv("OPENAI_API_BASE", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert await LiteLLM("openai/gpt-4o-mini", api_key="k").count_tokens(REQUEST) is None
