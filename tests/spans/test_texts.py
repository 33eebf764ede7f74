"""Text on its way into spans: what no backend can hold does not leave."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from openinference.instrumentation import using_metadata, using_session, using_tags, using_user

from playhead import Agent, Context, tool
from playhead.spans.messages import clean, json_taken_apart
from playhead.testing import ScriptedModel, call, text
from tests.spans.span_runs import recorded, spans_in
from tests.trace.strategies import any_texts, json_values

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@given(any_texts)
def test_clean(said: str) -> None:
    """A NUL and half a character are replaced, all else stays, and the text is as long as it was."""
    cleaned = clean(said)
    assert "\0" not in cleaned
    assert cleaned.encode().decode() == cleaned
    if said.isascii():
        assert cleaned == said.replace("\0", "\N{REPLACEMENT CHARACTER}")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a\0b", "a\N{REPLACEMENT CHARACTER}b"),
        ("\\\0", "\\\N{REPLACEMENT CHARACTER}"),
        ("\\u0000", "\\u0000"),
        ("\\\\u0000\0", "\\\\u0000\N{REPLACEMENT CHARACTER}"),
        ({"\0": ["\0\0"]}, {"\N{REPLACEMENT CHARACTER}": ["\N{REPLACEMENT CHARACTER}" * 2]}),
    ],
)
def test_json_taken_apart(value: Any, expected: Any) -> None:
    """Only a real NUL is replaced, however many backslashes stand before it."""
    assert json.loads(json_taken_apart(value)) == expected


@pytest.mark.slow
@given(json_values)
def test_json_keeps_the_rest(value: Any) -> None:
    """JSON without a NUL is what it was."""
    if "\\u0000" not in json.dumps(value):
        assert json.loads(json_taken_apart(value)) == value


NUL = "a\0b"


@tool
async def refuse(what: str) -> str:
    """Fail with what it was given."""
    raise ValueError(what)


@tool
async def repeat(what: str) -> str:
    """Return what it was given."""
    return what


def strings(values: Iterable[Any]) -> list[str]:
    """Return the texts among the values of attributes, those of lists too."""
    lists = [[value] if isinstance(value, str) else value for value in values if isinstance(value, str | tuple | list)]
    return [each for value in lists for each in value]


@pytest.mark.parametrize("gen_ai", [False, True])
async def test_no_nul_in_any_span(tmp_path: Path, gen_ai: bool) -> None:
    """Wherever a NUL stands in a run, none is in a text, a name or an event of its spans, or in metadata."""
    turns = [call("repeat", what=NUL), call("refuse", what=NUL), text(NUL, thinking=NUL)]
    agent = Agent(
        ScriptedModel(turns),
        name="a",
        tools=[repeat, refuse],
        system_prompt=NUL,
        context=Context(rationale=False),
        trace=tmp_path,
    )
    with using_session(NUL), using_user(NUL), using_tags([NUL]), using_metadata({NUL: NUL}):
        recording, _ = await recorded(agent, tmp_path)
    spans = spans_in(recording.records, gen_ai=gen_ai)
    assert len(spans) == 6
    for span in spans:
        attributes = dict(span.attributes or {})
        told = [span.name, span.status.description or "", *strings(attributes.values())]
        told += [each for event in span.events for each in strings((event.attributes or {}).values())]
        assert not [each for each in told if "\0" in each]
        assert "\\u0000" not in str(attributes["metadata"])
    (result,) = [span for span in spans if span.name == "tool:repeat"]
    assert json.loads(str((result.attributes or {})["input.value"])) == {"what": NUL}
