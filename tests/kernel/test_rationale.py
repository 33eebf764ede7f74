"""Reasons that a model gives for its calls: how they are read, where they are recorded, and what the prompt asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import tool
from playhead.kernel.prompts import DEFAULT, DEFAULT_WITHOUT_TOOLS, RATIONALE
from playhead.kernel.rationale import parse_rationale, read_rationales
from playhead.replay import reproduce
from playhead.testing import Turn, call, calls, text
from playhead.trace.types import Alternative, Rationale
from tests.kernel.runs import data, record

if TYPE_CHECKING:
    from pathlib import Path


def why(words: str, **fields: Any) -> Rationale:
    """Return a rationale."""
    return Rationale(why=words, **fields)


def block(words: str, call: str = "") -> str:
    """Return a block as a model writes it."""
    return f'<rationale{call}>{{"why": "{words}"}}</rationale>'


@pytest.mark.parametrize(
    ("text", "thinking", "expected"),
    [
        ("", None, {}),
        (block("a"), None, {1: why("a")}),
        (block("a", ' call="1"'), None, {1: why("a")}),
        ('<RATIONALE CALL="1">{"why": "a"}</Rationale >', None, {1: why("a")}),
        (f"So. {block('a')} Then {block('b')}.", None, {1: why("a"), 2: why("b")}),
        (block("b", ' call="2"') + block("a", ' call="1"'), None, {2: why("b"), 1: why("a")}),
        (block("a", ' call="1"') + block("b", ' call="1"'), None, {1: why("a"), 2: why("b")}),
        (block("a", ' call="1"') * 3, None, {1: why("a"), 2: why("a"), 3: why("a")}),
        ("<rationale>no json</rationale>" + block("b"), None, {2: why("b")}),
        ('<rationale>```json\n{"why": "a"}\n```</rationale>', None, {1: why("a")}),
        ('<rationale>It is this: {"why": "a"} I think.</rationale>', None, {1: why("a")}),
        ('<rationale>{"why": "a"}', None, {}),
        ('{"why": "a"}</rationale>', None, {}),
        (f"<rationale> {block('a')}", None, {1: why("a")}),
        (block("a", ' call="99999"'), None, {}),
    ],
)
def test_which_call_a_reason_belongs_to(text: str, thinking: str | None, expected: dict[int, Rationale]):
    """A block belongs to the call that it numbers, or else to the call of its own position in text and thinking."""
    assert read_rationales(text, thinking) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"why": "a"}, why("a")),
        ("a", why("a")),
        ({"why": "é" * 300}, why("é" * 280)),
        ({"why": "a", "confidence": 0.25}, why("a", confidence=0.25)),
        ({"why": "a", "confidence": 1.01}, why("a")),
        ({"why": "a", "confidence": True}, why("a")),
        ({"why": "a", "confidence": 10**400}, why("a")),
        ({"why": "a", "refs": ["obs:1", 5, "nowhere"]}, why("a", refs=("obs:1", "nowhere"))),
        (
            {"why": "a", "alternatives": [{"option": "b", "rejectedBecause": "c"}]},
            why("a", alternatives=(Alternative(option="b", rejected_because="c"),)),
        ),
        (
            {"why": "a", "alternatives": [{"option": "b", "rejected_because": "c" * 160}]},
            why("a", alternatives=(Alternative(option="b", rejected_because="c" * 160),)),
        ),
        ({"why": "a", "alternatives": ["b", {}, {"option": 1, "rejected_because": "c"}, None]}, why("a")),
        ({"why": "a", "mood": "good"}, why("a")),
        ({"why": "torn \ud800"}, why("torn \ufffd")),
        ({"why": ""}, None),
        ({"why": 5}, None),
        ("", None),
        ([{"why": "a"}], None),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_a_reason_holds(value: object, expected: Rationale | None):
    """Long text is cut, fields of the wrong type are left out, and a value without words holds no reason."""
    assert parse_rationale(value) == expected


@tool(read_only=True)
async def lookup(key: str) -> str:
    """Look up."""
    return key


def because(words: str, call_number: int | None = None) -> str:
    """Return a rationale block."""
    number = "" if call_number is None else f' call="{call_number}"'
    return f'<rationale{number}>{{"why": "{words}"}}</rationale>'


def looks(*keys: str, **fields: Any) -> Turn:
    """Return a turn that looks these up."""
    return calls(*(call("lookup", key=key) for key in keys), **fields)


@pytest.mark.parametrize(
    ("options", "tools", "expected"),
    [
        ({}, True, f"{DEFAULT}\n\n{RATIONALE}"),
        ({"system_prompt": "Be brief."}, True, f"Be brief.\n\n{RATIONALE}"),
        ({}, False, DEFAULT_WITHOUT_TOOLS),
        ({"system_prompt": "torn \ud800"}, False, "torn \ufffd"),
        ({"system_prompt": "", "rationale": False}, True, None),
    ],
)
async def test_the_system_prompt(tmp_path: Path, options: dict[str, Any], tools: bool, expected: str | None):
    """The user's prompt or the default one; reasons are asked for when there are calls to give reasons for."""
    run = await record(tmp_path, [text("done")], *([lookup] if tools else []), **{"rationale": True, **options})
    first = run.model.requests[0].messages[0]
    assert (first.role, first.content) == (("user", "Do it.") if expected is None else ("system", expected))


