"""What a switch hides is in no byte that leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from openinference.instrumentation import TraceConfig
from pydantic import Field

from playhead import Agent, Execution, load_recording, tool
from playhead.spans import SpanOptions
from playhead.spans.encoding import encode
from playhead.spans.thread import Opening
from playhead.testing import ScriptedModel, call, calls, error, text
from playhead.trace.events import (
    LlmRequested,
    LlmResponded,
    MessageAdded,
    MessageRef,
    RunStarted,
    ToolsDefined,
)
from playhead.trace.line import Record
from playhead.trace.types import AgentHeader, ImagePart, Message, TextPart, ToolCall
from tests.options import grouped
from tests.spans.span_runs import built, golden, recorded

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


PIXELS = "data:image/png;base64,SECRETIMAGE"
EITHER = {"SECRETARGUMENT", "SECRETTOOLERROR", "SECRETMODELERROR"}
"""What is input and output, or may quote both."""
INPUTS = EITHER | {"SECRETSYSTEM", "SECRETTASK", "SECRETIMAGE"}
OUTPUTS = EITHER | {"SECRETFINAL", "SECRETRESULT", "SECRETSAID", "SECRETTHOUGHT", "SECRETWHY"}
"""(The reason of a call stands in the answer's text, too.)"""
ERRORS = {"SECRETTOOLERROR", "SECRETMODELERROR"}
TOOLS = {"SECRETDESCRIPTION", "SECRETSCHEMA"}
PARAMETERS = {"SECRETPARAMETER"}
ALL = INPUTS | OUTPUTS | TOOLS | PARAMETERS


@tool(read_only=True, description="SECRETDESCRIPTION")
async def look(key: Annotated[str, Field(description="SECRETSCHEMA")]) -> str:
    """Look."""
    if key == "fail":
        raise ValueError("SECRETTOOLERROR")
    return "SECRETRESULT"


@pytest.fixture
def records(tmp_path: Path) -> list[Record]:
    """Return the events of a run in which each place holds its own secret."""
    why = '<rationale call="1">{"why": "SECRETWHY"}</rationale>'
    model = ScriptedModel(
        [
            calls(call("look", key="SECRETARGUMENT"), text=f"SECRETSAID {why}", thinking="SECRETTHOUGHT"),
            call("look", key="fail"),
            error("SECRETMODELERROR", retryable=True),
            text("SECRETFINAL"),
        ]
    )
    agent = Agent(
        model,
        tools=[look],
        system_prompt="SECRETSYSTEM",
        parameters={"stop": "SECRETPARAMETER"},
        execution=Execution(retry_delay_s=0.001),
        trace=tmp_path,
    )
    heard: list[Record] = []
    agent.subscribe(None, heard.append)
    agent.run_sync((TextPart(text="SECRETTASK"), ImagePart(url=PIXELS)))
    return heard


def seen(records: list[Record], **options: Any) -> set[str]:
    """Return the secrets that stand in the bytes."""
    sent = encode(built(records, SpanOptions(gen_ai=True, **options))[1]).decode(errors="replace")
    return {secret for secret in ALL if secret in sent}


def test_all_of_it_is_shown_without_a_switch(records: list[Record]) -> None:
    """The test can fail: every secret is in the bytes when nothing is hidden."""
    assert seen(records) == ALL


@pytest.mark.parametrize(
    ("switches", "hidden"),
    [
        (["hide_inputs"], INPUTS | TOOLS),
        (["hide_outputs"], OUTPUTS),
        (["hide_inputs", "hide_outputs"], ALL - PARAMETERS),
        (["hide_inputs", "hide_outputs", "hide_llm_invocation_parameters"], ALL),
        (["hide_input_messages"], INPUTS),
        (["hide_prompts"], INPUTS),
        (["hide_output_messages"], OUTPUTS),
        (["hide_choices"], OUTPUTS),
        (["hide_input_text"], INPUTS - {"SECRETIMAGE"}),
        (["hide_output_text"], OUTPUTS),
        (["hide_input_images"], ERRORS | {"SECRETIMAGE"}),
        (["hide_llm_tools"], TOOLS),
        (["hide_llm_invocation_parameters"], PARAMETERS),
    ],
    ids=lambda value: "+".join(sorted(value)) if isinstance(value, list) else "",
)
def test_what_a_switch_hides(
    records: list[Record], switches: list[str], hidden: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given or from the environment, a switch hides what it says in every place where that stands, and nothing else."""
    given = TraceConfig(**dict.fromkeys(switches, True))  # type: ignore[arg-type]
    assert seen(records, masking=given) == ALL - hidden
    for switch in switches:
        monkeypatch.setenv(f"OPENINFERENCE_{switch.upper()}", "true")
    assert seen(records) == ALL - hidden


def test_without_content(records: list[Record]) -> None:
    """Without content no secret is left, nothing stands in its place, and the figures stay."""
    assert seen(records, content=False) == set()
    spans = built(records, SpanOptions(content=False))[1]
    model = next(span for span in spans if span.name.startswith("llm:"))
    attributes = dict(model.attributes or {})
    assert not {"input.value", "output.value", "llm.invocation_parameters"} & attributes.keys()
    assert "llm.token_count.total" in attributes
    assert "llm.cost.total" in attributes


def test_a_large_image_is_no_part_of_a_span(records: list[Record]) -> None:
    """An image over the limit of OpenInference is left out of messages and of values alike."""
    assert seen(records, masking=TraceConfig(base64_image_max_length=10)) == ALL - {"SECRETIMAGE"}


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
    assert recording.records[-1].event.status == "done"  # type: ignore[attr-defined]

    def sent(**switches: bool) -> str:
        shown = SpanOptions(gen_ai=True, masking=TraceConfig(**switches))  # type: ignore[arg-type]
        return encode(built(recording.records, shown)[1]).decode(errors="replace")

    assert "SECRETFIRST" in sent()
    assert "SECRET" not in sent(hide_llm_tools=True)
    assert "Do it." in sent(hide_llm_tools=True)


def test_only_messages_about_tools_are_hidden() -> None:
    """A message is hidden that describes a tool, however its lines are broken; one that only names it stays."""
    first = golden("reactive-tools").records[0]
    texts = ["Use look_up.", "Tools:\n- look_up(key): Look a\n  SECRETFIRST fact up.", "Go on."]
    events = [
        ToolsDefined(
            first_id=0, tools=(look_up.spec.model_copy(update={"description": "Look a SECRETFIRST fact up."}),)
        ),
        *(MessageAdded(id=number, role="user", content=each) for number, each in enumerate(texts)),
        LlmRequested(request=0, model="m/x", messages=((0, 2),), tools=((0, 0),)),
        LlmResponded(request=0, text="Done."),
    ]
    records = [first, *(Record(at, at, "root", 0, event) for at, event in enumerate(events, 1))]
    shown = SpanOptions(masking=TraceConfig(hide_llm_tools=True))
    (span,) = built(records, shown)[1]
    attributes = span.attributes or {}
    said = [attributes[f"llm.input_messages.{number}.message.content"] for number in range(3)]
    assert said == ["Use look_up.", "__REDACTED__", "Go on."]


async def test_phases_hide_what_they_quote(tmp_path: Path) -> None:
    """Steps of a plan hold arguments, results and errors, and hide them all."""
    plan = '{"steps": [{"id": "s1", "type": "tool_call", "tool_name": "look", "tool_args": {"key": "SECRETARGUMENT"}}]}'
    agent = Agent(ScriptedModel([text(plan)] * 9), tools=[look], strategy="plan-execute-reflect", trace=tmp_path)
    recording, _ = await recorded(agent, tmp_path)
    spans = built(recording.records, SpanOptions(masking=TraceConfig(hide_inputs=True, hide_outputs=True)))[1]
    assert any(span.name.startswith("step:") for span in spans)
    sent = encode(spans)
    assert b"SECRET" not in sent
    assert b"tool_args" not in sent


def sent_of(records: Iterable[Record], **switches: bool) -> str:
    """Return the bytes of spans, as text."""
    shown = SpanOptions(gen_ai=True, masking=TraceConfig(**switches))  # type: ignore[arg-type]
    return encode(built(records, shown)[1]).decode(errors="replace")


async def test_what_a_sub_agent_is_asked_are_the_arguments_of_a_call(tmp_path: Path) -> None:
    """Its task and its prompts are hidden with either switch, its answer as an answer."""
    below = Agent(ScriptedModel([text("SECRETRESULT")]), name="below", description="Ask.", system_prompt="SECRETBELOW")
    model = ScriptedModel([call("below", task="SECRETARGUMENT"), text("SECRETFINAL")])
    agent = Agent(model, tools=[below], system_prompt="SECRETSYSTEM", trace=tmp_path)
    recording, _ = await recorded(agent, tmp_path)
    secrets = ("SECRETARGUMENT", "SECRETBELOW", "SECRETRESULT", "SECRETFINAL", "SECRETSYSTEM")

    def seen_with(**switches: bool) -> set[str]:
        return {secret for secret in secrets if secret in sent_of(recording.records, **switches)}

    assert seen_with() == set(secrets)
    assert seen_with(hide_inputs=True) == {"SECRETRESULT", "SECRETFINAL"}
    assert seen_with(hide_outputs=True) == {"SECRETSYSTEM"}


async def test_turns_before_are_hidden_as_what_they_are(tmp_path: Path) -> None:
    """The answers of earlier turns of a chat, and what a prompt tells of them, are hidden with outputs; the task never is."""
    model = ScriptedModel([call("look", key="a"), text("SECRETANSWER"), text("SECRETFINAL")])
    agent = Agent(model, tools=[look], system_prompt="A guide.", trace=tmp_path)
    chat = agent.session()
    await chat.chat("SECRETFIRST")
    reply = await chat.chat("SECRETSECOND")
    records = load_recording(reply.run_id, tmp_path).records
    assert "SECRETANSWER" in sent_of(records)
    assert "for your last answer" in sent_of(records)
    sent = sent_of(records, hide_outputs=True)
    assert ("SECRETANSWER" in sent, "SECRETFINAL" in sent, "for your last answer" in sent) == (False, False, False)
    assert "SECRETSECOND" in sent


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
    secrets = {"SECRETARGUMENT", "SECRETRESULT", "SECRETSAID"}
    assert {secret for secret in secrets if secret in sent_of(recording.records)} == secrets
    sent = sent_of(recording.records, hide_outputs=True)
    assert {secret for secret in secrets if secret in sent} == set()
    assert "An example." in sent
    assert "Do it." in sent


def test_texts_of_the_beginning_may_come_again() -> None:
    """A message cannot quote what was not said yet; later, one that says the same as such a message cannot, either."""
    opening = Opening(RunStarted(format="2.0", run_id="r", agent=AgentHeader(name="a", model="m/x"), task="Go."))
    system = MessageAdded(id=0, role="system", content="Be short.")
    user = MessageAdded(id=1, role="user", content="Go.")
    assert opening.holds(system, "Be short.")
    opening.take(LlmResponded(request=0, text="No."))
    assert [opening.holds(system, said) for said in ("Be short.", "Be short.\n\nNo.")] == [True, False]
    assert [opening.holds(user, said) for said in ("Go.", "You said: No.")] == [True, False]
    assert not opening.holds(user.model_copy(update={"ref": MessageRef(call="c")}), "Go.")
    assert not opening.holds(user.model_copy(update={"role": "assistant"}), "Go.")
