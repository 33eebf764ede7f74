from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from playhead import context_profile, tool
from playhead.kernel.context.schema_detail import DEEPEST, described, first_sentence
from playhead.replay import reproduce
from playhead.testing import call, text
from playhead.trace.types import ToolSpec
from tests.compose.hooked import sent
from tests.kernel.runs import record

if TYPE_CHECKING:
    from pathlib import Path


class Place(BaseModel):
    """Where it is."""

    title: str = Field(description="What it is called.")


@tool
def save(place: Place, kind: Annotated[Literal["a", "b"], Field(description="Its kind.")], count: int = 1) -> str:
    """Save a thing. It is kept for ever, and this is explained at length."""
    return f"{place.title} {kind} {count}"


TYPES = {
    "$defs": {"Place": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}},
    "additionalProperties": False,
    "type": "object",
    "properties": {
        "place": {"$ref": "#/$defs/Place"},
        "kind": {"enum": ["a", "b"], "type": "string"},
        "count": {"default": 1, "type": "integer"},
    },
    "required": ["place", "kind"],
}
OPEN = {"type": "object", "properties": {}, "additionalProperties": True}


@pytest.mark.parametrize(
    ("detail", "description", "parameters"),
    [
        ("full", save.spec.description, save.spec.parameters),
        ("names-and-types", "Save a thing.", TYPES),
        ("names-only", "Save a thing. Arguments: place, kind, count (optional).", OPEN),
    ],
)
async def test_what_is_offered(tmp_path: Path, detail: Any, description: str, parameters: Any):
    """Less of the schema is sent and recorded as offered; calls are checked against all of it, and the file alone gives the run back."""
    turns = [call("save", place={"title": "x"}, kind="c"), call("save", place={"title": "x"}, kind="b"), text("done")]
    profile = context_profile("mid", tool_schema_detail=detail)
    run = await record(tmp_path, turns, save, profile=profile, compression=False)
    (offered,) = run.model.requests[0].tools
    assert (offered.description, offered.parameters) == (description, parameters)
    defined = run.events("tools-defined")
    assert [each.offered for each in defined] == ([False] if detail == "full" else [False, True])
    assert defined[0].tools == (save.spec,)
    assert defined[-1].tools == (offered,)
    refused, done = run.events("tool-call-completed")
    assert (refused.error.type, done.result) == ("InvalidArguments", "x b 1")
    assert sent(run) == run.model.requests
    reproduced = await reproduce(run.recording)
    assert reproduced.identical, reproduced.divergences


def test_tools_of_the_kernel():
    """Stay as they are."""
    spec = ToolSpec(name="finish", description="End. Now.", kind="meta")
    assert described(spec, "names-only") is spec


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("", ""),
        ("Version 1.2 of it. More.", "Version 1.2 of it."),
        ("One line\nand another", "One line"),
        ("x" * 500, f"{'x' * 119}…"),
    ],
)
def test_a_first_sentence(told: str, expected: str):
    """Or a first line, and no more than so much of it."""
    assert first_sentence(told) == expected


def test_a_deep_schema():
    """Is left open from a certain depth on, whoever wrote it."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(3000):
        schema = {"type": "array", "items": schema}
    spec = ToolSpec.model_construct(name="deep", description="", parameters=schema, kind="function")
    cut = described(spec, "names-and-types").parameters
    for _ in range(DEEPEST):
        cut = cut["items"]
    assert cut == {}
