"""What the tests of the command line share: an empty home, a run to read, a model to ask."""

from __future__ import annotations

import importlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.recorded import record_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SETTINGS = "PLAYHEAD_TRACE_DIR PLAYHEAD_DURABILITY PLAYHEAD_ON_TRACE_ERROR PLAYHEAD_DEBUG NO_COLOR FORCE_COLOR COLUMNS"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, which is the current folder too; nothing of the caller's settings."""
    for name in SETTINGS.split():
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(autouse=True)
def imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules that `--tools` imports are forgotten afterwards, as is the folder they are in."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    importlib.invalidate_caches()
    yield
    for name in sys.modules.keys() - before:
        if name.partition(".")[0] in ("my_tools", "pack"):
            del sys.modules[name]


@pytest.fixture
def store(home: Path) -> Path:
    """The folder that the commands read by default, with one run, `good`."""
    folder = home / ".playhead" / "traces"
    record_run(folder, "good")
    return folder


@pytest.fixture
def tools(home: Path) -> None:
    """A module of the current folder, with a tool and a plain function, which note that they ran."""
    (home / "my_tools.py").write_text(
        """
from pathlib import Path
from playhead import tool

def note(name: str, text: str) -> None:
    with Path(name).open("a") as file:
        file.write(text)

@tool(read_only=True)
def lookup(key: str) -> str:
    "Look up."
    print("noise")
    note("looked", "x")
    return f"{key} is 4,180 feet high"

def calculator(expression: str) -> float:
    "Calculate."
    note("calculated", expression + chr(10))
    return eval(expression, {}, {})
"""
    )


class ChatServer(ThreadingHTTPServer):
    """Speaks Ollama's protocol on loopback and answers from a list; when it is used up, with an error."""

    daemon_threads = True

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = list(answers)
        self.requests: list[dict[str, Any]] = []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer

    def do_POST(self) -> None:
        self.server.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        found = bool(self.server.answers)
        answer = self.server.answers.pop(0) if found else {"error": "model 'nosuch' not found"}
        body = json.dumps(answer).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Be quiet."""


def saying(content: str, **calls: dict[str, Any]) -> dict[str, Any]:
    """Return an answer of the model: a text, and calls by tool name."""
    tool_calls = [{"function": {"name": name, "arguments": arguments}} for name, arguments in calls.items()]
    message = {"role": "assistant", "content": content, "tool_calls": tool_calls}
    return {"model": "m", "message": message, "done_reason": "stop", "prompt_eval_count": 10, "eval_count": 5}


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    """A model that looks a height up, makes one wrong call, and answers."""
    server = ChatServer(
        [
            saying("I look it up.", lookup={"key": "Mount Zed"}, calculator={"expression": "4180 feet"}),
            saying("", calculator={"expression": "4180 * 0.3048"}),
            saying("It is 4,180 feet,\n\x1b[31mor 1,274 metres."),
        ]
    )
    yield server
    server.shutdown()
    server.server_close()