async def test_background_facts(tmp_path: Path):
    """The caller's facts follow the system prompt, as text or JSON, and are a field of the header."""
    facts = {"user": "Ada", "units": ["m", "km"]}
    run = await record(tmp_path, [text("done")], system_prompt="Be brief.", facts=facts)
    told = 'Be brief.\n\nBackground facts:\n- user: Ada\n- units: ["m", "km"]'
    assert run.model.requests[0].messages[0].content == told
    assert run.recording.header.agent.task_context == facts
    assert (await reproduce(run.recording)).identical


async def test_each_call_carries_its_reason(tmp_path: Path):
    """The reason comes from text or thinking; a missing one is an event."""
    turn = looks("a", "b", "c", text=f"I look. {because('for a', 1)}", thinking=because("for c", 3))
    run = await record(tmp_path, [turn, text("done")], lookup, rationale=True)
    reasons = {event.args["key"]: event.rationale for event in run.events("tool-call-started")}
    assert reasons == {"a": Rationale(why="for a"), "b": None, "c": Rationale(why="for c")}
    assert [data(event) for event in run.events("rationale-missing")] == [
        {"path": "native", "call_id": "call_0_1", "tool": "lookup"}
    ]
    assert [data(event) for event in run.events("thought")] == [{"request": 0, "text": "I look."}]
    assert run.steps()[0] == ("thought", None, "I look.")
    assert run.model.requests[1].messages[2].content == turn.text
    assert (await reproduce(run.recording)).identical


async def test_reasons_of_calls_in_text(tmp_path: Path):
    """A call in text may hold its reason or follow it; the one it holds counts."""
    inside = '{"name": "lookup", "arguments": {"key": "a"}, "rationale": {"why": "inside", "confidence": 0.5}}'
    bare = '{"name": "lookup", "arguments": {"key": "b"}}'
    turn = text(f"{because('before', 1)} {inside} {because('for b', 2)} {bare} {bare}")
    run = await record(tmp_path, [turn, text("done")], lookup, rationale=True, tool_format="text")
    assert [event.rationale for event in run.events("tool-call-started")] == [
        Rationale(why="inside", confidence=0.5),
        Rationale(why="for b"),
        None,
    ]
    assert [data(event) for event in run.events("rationale-missing")] == [
        {"path": "text", "call_id": "text_0_3", "tool": "lookup"}
    ]
    assert run.events("thought") == []


async def test_an_answer_is_stripped_of_reasons(tmp_path: Path):
    """Reasons beside an answer do not get into the answer, and calls that are not there do not get reasons."""
    run = await record(tmp_path, [text(f"{because('I know')} 42 </rationale>")], lookup, rationale=True)
    assert (run.result.output, run.events("rationale-missing"), run.events("thought")) == ("42", [], [])
