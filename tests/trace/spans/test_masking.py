"""What a switch hides is in no byte that leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import pytest
from openinference.instrumentation import TraceConfig
from pydantic import Field

from playhead import Agent, tool
from playhead.testing import ScriptedModel, call, calls, error, text
from playhead.trace.spans import SpanOptions
from playhead.trace.spans.protobuf import encode
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
    """An image over the limit of OpenInference is left out of messages and of values alike."""
    assert "SECRETIMAGE" not in seen(records, masking=TraceConfig(base64_image_max_length=10))


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
