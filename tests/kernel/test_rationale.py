"""Reasons that a model gives for its calls: how they are read, where they are recorded, and what the prompt asks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import pytest
from pydantic import BaseModel, Field

from playhead import tool
from playhead.kernel.forms import ask_for, form_prompt, read_form
from playhead.kernel.passes import fresh_thread
from playhead.kernel.prompts import DEFAULT, DEFAULT_WITHOUT_TOOLS, FORMAT, RATIONALE
from playhead.kernel.rationale import parse_rationale, read_rationales
from playhead.kernel.state import transition
from playhead.kernel.strategies.base import list_strategies
from playhead.replay import reproduce
from playhead.testing import Turn, call, calls, text
from playhead.trace.types import Alternative, Rationale, Usage
from tests.compose.hooked import sent
from tests.kernel.runs import Ran, data, record
from tests.proving import sample

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.types import Request


def why(words: str, **fields: Any) -> Rationale:
    """Return a rationale."""
    return Rationale(why=words, **fields)


def block(words: str, call_number: int | None = None) -> str:
    """Return a block as a model writes it."""
    number = "" if call_number is None else f' call="{call_number}"'
    return f'<rationale{number}>{{"why": "{words}"}}</rationale>'


@pytest.mark.parametrize(
    ("text", "thinking", "expected"),
    [
        ("", None, {}),
        (block("a"), None, {1: why("a")}),
        ('<RATIONALE CALL="1">{"why": "a"}</Rationale >', None, {1: why("a")}),
        (f"So. {block('a')} Then {block('b')}.", None, {1: why("a"), 2: why("b")}),
        (block("b", 2) + block("a", 1), None, {2: why("b"), 1: why("a")}),
        (block("a", 1) + block("b", 1), None, {1: why("a"), 2: why("b")}),
        ("<rationale>no json</rationale>" + block("b"), None, {2: why("b")}),
        ('<rationale>It is this: {"why": "a"} I think.</rationale>', None, {1: why("a")}),
        ('<rationale>{"why": "a"}', None, {}),
        (block("a", 99999), None, {}),
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
        ({"why": "torn \ud800"}, why("torn \ufffd")),
        ({"why": ""}, None),
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
    turn = looks("a", "b", "c", text=f"I look. {block('for a', 1)}", thinking=block("for c", 3))
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
    turn = text(f"{block('before', 1)} {inside} {block('for b', 2)} {bare} {bare}")
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


CUT_OFF = "the JSON ends inside a value: it was cut off"

NO_INTEGER = "- count: Input should be a valid integer, unable to parse string as an integer"


class Part(BaseModel):
    """A part."""

    name: str = Field(description="its name")
    size: float | None = None


class Order(BaseModel):
    """An order."""

    count: int
    kind: Literal["small", "large"] = "small"
    parts: list[Part] = Field(default_factory=list)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('So:\n```json\n{"count": 2, "parts": [{"name": "a"}]}\n```\nMore?', Order(count=2, parts=[Part(name="a")])),
        ("{'count': 3, 'parts': [{'name': 'it\\'s'}]}", Order(count=3, parts=[Part(name="it's")])),
        ('{"count": "many"} or rather {"count": 8}', Order(count=8)),
        ('{"count": 1, "parts": [{"name": "\\ud800", "size": None}]}', Order(count=1, parts=[Part(name="\ufffd")])),
        ("no idea", "it holds no JSON"),
        ('{"count": 1, "parts": [{"name": "half a na', CUT_OFF),
        ('{"count": 1 kind": 2}', "the JSON is broken at 'kind'"),
        ('{"count": "x", "kind": "huge"}', f"{NO_INTEGER}\n- kind: Input should be 'small' or 'large'"),
        ("[1, 2]", "- the whole: Input should be a valid dictionary or instance of Order"),
    ],
)
def test_reading_a_form(written: str, read: Order | str):
    """JSON within prose or a fence is read and repaired; missing or truncated values are not made up, but told."""
    assert read_form(written, Order) == read


async def asking(state: Any, session: Any) -> Any:
    """Ask for an order, and end with it."""
    thread = await fresh_thread(session, form_prompt(Order))
    state, order = await ask_for(
        state, session, thread, Order, purpose="order", check=lambda order: "too many" if order.count > 9 else None
    )
    session.terminate("end_turn", None if order is None else order.count)
    return transition(state)


async def test_the_model_is_told_what_was_wrong(tmp_path: Path, register: Any):
    """Each such answer is an event and is sent back with the problem; all answers are paid for."""
    register("asking", asking)
    used = Usage(input_tokens=2, output_tokens=1)
    turns = [text(each, usage=used) for each in ('{"count": "x"}', '{"count": 10}', '{"count": 3}')]
    run = await record(tmp_path, turns, strategy="asking")
    assert (run.result.output, run.result.usage.total_tokens) == (3, 9)
    failed = [data(each) for each in run.events("structured-output-failed")]
    assert failed == [
        {"expected": "Order", "error": NO_INTEGER, "attempt": 0},
        {"expected": "Order", "error": "too many", "attempt": 1},
    ]
    told = [each.content for each in run.events("message-added") if each.role == "user"][2:]
    assert [each.splitlines()[1] for each in told] == [NO_INTEGER, "too many"]
    assert (await reproduce(tmp_path / "run.jsonl")).identical


@tool(read_only=True)
def add(a: float, b: float = 1.5) -> float:
    """Add two numbers."""
    return a + b


TOOLS = (lookup, add)

CATALOGUE = f"Tools:\n- lookup(key: string): Look up.\n- add(a: number, b?: number = 1.5): Add two numbers.\n\n{FORMAT}"


def written(name: str, **arguments: Any) -> str:
    """Return a call as the model is told to write it."""
    return f"```json\n{json.dumps({'tool': name, 'arguments': arguments})}\n```"


def turns_of(request: Request) -> list[tuple[str, str]]:
    """Return what a request said, and that it said it in text alone."""
    assert request.tools == ()
    assert not any(each.tool_calls or each.tool_call_id for each in request.messages)
    return [(each.role, str(each.content)) for each in request.messages]


async def run_in_text(folder: Path, turns: list[Any], *tools: Any, **options: Any) -> Ran:
    """Run an agent that calls in text; what was sent is what was recorded, and the file alone gives it back."""
    run = await record(folder, turns, *(tools or TOOLS), **{"system_prompt": "Work.", "tool_format": "text", **options})
    assert sent(run) == run.model.requests
    reproduced = await reproduce(run.recording)
    assert reproduced.identical, reproduced.divergences
    return run


async def test_the_prompt_holds_the_tools_and_the_thread_the_calls(tmp_path: Path):
    """No request has native tools; a call is text of the model, its result a user message."""
    run = await run_in_text(tmp_path, [text(written("lookup", key="b")), text("b is there")])
    assert turns_of(run.model.requests[1]) == [
        ("system", f"Work.\n\n{CATALOGUE}"),
        ("user", "Do it."),
        ("assistant", written("lookup", key="b")),
        ("user", "Result of lookup:\nb"),
    ]
    assert (run.result.output, run.result.success) == ("b is there", True)
    asked = run.events("llm-requested")
    assert [(each.tools, each.tools_in_text) for each in asked] == [((), ((0, 1),))] * 2
    assert [(each.tool, each.source) for each in run.events("tool-call-started")] == [("lookup", "text")]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", sample(list_strategies(), ["reflexion", "autonomous", "code-action"]))
async def test_every_strategy_calls_in_text(tmp_path: Path, strategy: str):
    """No request of a strategy has native tools, and the file alone reproduces the run."""
    said = [text(written("lookup", key=str(number))) if number % 2 else text("It is there.") for number in range(60)]
    run = await record(tmp_path, said, *TOOLS, tool_format="text", strategy=strategy, meta_tools=None)
    assert run.model.requests
    assert all(each.tools == () for each in run.model.requests)
    assert sent(run) == run.model.requests
    assert (await reproduce(run.recording)).identical
