"""Where a replay would send the model something else than the run did, or get other results, the report says so."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from openinference.instrumentation import REDACTED_VALUE

from playhead import Agent
from playhead.importing import findings
from playhead.importing.model_calls import IMAGES_LEFT_OUT
from playhead.replay import replay
from playhead.spans import masking
from playhead.testing import ScriptedModel, call, text
from playhead.trace.types import ImagePart, TextPart
from tests.importing.test_round_trip import brought_back
from tests.importing.traces import Trace, calling, imported, shop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HIDDEN = "__REDACTED__"
SYSTEM, TASK = ("system", "Use the tools."), ("user", "How high is Zed?")
ASKED = calling(("c1", "lookup", {"key": "Zed"}))
TOLD = {"role": "tool", "content": "4,180 feet", "tool_call_id": "c1"}
TOOLS: dict[str, Any] = {
    each["key"]: each["value"]["stringValue"] for each in shop().spans[1]["attributes"] if "tools" in each["key"]
}


def run_of(
    *,
    task: Any = TASK,
    asked: Any = ASKED,
    then: list[Any] | None = None,
    result: Any = "4,180 feet",
    ran_with: Any = None,
    images_left_out: int | None = None,
) -> Trace:
    """Return a whole run of one call; `then` is the second prompt."""
    left_out = {} if images_left_out is None else {IMAGES_LEFT_OUT: images_left_out}
    second = [SYSTEM, task, asked, TOLD] if then is None else then
    return (
        Trace()
        .agent(1, None, **{"output.value": "4,180 feet."})
        .model(2, 1, [SYSTEM, task], asked, **TOOLS, **left_out)
        .tool(3, 1, "lookup", ran_with or asked["calls"][0][2], result)
        .model(4, 1, second, ("assistant", "4,180 feet."), **TOOLS)
    )


def with_part(kind: str, url: str) -> dict[str, Any]:
    """Return a task of a text and another part."""
    part = "contents.1.message_content"
    said = {"contents.0.message_content.type": "text", "contents.0.message_content.text": "How high is it?"}
    address = f"{part}.image.image.url" if kind == "image" else f"{part}.{kind}.url"
    return {"role": "user", **said, f"{part}.type": kind, address: url}


def told(said: Any, call_id: str | None = "c1") -> list[Any]:
    """Return the second prompt, in which the result stands so."""
    return [SYSTEM, TASK, ASKED, {"role": "tool", "content": said, "tool_call_id": call_id}]


HIDDEN_CALL = calling(("c1", "lookup", {"key": HIDDEN}))
DEEP = calling(("c1", "lookup", {"where": [{"key": f"of {HIDDEN}"}]}))
WRONG: dict[str, tuple[Callable[[], Trace], str, str]] = {
    "hidden image": (lambda: run_of(task=with_part("image", HIDDEN)), "not", "is hidden"),
    "hidden in a text": (lambda: run_of(task=("user", f"Call {HIDDEN} now.")), "not", "is hidden"),
    "image left out": (lambda: run_of(images_left_out=1), "tools-only", "images of prompts were left out"),
    "audio": (lambda: run_of(task=with_part("audio", "x")), "tools-only", "neither text nor image"),
    "user message in between": (
        lambda: run_of(then=[SYSTEM, TASK, ASKED, TOLD, ("user", "Please be brief.")]),
        "tools-only",
        "go on with something else",
    ),
    "result left out": (lambda: run_of(then=[SYSTEM, TASK, ASKED]), "tools-only", "go on with something else"),
    "result under another tool's name": (
        lambda: run_of(then=[SYSTEM, TASK, ASKED, {**TOLD, "name": "weather"}]),
        "tools-only",
        "go on with something else",
    ),
    "answer that was edited": (
        lambda: run_of(then=[SYSTEM, TASK, {**ASKED, "content": "I look it up."}, TOLD]),
        "tools-only",
        "go on with something else",
    ),
    "other prompt": (
        lambda: run_of(then=[("system", "Sum up."), ("user", "Zed is 4,180 feet high.")]),
        "tools-only",
        "do not begin with the one before",
    ),
    "other result": (
        lambda: run_of(result="9,999 feet"),
        "tools-only",
        "later prompts show other results than the tools' spans: lookup",
    ),
    "other result without an id": (
        lambda: run_of(then=told("9,999 feet", None)),
        "tools-only",
        "go on with something else",
    ),
    "a part of the result": (lambda: run_of(result="4,180 feet, 1,274 metres"), "tools-only", "show other results"),
    "other arguments": (
        lambda: run_of(ran_with={"key": "Quill"}),
        "tools-only",
        "ran with other arguments than the model gave: lookup",
    ),
    "hidden argument": (lambda: run_of(asked=HIDDEN_CALL), "not", "content of spans is hidden: llm"),
    "hidden in an argument": (lambda: run_of(asked=DEEP), "not", "content of spans is hidden: llm"),
    "hidden in a result": (lambda: run_of(result=f'{{"a": "{HIDDEN}"}}'), "not", "content of spans is hidden: lookup"),
}


@pytest.mark.parametrize("name", list(WRONG))
async def test_a_replay_that_cannot_be_right_is_not_full(name: str, tmp_path: Path) -> None:
    """Each of these was replayed with other prompts or results than the run had, and called the same."""
    made, level, why = WRONG[name]
    run, recording = imported(made().foreign(tmp_path), tmp_path / "runs")
    assert (run.replayability, why in "; ".join(run.source.reasons)) == (level, True), run.source
    if level != "not":
        model = ScriptedModel([call("lookup", key="Zed"), text("4,180 feet.")])
        assert (await replay(recording, {"model": model}, trace=None)).verdict == "inconclusive"


@pytest.mark.parametrize(
    ("result", "said", "is_same"),
    [
        ("4,180 feet", "4,180 feet", True),
        ('{"a":1,"b":"é"}', '{\n  "b": "\\u00e9",\n  "a": 1\n}', True),
        ('{"a": [1, null, true]}', "{'a': [1, None, True]}", False),
        ("4,180 feet", '"4,180 feet"', False),
        ("4,180 feet", "The tool lookup returned: 4,180 feet.", False),
        ("1", "true", False),
    ],
)
def test_a_result_is_the_same_text_or_the_same_json(result: str, said: str, is_same: bool, tmp_path: Path) -> None:
    """The model is told again what the prompt has; any other form is a doubt, not a guess."""
    run, recording = imported(run_of(result=result, then=told(said)).foreign(tmp_path), tmp_path / "runs")
    why = "later prompts show other results than the tools' spans: lookup"
    assert (run.replayability, why in run.source.reasons) == ("full" if is_same else "tools-only", not is_same)
    [made] = recording.root.calls.values()
    assert made.completed is not None
    assert (made.completed.observation() == said) == is_same


def test_an_image_that_our_own_export_left_out_is_said(tmp_path: Path) -> None:
    """It was too large for a span: what comes back has no image, and is not called whole."""
    url = "data:image/png;base64," + base64.b64encode(b"x" * 60_000).decode()
    agent = Agent(ScriptedModel([text("a cat")]), trace=tmp_path / "runs")
    run = agent.run_sync((TextPart(text="What is it?"), ImagePart(url=url)))
    from playhead.trace.recording import read_recording

    assert run.trace_path is not None
    back = brought_back(read_recording(run.trace_path), tmp_path / "imported", max_messages=None)
    assert back.header.imported is not None
    assert back.header.imported.replayability == "not"
    assert "images of prompts were left out of the spans: 1" in back.header.imported.reasons


def test_the_names_of_what_was_left_out_are_those_of_the_export() -> None:
    """Import knows them without the packages that export needs."""
    assert IMAGES_LEFT_OUT == masking.IMAGES_LEFT_OUT
    assert findings.REDACTED == REDACTED_VALUE == HIDDEN
