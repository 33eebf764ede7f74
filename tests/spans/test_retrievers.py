"""Tools that find documents: their spans are RETRIEVER spans with the documents, and they are tools everywhere else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from playhead import Agent, load_recording, tool
from playhead.errors import ToolDefinitionError
from playhead.replay import reproduce
from playhead.spans.attributes import document_attributes
from playhead.testing import ScriptedModel, TickingClock, call, text
from playhead.trace.values import to_json
from tests.spans.spans import attributes_of, built

if TYPE_CHECKING:
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan

    from playhead import Recording

DOCUMENTS: list[dict[str, Any]] = [
    {"id": 7, "content": "Mount Zed is high.", "score": 0.9, "metadata": {"source": "atlas"}},
    {"content": "Lake Quill is deep."},
]


@tool(read_only=True, kind="retriever")
async def search(query: str) -> list[dict[str, Any]]:
    """Search the atlas."""
    if query == "?":
        raise LookupError("nothing is known of high.")
    return DOCUMENTS


async def searched(folder: Path, query: str = "Zed") -> tuple[Recording, dict[str, ReadableSpan]]:
    """Return the run of an agent that searches, and its spans by name; the newest of each name."""
    model = ScriptedModel([call("search", query=query), text("It is high.")])
    await Agent(model, tools=[search], trace=folder, clock=TickingClock).run("How high is Mount Zed?", run_id="run")
    recording = load_recording(folder / "run.jsonl")
    return recording, {span.name: span for span in built(recording.records)[1]}


async def test_a_retriever_shows_its_documents(tmp_path: Path) -> None:
    """Each document has its content, id, score and metadata; the whole result stays the output, and the tool's name its name."""
    recording, spans = await searched(tmp_path)
    attributes = attributes_of(spans["tool:search"])
    assert attributes["openinference.span.kind"] == "RETRIEVER"
    assert (attributes["tool.name"], attributes["input.value"]) == ("search", '{"query":"Zed"}')
    assert json.loads(attributes["output.value"]) == DOCUMENTS
    assert {key: value for key, value in attributes.items() if key.startswith("retrieval.")} == {
        "retrieval.documents.0.document.id": "7",
        "retrieval.documents.0.document.content": "Mount Zed is high.",
        "retrieval.documents.0.document.score": 0.9,
        "retrieval.documents.0.document.metadata": '{"source":"atlas"}',
        "retrieval.documents.1.document.content": "Lake Quill is deep.",
    }
    assert (await reproduce(tmp_path / "run.jsonl")).identical
    assert recording.owners["root"].request(recording.owners["root"].exchanges[0].requested).tools[0].retriever is True


async def test_a_failed_search(tmp_path: Path) -> None:
    """A retriever that raised is a RETRIEVER span with the error, and no documents."""
    _, spans = await searched(tmp_path, "?")
    attributes = attributes_of(spans["tool:search"])
    assert (attributes["openinference.span.kind"], attributes["tool.success"]) == ("RETRIEVER", False)
    assert not [key for key in attributes if key.startswith("retrieval.")]


@pytest.mark.parametrize(
    ("switch", "in_prompt"),
    [
        ("HIDE_OUTPUTS", False),
        ("HIDE_OUTPUT_TEXT", False),
        ("HIDE_RETRIEVAL_DOCUMENTS", False),
        ("HIDE_LLM_TOOLS", True),
    ],
)
async def test_hidden_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, switch: str, in_prompt: bool) -> None:
    """What hides outputs or documents hides them on the span, in its output and in the next prompt."""
    monkeypatch.setenv(f"OPENINFERENCE_{switch}", "true")
    _, spans = await searched(tmp_path)
    attributes = attributes_of(spans["tool:search"])
    assert any("Mount Zed is high." in str(each) for each in attributes.values()) is in_prompt
    assert any(key.startswith("retrieval.") for key in attributes) is in_prompt
    prompt = attributes_of(spans["llm:scripted/model"])
    assert any("Mount Zed is high." in str(each) for each in prompt.values()) is in_prompt
    failed = attributes_of((await searched(tmp_path / "failed", "?"))[1]["tool:search"])
    assert ("high." in failed["output.value"]) is in_prompt


@dataclass
class Found:
    """A document of LangChain, in its field names."""

    page_content: str
    metadata: dict[str, Any]
    id: str | None = None


class Node(BaseModel):
    """A node of LlamaIndex, in its field names."""

    id_: str
    text: str


class WithScore(BaseModel):
    """A node with its score."""

    node: Node
    score: float


CONTENT, NUMBER, SCORE = "document.content", "document.id", "document.score"


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (["a", "b"], [{CONTENT: "a"}, {CONTENT: "b"}]),
        ({"documents": [{"text": "a"}], "took": 3}, [{CONTENT: "a"}]),
        ([Found("a", {}, "x")], [{CONTENT: "a", NUMBER: "x"}]),
        ([(Found("a", {}), 0.5)], [{CONTENT: "a", SCORE: 0.5}]),
        ([WithScore(node=Node(id_="n", text="a"), score=0.5)], [{CONTENT: "a", NUMBER: "n", SCORE: 0.5}]),
        ([{"content": "a\0", "score": "high", "metadata": "none"}], [{CONTENT: "a\ufffd"}]),
        ([], []),
        ("one text", []),
        ({"content": "a"}, []),
        (["a", {"title": "no content"}], []),
        ([["a"], 3, None], []),
        ({"documents": 3}, []),
        ([{"content": {"$type": "bytes"}}], []),
    ],
)
def test_forms_of_documents(result: Any, expected: list[dict[str, Any]]) -> None:
    """Texts, and objects with the usual names; of anything else no document is shown, not even those that could be read."""
    shown = document_attributes(to_json(result))
    assert shown == {
        f"retrieval.documents.{number}.{name}": value
        for number, document in enumerate(expected)
        for name, value in document.items()
    }


def test_many_documents() -> None:
    """The first 50 are shown one by one."""
    assert len(document_attributes(["x"] * 1000)) == 50


def test_a_kind_that_does_not_exist() -> None:
    """A misspelt kind is an error that names the choices."""

    def search(query: str) -> str:
        return query

    with pytest.raises(ToolDefinitionError, match=r"kind='retreiver'.*'function' or 'retriever'"):
        tool(kind="retreiver")(search)  # type: ignore[call-overload]
