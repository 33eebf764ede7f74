"""What the tests of the command line share: an empty home, a run to read, a model to ask."""

from __future__ import annotations

import importlib
import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.answering import answering
from tests.cli.recorded import record_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
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
def folder(home: Path) -> Path:
    """The folder that the commands read by default, without a run."""
    path = home / ".playhead/traces"
    path.mkdir(parents=True)
    return path


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


class ChatServer:
    """Speaks Ollama's protocol and answers from a list; when it is used up, with an error."""

    def __init__(self, answers: Iterable[dict[str, Any]]) -> None:
        self.answers = list(answers)
        self.requests: list[dict[str, Any]] = []
        self.address = ""

    def answer(self, _path: str, _headers: Any, body: bytes) -> tuple[int, dict[str, str], list[bytes]]:
        """Answer a request."""
        self.requests.append(json.loads(body))
        found = bool(self.answers)
        answer = self.answers.pop(0) if found else {"error": "model 'nosuch' not found"}
        return 200 if found else 404, {}, [json.dumps(answer).encode()]


@contextmanager
def chatting(*answers: dict[str, Any]) -> Iterator[ChatServer]:
    """Serve a model that gives these answers."""
    chat = ChatServer(answers)
    with answering(chat.answer) as chat.address:
        yield chat


def saying(content: str, **calls: dict[str, Any]) -> dict[str, Any]:
    """Return an answer of the model: a text, and calls by tool name."""
    tool_calls = [{"function": {"name": name, "arguments": arguments}} for name, arguments in calls.items()]
    message = {"role": "assistant", "content": content, "tool_calls": tool_calls}
    return {"model": "m", "message": message, "done_reason": "stop", "prompt_eval_count": 10, "eval_count": 5}


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    """A model that looks a height up, makes one wrong call, and answers."""
    with chatting(
        saying("I look it up.", lookup={"key": "Mount Zed"}, calculator={"expression": "4180 feet"}),
        saying("", calculator={"expression": "4180 * 0.3048"}),
        saying("It is 4,180 feet,\n\x1b[31mor 1,274 metres."),
    ) as server:
        yield server
