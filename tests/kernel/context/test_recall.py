"""Long results: the preview in the thread, and reading on with recall."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead import tool
from playhead.compose import SUPPRESS
from playhead.kernel.context.curator import preview
from playhead.replay import reproduce
from playhead.testing import call, text
from playhead.trace.values import as_text
from tests.compose.hooked import sent
from tests.kernel.runs import Ran, data, make_agent, record

if TYPE_CHECKING:
    from pathlib import Path


ITEMS = [{"name": f"item {number}", "price": number} for number in range(40)]
WHOLE = as_text(ITEMS)
PREVIEW = (
    f"[STORED: _tool_result_1 | look | {len(WHOLE)} characters]\n{WHOLE}"[:758]
    + '…\n…all of it: recall(key="_tool_result_1")'
)


@tool(read_only=True)
async def look(key: str = "all") -> Any:
    """Look."""
    if key == "bad":
        raise ValueError("x" * 3000)
    return ITEMS if key == "all" else key


async def run_with(folder: Path, turns: list[Any], **options: Any) -> Ran:
    """Run an agent; what its trace says it was asked it was asked, and it is reproduced from the file alone."""
    run = await record(folder, [*turns, text("done")], look, **{"compression": True, "max_iterations": 30, **options})
    assert run.result.output == "done"
    assert sent(run) == run.model.requests
    reproduced = await reproduce(run.recording)
    assert reproduced.identical, reproduced.divergences
    return run


def recall(**arguments: Any) -> Any:
    """Return a call of the tool."""
    return call("recall", **arguments)


def recalled(run: Ran) -> list[Any]:
    """Return what `recall` answered, each a result or the text of an error."""
    return [
        each.result if each.ok else each.error.message
        for each in run.events("tool-call-completed")
        if each.tool == "recall"
    ]


async def test_a_long_result(tmp_path: Path):
    """A preview joins the thread; the trace holds the whole result."""
    run = await run_with(tmp_path, [call("look")])
    assert [message.content for message in run.model.requests[1].messages][-1] == PREVIEW
    (completed,) = run.events("tool-call-completed")
    assert completed.result == ITEMS
    (added,) = [event for event in run.events("message-added") if event.role == "tool"]
    assert data(added) == {
        "id": 3, "role": "tool", "content": PREVIEW, "tool_call_id": "call_0_0", "name": "look", "stored": "_tool_result_1",
    }  # fmt: skip
    (decided,) = run.events("curator-decision")
    assert (decided.action, decided.ref) == ("compressed", "call_0_0")
    assert decided.rationale == f"{len(WHOLE)} characters, in a preview of {len(PREVIEW)}; all of it is _tool_result_1"
    assert [step.content for step in run.result.steps if step.type == "observation"] == [WHOLE]


@pytest.mark.parametrize("tag", ["message.tool-result", "tool.result"])
async def test_a_result_that_was_removed(tmp_path: Path, tag: str):
    """A removed result is not stored."""
    run = await run_with(
        tmp_path, [call("look"), recall(key="")],
        compose=[lambda harness: harness.on(tag, lambda each, _: SUPPRESS if "look" in (getattr(each, "name", ""), getattr(each, "tool", "")) else None)],
    )  # fmt: skip
    assert recalled(run) == ["nothing is stored as ''. Known: none."]


async def test_page_by_page(tmp_path: Path):
    """Pages follow each other without a gap; the last one has no next offset."""
    pages: list[Any] = []
    turns = [
        call("look"),
        recall(key="_tool_result_1"),
        recall(key="_tool_result_1", offset=800),
        recall(key="_tool_result_1", offset=1600),
    ]
    pages = recalled(await run_with(tmp_path, turns))
    assert [set(page) for page in pages] == [
        {"key", "content", "offset", "total", "next_offset"},
        {"key", "content", "offset", "total"},
        {"key", "content", "offset", "total"},
    ]
    assert "".join(page["content"] for page in pages) == WHOLE
    assert [page.get("next_offset") for page in pages] == [800, None, None]
    assert json.loads(WHOLE) == ITEMS


async def test_a_sub_agent_stores_its_own_results(tmp_path: Path):
    """An agent can recall only the results that it stored itself."""
    below = make_agent(
        None,
        [call("look"), recall(key="_tool_result_1", length=9), text("x" * 2000)],
        look,
        name="worker",
        compression=True,
    )
    turns = [call("worker", task="Look."), recall(key="_tool_result_1", length=10), recall(key="_tool_result_2")]
    run = await record(tmp_path, [*turns, text("done")], below, compression=True)
    told = str(sent(run)[-1].messages[3].content)
    assert told.startswith("[STORED: _tool_result_1 | worker | 2000 characters]\n")
    assert recalled(run) == [
        {"key": "_tool_result_1", "content": WHOLE[:9], "offset": 0, "total": len(WHOLE), "next_offset": 9},
        {"key": "_tool_result_1", "content": "x" * 10, "offset": 0, "total": 2000, "next_offset": 10},
        "nothing is stored as '_tool_result_2'. Did you mean '_tool_result_1'? Known: _tool_result_1.",
    ]
    assert (await reproduce(run.recording)).identical


@settings(max_examples=30)
@given(st.text(max_size=3000), st.integers(200, 2000), st.text("abcdefghijk-_", min_size=1, max_size=64))
def test_a_preview_never_exceeds_its_budget(text: str, budget: int, tool: str):
    """Any preview fits its budget, begins as the result does, and names the key of the whole."""
    shown = preview(text, key="_tool_result_12345", tool=tool, budget=budget)
    assert len(shown) <= budget
    head, _, rest = shown.partition("\n")
    assert head == f"[STORED: _tool_result_12345 | {tool} | {len(text)} characters]"
    begin, _, last = rest.rpartition("\n")
    assert text.startswith(begin.removesuffix("…"))
    assert last == '…all of it: recall(key="_tool_result_12345")'
