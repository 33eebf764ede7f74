"""The pages of the backends in a real Chromium: what they show of a run, and the pictures of the guides.

`make screenshots` writes the pictures into docs/images; without PICTURES they are made and thrown away.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.backends.browser import page
from tests.backends.mlflow_server import Mlflow
from tests.backends.model_server import ANSWER as SAID
from tests.backends.phoenix import Phoenix
from tests.backends.scenes import ANSWER, SESSION, TASK, USER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.backends.conftest import Sent
    from tests.backends.seen import SeenTrace

pytestmark = pytest.mark.timeout(400)
OPEN = "[...document.querySelectorAll('[role=dialog]')].find(it => it.innerText.includes({text!r}))"
"""What slides in over a list, once it shows a text."""
RUN = "[...document.querySelectorAll('button')].find(it => it.innerText.trim().startsWith('Run'))"
"""What runs a prompt in the playground."""


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """The folder of the pictures."""
    return Path(os.environ.get("PICTURES") or tmp_path)


@pytest.mark.parametrize("sent", [pytest.param("phoenix", marks=pytest.mark.phoenix)], indirect=True)
def test_phoenix(sent: Sent, seen: dict[str, SeenTrace], pictures: Path, tmp_path: Path) -> None:
    """A model call has its messages with calls and results; a session has its runs, under their user."""
    assert isinstance(sent.server, Phoenix)
    last = seen["reactive"].of("LLM")[-1]
    with page(tmp_path / "browser", 1400, 1100) as shown:
        shown.open(f"{sent.server.endpoint}/redirects/spans/{last.span_id}")
        shown.wait(OPEN.format(text="1274.064"))
        said = shown.picture(pictures / "phoenix-trace.png", OPEN.format(text="1274.064"))
        assert [
            text for text in ("agent:guide", "tool:lookup", TASK, 'lookup({"key":"Mount Zed"})') if text not in said
        ] == []
        shown.open(f"{sent.server.endpoint}/redirects/sessions/{SESSION}")
        shown.wait(OPEN.format(text="Turn 02"))
        said = shown.picture(pictures / "phoenix-session.png", OPEN.format(text="Turn 02"))
        assert [text for text in (SESSION, f"USER: {USER}", TASK, ANSWER) if text not in said] == []


@pytest.mark.parametrize("sent", [pytest.param("phoenix", marks=pytest.mark.phoenix)], indirect=True)
@pytest.mark.parametrize("scene", ["forty-turns", "long-thread", "reactive"])
def test_playground(sent: Sent, seen: dict[str, SeenTrace], tmp_path: Path, scene: str) -> None:
    """Phoenix' playground opens a model call, also one that was cut, and its model gets the messages and tools of the span."""
    assert isinstance(sent.server, Phoenix)
    model, span = sent.server.model, seen[scene].of("LLM")[-1]
    model.asked.clear()
    with page(tmp_path / "browser", 1400, 1100) as shown:
        shown.open(f"{sent.server.endpoint}/playground/spans/{sent.server.node(span.span_id)}")
        shown.wait(RUN)
        shown.value(f"({RUN}).click()")
        shown.wait(f"document.body.innerText.includes({SAID!r})")
    (asked,) = model.asked
    assert [*map(as_chat, asked["input"])] == [part for each in span.prompt for part in in_parts(each)]
    assert {each["name"] for each in asked["tools"]} == {"lookup", "calculator"}


def as_chat(item: dict[str, Any]) -> tuple[Any, ...]:
    """Return an item of a request to the Responses API in short."""
    if item["type"] == "message":
        return item["role"], item["content"]
    if item["type"] == "function_call":
        return "call", item["call_id"], item["name"], json.loads(item["arguments"])
    return "result", item["call_id"], item["output"]


def in_parts(message: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield what the playground makes of a message of a span: a text, calls, or a result."""
    if message["role"] == "tool":
        yield "result", message["tool_call_id"], message["content"]
        return
    yield message["role"], message["content"] or ""
    for each in message.get("tool_calls", ()):
        yield "call", each["id"], each["function"]["name"], json.loads(each["function"]["arguments"])


@pytest.mark.parametrize("sent", [pytest.param("mlflow", marks=pytest.mark.mlflow)], indirect=True)
def test_mlflow(sent: Sent, seen: dict[str, SeenTrace], pictures: Path, tmp_path: Path) -> None:
    """A model call has its messages with calls and results."""
    assert isinstance(sent.server, Mlflow)
    trace = seen["reactive"]
    experiment = sent.environment["OTEL_EXPORTER_OTLP_HEADERS"].partition("=")[2]
    name = trace.of("LLM")[-1].name
    inside = f"[...({OPEN.format(text=trace.root.name)}).querySelectorAll('*')]"
    last_call = f"{inside}.filter(it => it.children.length === 0 && it.textContent === {name!r}).at(-1)"
    with page(tmp_path / "browser", 1400, 1100) as shown:
        shown.open(
            f"{sent.server.endpoint}/#/experiments/{experiment}/traces?selectedEvaluationId=tr-{trace.root.trace_id}"
        )
        shown.wait(f"{OPEN.format(text=trace.root.name)} && {last_call}")
        shown.value(f"{last_call}.click()")
        shown.wait(OPEN.format(text="1274.064"))
        said = shown.picture(pictures / "mlflow-trace.png", OPEN.format(text="1274.064"))
    assert [
        text for text in ("agent:guide", "tool:lookup", TASK, "Mount Zed is 4,180 feet high.") if text not in said
    ] == []
