"""What a switch hides is in no byte that leaves: the table of the guide to export, over a run of each strategy."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import pytest
from openinference.instrumentation import TraceConfig
from pydantic import Field

from playhead import Agent, load_recording, tool
from playhead.cli.exporting import ToFile
from playhead.errors import SettingsError
from playhead.spans import SpanOptions
from playhead.spans.delivery import Answer, Otlp
from playhead.spans.destination import Destination
from playhead.spans.encoding import encode
from playhead.spans.masking import masking_of_environment
from playhead.testing import ScriptedModel, call, text
from playhead.trace import events as e
from playhead.trace.types import ImagePart, Message, TextPart, ToolCall
from tests.options import grouped
from tests.spans.planted import SECRET, kinds_in, planted
from tests.spans.spans import RUNS, golden, recorded, spans_in

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from playhead.trace.line import Record

EITHER: Final = {"ARGUMENT", "SUBTASK", "PLAN", "QUOTING", "WORD"}
"""What is both: models wrote it, or it may quote what they wrote, and it went into tools, agents and models."""
INPUTS: Final = EITHER | {"TASK", "SYSTEM", "TEMPLATE", "IMAGE"}
OUTPUTS: Final = EITHER | {"ANSWER", "REASONING", "RESULT"}
ALL: Final = INPUTS | OUTPUTS | {"TOOL", "PARAMETER", "APPLICATION"}
HIDDEN: Final = {
    "hide_inputs": INPUTS | {"TOOL", "APPLICATION"},
    "hide_input_messages": INPUTS,
    "hide_prompts": INPUTS,
    "hide_input_text": INPUTS - {"IMAGE"},
    "hide_input_images": {"IMAGE", "WORD"},
    "hide_outputs": OUTPUTS,
    "hide_output_messages": OUTPUTS,
    "hide_choices": OUTPUTS,
    "hide_output_text": OUTPUTS,
    "hide_llm_tools": {"TOOL"},
    "hide_llm_invocation_parameters": {"PARAMETER"},
}
LONG: Final = 12
FORM: Final = {"<rationale call=", ": 0.9}</rationale>"}
"""What the system prompt shows as the form of a stated reason, and an answer holds, too."""


def sent(records: Iterable[Record], **switches: bool) -> bytes:
    """Return the bytes of a run's spans, with both sets of attributes."""
    return encode(spans_in(records, gen_ai=True, masking=TraceConfig(**switches)))  # type: ignore[arg-type]


def shown(records: Iterable[Record], secrets: Iterable[str], **switches: bool) -> set[str]:
    """Return which secrets are in the bytes."""
    there = sent(records, **switches).decode(errors="replace")
    return {secret for secret in secrets if secret in there}


# --- every switch ---


def test_without_a_switch_all_of_it_is_shown() -> None:
    """The test can fail: some strategy shows each kind of text."""
    assert set().union(*(kinds_in(sent(planted(run))) for run in RUNS)) == ALL


@pytest.mark.parametrize("switch", HIDDEN)
def test_a_switch_hides_what_it_says_and_no_more(switch: str) -> None:
    """No text of these kinds is in a byte of a run of any strategy, wherever it stands again; each other kind is in some."""
    seen = {run: kinds_in(sent(planted(run), **{switch: True})) for run in RUNS}
    assert {run: kinds & HIDDEN[switch] for run, kinds in seen.items() if kinds & HIDDEN[switch]} == {}
    assert set().union(*seen.values()) == ALL - HIDDEN[switch]


