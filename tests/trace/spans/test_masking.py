"""What a switch hides is in no byte that leaves."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from openinference.instrumentation import TraceConfig
from pydantic import Field

from playhead import Agent, tool
from playhead.testing import ScriptedModel, call, calls, error, text
from playhead.trace.otlp.encoding import encode
from playhead.trace.spans import SpanOptions
from playhead.trace.spans.tool_catalogues import ToolCatalogue
from playhead.trace.types import ImagePart, TextPart
from tests.trace.spans.span_runs import built, recorded

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.line import Record

PIXELS = "data:image/png;base64,SECRETIMAGE"
INPUTS = {"SECRETSYSTEM", "SECRETTASK", "SECRETIMAGE"}
"""What went into the model, and nowhere else."""
OUTPUTS = {"SECRETFINAL", "SECRETMODELERROR"}
"""What came out at the end, and nowhere else."""
WORDS = {"SECRETMODELERROR"}
"""What only an exception says."""
TOOLS = {"SECRETDESCRIPTION", "SECRETSCHEMA"}
BETWEEN = {"SECRETARGUMENT", "SECRETRESULT", "SECRETTOOLERROR", "SECRETSAID", "SECRETTHOUGHT", "SECRETWHY"}
"""What came out of one operation and went into another, or was said beside."""
PARAMETERS = {"SECRETPARAMETER"}
ALL = INPUTS | OUTPUTS | TOOLS | BETWEEN | PARAMETERS


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
        parameters={"user": "SECRETPARAMETER"},
        retry_delay_s=0.001,
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
        (["hide_inputs"], INPUTS | WORDS | TOOLS),
        (["hide_outputs"], OUTPUTS | {"SECRETTHOUGHT"}),
        (["hide_inputs", "hide_outputs"], ALL - PARAMETERS),
        (["hide_inputs", "hide_outputs", "hide_llm_invocation_parameters"], ALL),
        (["hide_input_messages"], INPUTS | WORDS),
        (["hide_prompts"], INPUTS | WORDS),
        (["hide_output_messages"], OUTPUTS | {"SECRETTHOUGHT"}),
        (["hide_choices"], OUTPUTS | {"SECRETTHOUGHT"}),
        (["hide_input_text"], {"SECRETSYSTEM", "SECRETTASK"} | WORDS),
        (["hide_output_text"], OUTPUTS | {"SECRETTHOUGHT"}),
        (["hide_input_images"], {"SECRETIMAGE"} | WORDS),
        (["hide_llm_tools"], TOOLS),
        (["hide_llm_invocation_parameters"], PARAMETERS),
    ],
    ids=lambda value: "+".join(sorted(value)) if isinstance(value, list) else "",
)
def test_what_a_switch_hides(
    records: list[Record], switches: list[str], hidden: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given or from the environment, a switch hides what it says in every place where that stands."""
    given = TraceConfig(**dict.fromkeys(switches, True))  # type: ignore[arg-type]
    assert seen(records, masking=given) & hidden == set()
    for switch in switches:
        monkeypatch.setenv(f"OPENINFERENCE_{switch.upper()}", "true")
    assert seen(records) & hidden == set()


def test_a_switch_hides_no_more_than_it_says(records: list[Record]) -> None:
    """What has nothing to do with a switch stays."""
    assert seen(records, masking=TraceConfig(hide_llm_tools=True)) == ALL - TOOLS
    assert seen(records, masking=TraceConfig(hide_llm_invocation_parameters=True)) == ALL - PARAMETERS
    assert {"SECRETRESULT", "SECRETFINAL"} <= seen(records, masking=TraceConfig(hide_inputs=True))
    assert {"SECRETSYSTEM", "SECRETRESULT"} <= seen(records, masking=TraceConfig(hide_outputs=True))


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
    """An image over the limit of OpenInference is left out of messages and of values alike, and each span says how many are."""
    assert "SECRETIMAGE" not in seen(records, masking=TraceConfig(base64_image_max_length=10))
    spans = built(records, SpanOptions(masking=TraceConfig(base64_image_max_length=10)))[1]
    counts = {span.name.partition(":")[0]: (span.attributes or {}).get("playhead.images_left_out") for span in spans}
    assert counts == {"agent": 1, "llm": 1, "tool": None}


@pytest.mark.parametrize("switch", [None, "hide_inputs", "hide_input_messages", "hide_input_images"])
def test_an_image_that_is_shown_or_hidden_is_not_counted_as_too_large(
    records: list[Record], switch: str | None
) -> None:
    """The count is of images that would be there if they were smaller."""
    config = TraceConfig(**({switch: True, "base64_image_max_length": 10} if switch else {}))  # type: ignore[arg-type]
    spans = built(records, SpanOptions(masking=config))[1]
    assert not any("playhead.images_left_out" in (span.attributes or {}) for span in spans)


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
        (["1. Look it up.\n2. Guess.", "9", "2", "Done."], {"strategy": "tree-of-thought"}),
        (['{"tools": [], "reason": "none"}', "Done."], {"infer_required": True}),
    ],
    ids=["text", "program", "plan", "thoughts", "inferred"],
)
async def test_tools_that_a_prompt_describes_are_hidden_there(
    tmp_path: Path, turns: list[str], options: dict[str, Any]
) -> None:
    """`hide_llm_tools` hides what a prompt says of tools in words, too, and of the rest of it nothing."""
    script = ScriptedModel([text(each) for each in turns] + [text("Done.")] * 5)
    agent = Agent(script, tools=[look_up], system_prompt="You are a guide.", trace=tmp_path, **options)
    recording, _ = await recorded(agent, tmp_path)
    assert recording.records[-1].event.status == "done"  # type: ignore[attr-defined]

    def sent(**switches: bool) -> str:
        shown = SpanOptions(gen_ai=True, masking=TraceConfig(**switches))  # type: ignore[arg-type]
        return encode(built(recording.records, shown)[1]).decode(errors="replace")

    assert "SECRETFIRST" in sent()
    assert "SECRET" not in sent(hide_llm_tools=True)
    assert "Do it." in sent(hide_llm_tools=True)
    assert ("You are a guide." in sent()) == ("You are a guide." in sent(hide_llm_tools=True))


def test_only_lines_about_tools_are_hidden() -> None:
    """A line that begins like another word stays, and so does what is at the left again."""
    catalogue = ToolCatalogue()
    assert catalogue.hidden("- look_up: this") == "- look_up: this"
    catalogue.define([look_up.spec, look_up.spec.model_copy(update={"name": "look-up-2", "description": "a"})])
    said = "Tools:\n- look_up(key): this\n  key: that\n- look_upper: stays\ndef look_up_2(key):\n    'x'\nNow go."
    hidden = "Tools:\n- look_up: __REDACTED__\n- look_upper: stays\ndef look_up_2: __REDACTED__\nNow go."
    assert catalogue.hidden(said) == hidden
    image = ImagePart(url=PIXELS)
    assert catalogue.hidden((TextPart(text=said), image)) == (TextPart(text=hidden), image)


def test_a_hostile_prompt_is_read_in_one_go() -> None:
    """However many lines look like tools, and however long they are."""
    catalogue = ToolCatalogue()
    catalogue.define([look_up.spec.model_copy(update={"name": f"look_{number}"}) for number in range(50)])
    started = time.process_time()
    for text_ in ("- look_1\n " * 50_000, "- look_1" * 50_000, " " * 400_000, "\n \n" * 100_000):
        catalogue.hidden(text_)
    assert time.process_time() - started < 2


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
