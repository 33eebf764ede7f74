"""What a replay of a whole import sends, and how it ends: as the run did, word for word."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, load_recording
from playhead.importing.values import NOTHING
from playhead.replay import replay
from playhead.testing import ScriptedModel, Turn, call, text
from playhead.trace.types import ImagePart, TextPart
from tests.importing.test_round_trip import brought_back
from tests.importing.traces import (
    ASKED,
    LOOKUP,
    QUESTION,
    SYSTEM,
    TOLD,
    Trace,
    calling,
    imported,
    offering,
    shop,
)

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.types import Request

CALLS = (call("lookup", key="Zed"), text("4,180 feet."))


def answered(said: str, output: Any = NOTHING, **attributes: Any) -> Trace:
    """Return a run of one answer, which is its output unless another one is given."""
    given = said if output is NOTHING else output
    as_json = {} if isinstance(given, str) else {"output.mime_type": "application/json"}
    value = given if isinstance(given, str) else json.dumps(given)
    trace = Trace().agent(1, None, **{"output.value": value}, **as_json)
    return trace.model(2, 1, [SYSTEM, QUESTION], ("assistant", said), **LOOKUP, **attributes)


async def replayed(recording: Any, *turns: Turn) -> tuple[Any, list[Request]]:
    """Return what came of a replay in which the model says this, and what it was sent."""
    model = ScriptedModel(turns)
    return await replay(recording, {"model": model}, trace=None), model.requests


WHOLE = {
    "nothing": ("", NOTHING),
    "blanks around": (" 4,180 feet\n", NOTHING),
    "a final answer in its own words": ("I think so.\nFinal Answer: 42", NOTHING),
    "JSON": ('{"feet": 4180}', {"feet": 4180}),
    "a tag": ("<thinking>Hm.</thinking>4,180 feet", NOTHING),
    "broken JSON": ('{"name": "mail', NOTHING),
}


@pytest.mark.parametrize(("said", "output"), WHOLE.values(), ids=WHOLE)
async def test_an_answer_that_calls_nothing_ends_the_run_unchanged(said: str, output: Any, tmp_path: Path) -> None:
    """A replay asks nothing once more, and takes nothing out of the answer: other programs do neither."""
    run, recording = imported(answered(said, output).foreign(tmp_path), tmp_path / "runs")
    outcome, sent = await replayed(recording, text(said))
    assert (run.source.reasons, run.replayability) == ((), "full")
    assert (outcome.stopped, outcome.verdict, len(sent)) == (None, "same", 1)


@pytest.mark.parametrize(
    ("result", "shown", "is_same"),
    [
        ("4,180 feet", "4,180 feet", True),
        ("4", " 4\n", True),
        ('{"a":1,"b":"é"}', '{\n  "b": "\\u00e9",\n  "a": 1\n}', True),
        ('{"a": [1, null, true]}', "{'a': [1, None, True]}", False),
        ("4,180 feet", '"4,180 feet"', False),
        ("4,180 feet", "The tool lookup returned: 4,180 feet.", False),
        ("1", "true", False),
    ],
)
async def test_a_result_is_sent_as_the_prompt_has_it(result: str, shown: str, is_same: bool, tmp_path: Path) -> None:
    """The prompt's form of the same text or JSON is what the model got; any other form is a doubt, not a guess."""
    trace = shop(result=result, then=[ASKED, {**TOLD, "content": shown}])
    run, recording = imported(trace.foreign(tmp_path), tmp_path / "runs")
    why = "later prompts show other results than the tools' spans: lookup"
    assert (run.replayability, why in run.source.reasons) == ("full" if is_same else "tools-only", not is_same)
    outcome, sent = await replayed(recording, *CALLS)
    assert outcome.verdict == ("same" if is_same else "inconclusive")
    assert (sent[1].messages[-1].content == shown) == is_same


@pytest.mark.parametrize("shown", ["", "Tool failed: no way", "error: no way"])
async def test_an_error_is_told_as_the_prompt_has_it(shown: str, tmp_path: Path) -> None:
    """The recording keeps the exception, and the model gets the words that the prompt has, also none at all."""
    attributes = {"exception.type": "KeyError", "exception.message": "no way"}
    raised = {
        "name": "exception",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }
    trace = shop(result="", status={"code": 2}, events=[raised], then=[ASKED, {**TOLD, "content": shown}])
    run, recording = imported(trace.foreign(tmp_path), tmp_path / "runs")
    [made] = recording.root.calls.values()
    assert made.completed is not None
    assert made.completed.error is not None
    assert (made.completed.error.type, made.completed.error.message) == ("KeyError", "no way")
    outcome, sent = await replayed(recording, *CALLS)
    assert (run.replayability, outcome.verdict, sent[1].messages[-1].content) == ("full", "same", shown)


@pytest.mark.parametrize(
    ("returned", "told", "why"),
    [
        ("61", "61", None),
        (
            "inner: 61",
            "inner: 61",
            "calls returned something other than the answer of the agent that they entered: ask",
        ),
        ("61", "inner: 61", "later prompts show other results than the tools' spans: ask"),
    ],
)
def test_an_agent_that_was_entered_returns_what_it_says(
    returned: str, told: str, why: str | None, tmp_path: Path
) -> None:
    """A replay enters it again and gives its answer unchanged: words around it would be missing."""
    asked, tools = calling(("c1", "ask", {"task": "How high is Zed?"})), offering("ask")
    inner = {"openinference.span.kind": "AGENT", "agent.name": "inner", "output.value": "61"}
    trace = (
        Trace()
        .agent(1, None, **{"output.value": "Done."})
        .model(2, 1, [SYSTEM, QUESTION], asked, **tools)
        .tool(3, 1, "ask", {"task": "How high is Zed?"}, returned, attributes={"tool.id": "c1"})
        .add(4, 3, "inner", inner)
        .model(5, 4, [SYSTEM, QUESTION], ("assistant", "61"))
        .model(8, 1, [SYSTEM, QUESTION, asked, {**TOLD, "content": told}], ("assistant", "Done."), **tools)
    )
    run, _ = imported(trace.foreign(tmp_path), tmp_path / "runs")
    assert (run.replayability, run.source.reasons[:1]) == (("tools-only", (why,)) if why else ("full", ()))


def test_an_image_that_our_own_export_left_out_is_a_reason(tmp_path: Path) -> None:
    """It was too large for a span: what comes back has no image, and is not called whole."""
    url = "data:image/png;base64," + base64.b64encode(b"x" * 60_000).decode()
    agent = Agent(ScriptedModel([text("a cat")]), trace=tmp_path / "runs")
    run = agent.run_sync((TextPart(text="What is it?"), ImagePart(url=url)))
    assert run.trace_path is not None
    back = brought_back(load_recording(run.trace_path), tmp_path / "imported", max_messages=None)
    assert back.header.imported is not None
    assert back.header.imported.replayability == "not"
    assert "content of spans is hidden: llm:scripted/model, agent:agent" in back.header.imported.reasons