@pytest.mark.parametrize("run", RUNS)
def test_with_all_switches_no_secret_leaves(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the wire and into files, with every switch of the environment on or without content, no text of any event is left."""
    bodies: list[bytes] = []

    def post(_sink: Otlp, body: bytes, **_: Any) -> Answer:
        bodies.append(body)
        return Answer("accepted")

    monkeypatch.setattr(Otlp, "post", post)

    def send(**options: Any) -> bytes:
        spans = spans_in(planted(run), gen_ai=True, **options)
        Otlp(Destination("http://collector.test")).deliver(spans)
        written = io.StringIO()
        for form in ("otlp-json", "openinference-jsonl"):
            ToFile(written, form).deliver(spans)
        return bodies.pop() + written.getvalue().encode()

    assert send().count(SECRET.encode()) > 100
    assert SECRET.encode() not in send(content=False)
    for switch in HIDDEN:
        monkeypatch.setenv(f"OPENINFERENCE_{switch.upper()}", "true")
    assert SECRET.encode() not in send()


def test_without_content_figures_stay() -> None:
    """Without content nothing stands in its place, and tokens and costs are left."""
    model = next(span for span in spans_in(golden("reactive-tools").records, content=False) if "llm" in span.name)
    attributes = model.attributes or {}
    assert not {"input.value", "output.value", "llm.invocation_parameters"} & attributes.keys()
    assert {"llm.token_count.total", "llm.cost.total"} <= attributes.keys()


def lines_of(said: object) -> set[str]:
    """Return the lines and strings of a text or a JSON value that are long enough to be told from others."""
    text = said if isinstance(said, str) else json.dumps(said)
    return {line.strip() for line in re.split(r'[\n"\\]', text) if len(line.strip()) >= LONG}


def came_out(event: e.EventBase) -> set[str]:
    """Return what a model or a tool said in an event."""
    if isinstance(event, e.LlmResponded):
        return lines_of(event.text).union(
            lines_of(event.thinking or ""), *(lines_of(c.arguments) for c in event.tool_calls)
        )
    return lines_of(event.result) if isinstance(event, e.ToolCallCompleted) and event.ok else set()


@pytest.mark.parametrize("switch", ["hide_outputs", "hide_output_messages", "hide_output_text"])
def test_what_a_strategy_repeats_is_hidden(switch: str) -> None:
    """With the texts as they are: no line that came out of a model or a tool is left in a prompt, a phase or a call."""
    found = 0
    for run in RUNS:
        records = golden(run).records
        said = set().union(*(came_out(record.event) for record in records)) - FORM
        assert shown(records, said, **{switch: True}) == set(), run
        found += len(shown(records, said))
    assert found > len(RUNS)


# --- what stands in other places ---


@tool(read_only=True)
async def look(key: str) -> str:
    """Look."""
    return f"found {key}"


@tool(read_only=True, description="SECRETFIRST line.\n\nSECRETSECOND line.")
async def look_up(
    key: Annotated[str, Field(description="SECRETSCHEMA")], kind: Literal["SECRETKIND"] | None = None
) -> str:
    """Look."""
    return f"{key} {kind}: found"


LOOK = '```json\n{"tool": "look_up", "arguments": {"key": "a"}}\n```'
PLAN = '{"steps": [{"id": "s1", "type": "tool_call", "tool_name": "look_up", "tool_args": {"key": "a"}}]}'
VERDICT = '{"satisfied": true, "reason": "all there"}'


@pytest.mark.parametrize(
    ("turns", "options"),
    [
        ([LOOK, "Done."], {"tool_format": "text"}),
        (['```python\nreturn look_up("a")\n```', "Done."], {"strategy": "code-action"}),
        ([PLAN, VERDICT, "Done."], {"strategy": "plan-execute-reflect"}),
        (
            ['{"thoughts": ["Look it up.", "Guess."]}', '{"score": 9}', '{"score": 2}', "Done."],
            {"strategy": "tree-of-thought"},
        ),
        (['{"tools": [], "reason": "none"}', "Done."], {"infer_required": True}),
    ],
    ids=["text", "program", "plan", "thoughts", "inferred"],
)
async def test_tools_that_a_prompt_describes_are_hidden_there(
    tmp_path: Path, turns: list[str], options: dict[str, Any]
) -> None:
    """`hide_llm_tools` hides each message that lists tools in words as a whole, and no other."""
    own = {"tool_format": options["tool_format"]} if "tool_format" in options else {}
    options = {name: value for name, value in options.items() if name not in own}
    script = ScriptedModel([text(each) for each in turns] + [text("Done.")] * 5, **own)
    agent = Agent(script, **grouped(tools=[look_up], system_prompt="You are a guide.", trace=tmp_path, **options))
    recording, _ = await recorded(agent, tmp_path)
    assert recording.ending is not None
    assert recording.ending.status == "done"
    assert shown(recording.records, ["SECRETFIRST"]) == {"SECRETFIRST"}
    assert shown(recording.records, ["SECRET", "Do it."], hide_llm_tools=True) == {"Do it."}


async def test_what_a_sub_agent_is_asked_are_the_arguments_of_a_call(tmp_path: Path) -> None:
    """Its task and its prompts are hidden with either switch, its answer as an answer."""
    below = Agent(ScriptedModel([text("SECRETRESULT")]), name="below", description="Ask.", system_prompt="SECRETBELOW")
    model = ScriptedModel([call("below", task="SECRETARGUMENT"), text("SECRETFINAL")])
    agent = Agent(model, tools=[below], system_prompt="SECRETSYSTEM", trace=tmp_path)
    recording, _ = await recorded(agent, tmp_path)
    secrets = ("SECRETARGUMENT", "SECRETBELOW", "SECRETRESULT", "SECRETFINAL", "SECRETSYSTEM")
    assert shown(recording.records, secrets) == set(secrets)
    assert shown(recording.records, secrets, hide_inputs=True) == {"SECRETRESULT", "SECRETFINAL"}
    assert shown(recording.records, secrets, hide_outputs=True) == {"SECRETSYSTEM"}


async def test_turns_before_are_hidden_as_what_they_are(tmp_path: Path) -> None:
    """The answers of earlier turns of a chat, and what a prompt tells of them, are hidden with outputs; the task never is."""
    model = ScriptedModel([call("look", key="a"), text("SECRETANSWER"), text("SECRETFINAL")])
    agent = Agent(model, tools=[look], system_prompt="A guide.", trace=tmp_path)
    chat = agent.session()
    await chat.chat("SECRETFIRST")
    reply = await chat.chat("SECRETSECOND")
    records = load_recording(reply.result.run_id, tmp_path).records
    said = {"SECRETANSWER", "for your last answer", "SECRETFINAL", "SECRETSECOND"}
    assert shown(records, said) == said
    assert shown(records, said, hide_outputs=True) == {"SECRETSECOND"}


async def test_examples_are_hidden_as_what_they_are(tmp_path: Path) -> None:
    """Calls, results and answers that an example shows are no words of this run, and are hidden like them."""
    asked = ToolCall(id="c", name="look", arguments={"key": "SECRETARGUMENT"})
    examples = [
        Message(id=0, role="user", content="An example."),
        Message(id=1, role="assistant", tool_calls=(asked,)),
        Message(id=2, role="tool", content="SECRETRESULT", tool_call_id="c", name="look"),
        Message(id=3, role="assistant", content="SECRETSAID"),
    ]
    agent = Agent(ScriptedModel([text("Yes.")]), tools=[look], examples=examples, trace=tmp_path)
    recording, _ = await recorded(agent, tmp_path)
    said = {"SECRETARGUMENT", "SECRETRESULT", "SECRETSAID", "An example.", "Do it."}
    assert shown(recording.records, said) == said
    assert shown(recording.records, said, hide_outputs=True) == {"Do it."}  # the prompt is hidden as a whole


async def test_a_large_image_is_no_part_of_a_span(tmp_path: Path) -> None:
    """An image over the limit of OpenInference is left out of messages and of values alike."""
    agent = Agent(ScriptedModel([text("A cat.")]), trace=tmp_path)
    run = await agent.run((TextPart(text="What is it?"), ImagePart(url="data:image/png;base64,SECRETIMAGE")))
    records = load_recording(run.run_id, tmp_path).records
    assert b"SECRETIMAGE" in sent(records)
    assert b"SECRETIMAGE" not in encode(spans_in(records, masking=TraceConfig(base64_image_max_length=10)))


# --- the environment ---


@pytest.mark.parametrize(
    ("word", "hides"),
    [
        *dict.fromkeys(("true", "TRUE", " 1 ", "yes", "on"), True).items(),
        *dict.fromkeys(("false", "0", "No", "off", ""), False).items(),
    ],
)
def test_words_for_yes_and_no(word: str, hides: bool, monkeypatch: pytest.MonkeyPatch):
    """The usual words turn one switch on or off; the limit of images is still read as OpenInference reads it."""
    monkeypatch.setenv("OPENINFERENCE_HIDE_INPUTS", word)
    monkeypatch.setenv("OPENINFERENCE_BASE64_IMAGE_MAX_LENGTH", "77")
    masking = masking_of_environment()
    assert (masking.hide_inputs, masking.hide_outputs, masking.base64_image_max_length) == (hides, False, 77)


@pytest.mark.parametrize(
    ("name", "word", "error"),
    [
        ("OUTPUTS", "treu, once", "OPENINFERENCE_HIDE_OUTPUTS is neither true nor false"),
        (
            "INPUT",
            "true",
            "OPENINFERENCE_HIDE_INPUT is not a switch of OpenInference. Did you mean 'OPENINFERENCE_HIDE_INPUTS'?",
        ),
    ],
)
def test_a_misspelt_switch_is_refused(name: str, word: str, error: str, monkeypatch: pytest.MonkeyPatch):
    """A misspelt name or value raises, without the value: a guess would send what should be hidden."""
    monkeypatch.setenv(f"OPENINFERENCE_HIDE_{name}", word)
    with pytest.raises(SettingsError) as caught:
        SpanOptions()
    assert str(caught.value) == error
