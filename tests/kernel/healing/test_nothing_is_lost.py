"""What stands beside a call's first values is part of it: it is read, or the call is none."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.healing import SPECS
from playhead.kernel.calls_in_text.reading import read_calls
from playhead.kernel.healing.pipeline import heal
from tests.kernel.healing.corpus.schemas import tools_of

WEATHER = {"location": {"city": "Bern"}, "days": 5}


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("```python\nget_weather({'city': 'Bern'}, days=5)\n```", WEATHER),
        ("```python\nget_weather({'city': 'Bern'}, **options)\n```", None),
        ("```python\nplace = {'city': 'Bern'}\ndays = 5\nget_weather(place, days=days)\n```", WEATHER),
        ("```python\nplace = {'city': 'Bern'}\ndays = 5\nget_weather(place)\n```", None),
        ("Thought: x\nAction: search_web\nAction Input: query=cats\nand dogs, max_results=3\nObservation: ok", None),
        (
            "Thought: x\nAction: search_web\nAction Input: query=007, max_results=3\nObservation: ok",
            {"query": "007", "max_results": "3"},
        ),
    ],
)
def test_a_call_in_text_is_read_as_a_whole(text: str, arguments: dict[str, Any] | None):
    """No value, no line and no leading zero is dropped on the way."""
    assert [call.arguments for call in read_calls(text, SPECS)[0]] == ([] if arguments is None else [arguments])


@pytest.mark.parametrize("key", ["message", "result", "last_call"])
def test_an_object_under_a_strange_key_is_not_dropped(key: str):
    """A key that tells of something holds no arguments, and an object is no remark: such a call is refused."""
    assert heal("search_web", {key: {"query": "a", "max_results": 3}}, SPECS).arguments is None


@pytest.mark.parametrize(
    "name", ["agent_note", "internal_notes", "note_to_self", "invoked_by", "ui_label", "message_id", "_comment"]
)
def test_a_note_of_the_caller_is_meant_for_no_parameter(name: str):
    """What the caller writes down for itself never becomes a value of the tool."""
    for tool in tools_of("tools.json"):
        spec = SPECS[tool]
        known = spec.parameters.get("properties", {})
        texts = [
            key for key, own in known.items() if own.get("type") == "string" and not {"enum", "format"} & own.keys()
        ]
        given = dict.fromkeys(texts[1:], "x")
        healed = heal(tool, {**given, name: "only a mark"}, {tool: spec})
        assert name in known or "only a mark" not in (healed.arguments or {}).get(texts[0] if texts else "", ""), tool
