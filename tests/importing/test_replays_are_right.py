"""Where a replay would send the model something else than the run did, or get other results, the report says so."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from openinference.instrumentation import REDACTED_VALUE

from playhead import Agent
from playhead.importing import readings
from playhead.importing.following import follows
from playhead.importing.hiding import IMAGES_LEFT_OUT
from playhead.importing.wording import how_shown, plain
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
    "hidden image": (lambda: run_of(task=with_part("image", HIDDEN)), "tools-only", "are hidden"),
    "hidden in a text": (lambda: run_of(task=("user", f"Call {HIDDEN} now.")), "tools-only", "are hidden"),
    "image left out": (lambda: run_of(images_left_out=1), "tools-only", "images of prompts were left out"),
    "audio": (lambda: run_of(task=with_part("audio", "x")), "tools-only", "neither text nor image"),
    "user message in between": (
        lambda: run_of(then=[SYSTEM, TASK, ASKED, TOLD, ("user", "Please be brief.")]),
        "tools-only",
        "go on with something else",
    ),
    "result left out": (lambda: run_of(then=[SYSTEM, TASK, ASKED]), "tools-only", "go on with something else"),
    "answer that was edited": (
        lambda: run_of(then=[SYSTEM, TASK, {**ASKED, "content": "I look it up."}, TOLD]),
        "tools-only",
        "go on with something else",
    ),
    "other prompt": (
        lambda: run_of(then=[("system", "Sum up."), ("user", "Zed is 4,180 feet high.")]),
        "tools-only",
        "do not go on from the one before",
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
    "hidden argument": (lambda: run_of(asked=HIDDEN_CALL), "not", "are hidden"),
    "hidden in an argument": (lambda: run_of(asked=DEEP), "not", "are hidden"),
    "hidden in a result": (
        lambda: run_of(result=f'{{"a": "{HIDDEN}"}}', then=told(f'{{"a": "{HIDDEN}"}}')),
        "not",
        "are hidden",
    ),
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


OBSERVATION = ("user", "Observation:\n4,180 feet")
CALLING = ("assistant", "Calling tools:\n[{'id': 'c1', 'function': {'name': 'lookup', 'arguments': {'key': 'Zed'}}}]")
FORMS: dict[str, tuple[Any, Any, Any]] = {
    "the same text": ("4,180 feet", "4,180 feet", "4,180 feet"),
    "JSON as Python writes it": ('{"a": [1, null, true], "b": "x"}', "{'a': [1, None, True], 'b': 'x'}", None),
    "JSON of other spacing": ('{"a":1,"b":"é"}', '{\n  "b": "\\u00e9",\n  "a": 1\n}', None),
    "a text in quotes": ("4,180 feet", '"4,180 feet"', '"4,180 feet"'),
    "words around": ("4,180 feet", "The tool lookup returned: 4,180 feet.", "The tool lookup returned: 4,180 feet."),
    "an envelope": (
        '{"content": [{"type": "text", "text": "4,180 feet"}], "isError": false}',
        "4,180 feet",
        "4,180 feet",
    ),
    "nothing": ("null", "Done.", "Done."),
}


@pytest.mark.parametrize("name", list(FORMS))
def test_another_form_of_the_same_result_is_no_other_result(name: str, tmp_path: Path) -> None:
    """How a framework writes a result for the prompt is no matter; where it adds or unwraps, the model is told so again."""
    result, said, expected = FORMS[name]
    run, recording = imported(run_of(result=result, then=told(said)).foreign(tmp_path), tmp_path / "runs")
    assert (run.replayability, run.source.reasons) == ("full", ())
    [made] = recording.root.calls.values()
    assert made.completed is not None
    assert how_shown(made.completed.result, said) == "same"
    assert expected is None or made.completed.observation() == expected


def test_calls_and_results_in_words_are_read_too(tmp_path: Path) -> None:
    """Smolagents tells the model of both as the assistant's and the user's words, which a replay does not: that is the reason.

    Other words among them are another.
    """
    in_words = [SYSTEM, TASK, CALLING, OBSERVATION]
    run, _ = imported(run_of(then=in_words).foreign(tmp_path), tmp_path / "a")
    [why] = run.source.reasons
    assert (run.replayability, "calls or their results in words" in why) == ("tools-only", True)
    for added in (
        [*in_words, ("user", " ".join(f"word{number}" for number in range(40)))],
        [SYSTEM, TASK, CALLING, ("user", "Observation:\n9,999 feet")],
        [SYSTEM, TASK, ("assistant", "I shall look up Quill."), OBSERVATION],
    ):
        run, _ = imported(run_of(then=added).foreign(tmp_path), tmp_path / str(len(added[-1][1])))
        assert (run.replayability, "something else" in run.source.reasons[0]) == ("tools-only", True)


def test_what_the_model_shows_counts_where_the_span_is_hidden(tmp_path: Path) -> None:
    """Arguments that only the span hides, and a result that only the span hides, are known."""
    trace = run_of(ran_with={"key": HIDDEN}, result=f'{{"height": "{HIDDEN}"}}')
    run, recording = imported(trace.foreign(tmp_path), tmp_path / "runs")
    [made] = recording.root.calls.values()
    assert made.completed is not None
    assert (run.replayability, made.started.args, made.completed.result) == ("full", {"key": "Zed"}, "4,180 feet")


def test_an_image_that_our_own_export_left_out_is_said(tmp_path: Path) -> None:
    """It was too large for a span: what comes back has no image, and is not called whole."""
    url = "data:image/png;base64," + base64.b64encode(b"x" * 60_000).decode()
    agent = Agent(ScriptedModel([text("a cat")]), trace=tmp_path / "runs")
    run = agent.run_sync((TextPart(text="What is it?"), ImagePart(url=url)))
    from playhead.trace.recording import read_recording

    assert run.trace_path is not None
    back = brought_back(read_recording(run.trace_path), tmp_path / "imported", max_messages=None)
    assert back.header.imported is not None
    assert back.header.imported.replayability == "tools-only"
    assert "images of prompts were left out of the spans: 1" in back.header.imported.reasons


def test_the_names_of_what_was_left_out_are_those_of_the_export() -> None:
    """Import knows them without the packages that export needs."""
    assert IMAGES_LEFT_OUT == masking.IMAGES_LEFT_OUT
    assert readings.REDACTED == REDACTED_VALUE == HIDDEN


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ("4.5", "45", False),
        ("-4", "4", False),
        ("a < b", "a > b", False),
        ("Yes, it is!", "yes: it is", True),
        ({"a": 1}, "a=1", True),
        ("[1, [2, {'x': None}]]", [1, [2, {"x": None}]], True),
        ("!" * 50_000 + "a", "a", False),
        ("", "…", False),
    ],
)
def test_only_form_is_form(one: Any, other: Any, are_same: bool) -> None:
    """Signs and digits count, quotes and brackets do not."""
    assert (plain(one) == plain(other)) == are_same


def test_a_prompt_that_is_sent_again_adds_nothing() -> None:
    """After a failure a replay sends the same prompt."""
    assert follows([], None, {}, answer_is_shown=True)
