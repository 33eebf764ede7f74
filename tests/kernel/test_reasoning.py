from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import tool
from playhead.kernel.prompts import DEFAULT, DEFAULT_WITHOUT_TOOLS, RATIONALE
from playhead.replay import reproduce
from playhead.testing import Turn, call, calls, text
from playhead.trace.types import Rationale, ToolCall
from tests.kernel.runs import data, record

if TYPE_CHECKING:
    from pathlib import Path


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
        ({"rationale": False}, True, DEFAULT),
        ({"system_prompt": "Be brief."}, True, f"Be brief.\n\n{RATIONALE}"),
        ({"system_prompt": "Be brief.", "rationale": False}, True, "Be brief."),
        ({}, False, DEFAULT_WITHOUT_TOOLS),
        ({"system_prompt": "Be brief."}, False, "Be brief."),
        ({"system_prompt": "torn \ud800"}, False, "torn \ufffd"),
        ({"system_prompt": "", "rationale": False}, True, None),
        ({"system_prompt": ""}, False, None),
    ],
)
async def test_the_system_prompt(tmp_path: Path, options: dict[str, Any], tools: bool, expected: str | None):
    """The user's prompt or the default one; reasons are asked for when there are calls to give reasons for."""
    run = await record(tmp_path, [text("done")], *([lookup] if tools else []), **{"rationale": True, **options})
    first = run.model.requests[0].messages[0]
    assert (first.role, first.content) == (("user", "Do it.") if expected is None else ("system", expected))


async def test_background_facts(tmp_path: Path):
    """Facts of the caller's are told after the prompt, as text or JSON, and are a field of the header."""
    facts = {"user": "Ada", "units": ["m", "km"]}
    run = await record(tmp_path, [text("done")], system_prompt="Be brief.", facts=facts)
    told = 'Be brief.\n\nBackground facts:\n- user: Ada\n- units: ["m", "km"]'
    assert run.model.requests[0].messages[0].content == told
    assert run.recording.header.agent.task_context == facts
    assert (await reproduce(run.recording)).identical


async def test_reasons_stand_at_their_calls(tmp_path: Path):
    """Each call carries the reason that the model gave for it, from text and thinking; a missing one is an event."""
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


async def test_reasons_on_the_text_path(tmp_path: Path):
    """A call in text may carry its reason in itself, or in a block before it; the one in itself counts more."""
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


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Final answer: 42", "42"),
        ("So it is.\nFINAL ANSWER :  42\n", "42"),
        ("Final answer: a. Final answer: b", "a. Final answer: b"),
        ("My final answering: 42", None),
        ("final answer 42", None),
    ],
)
async def test_a_marked_answer(tmp_path: Path, said: str, answer: str | None):
    """What follows the words "final answer:" is the answer; without them the whole text is."""
    run = await record(tmp_path, [text(said)])
    assert (run.result.output, run.result.terminated_by) == (
        (said, "end_turn") if answer is None else (answer, "final_answer")
    )


async def test_a_call_without_arguments_that_can_be_read(tmp_path: Path):
    """A malformed call is an action like any other: with its reason, its failure, and the text that could not be read."""
    broken = Turn(text=because("to know"), calls=(ToolCall(id="1", name="lookup", raw_arguments='{"key": '),))
    run = await record(tmp_path, [broken, text("done")], lookup, rationale=True, repair=False)
    (started,) = run.events("tool-call-started")
    assert (started.args, started.rationale) == ('{"key": ', Rationale(why="to know"))
    assert run.steps()[:2] == [
        ("action", "lookup", '{"key": '),
        ("observation", "lookup", "error: the arguments of lookup are no JSON object"),
    ]
    assert (await reproduce(run.recording)).identical


SNOWFLAKE = 1152921504606846977


async def test_large_integers_reach_the_model_as_they_are(tmp_path: Path):
    """An id beyond 2^53 is an ordinary number to the model; the trace keeps it exact, and gives back what was sent."""

    @tool
    async def next_id(after: int) -> dict[str, int]:
        """Return the next id."""
        return {"id": after + 1}

    run = await record(tmp_path, [call("next_id", after=SNOWFLAKE), text("done")], next_id, parameters={"seed": 2**70})
    first, second = run.model.requests
    assert second.messages[-1].content == f'{{"id": {SNOWFLAKE + 1}}}'
    assert run.steps()[:2] == [
        ("action", "next_id", f'{{"after": {SNOWFLAKE}}}'),
        ("observation", "next_id", f'{{"id": {SNOWFLAKE + 1}}}'),
    ]
    (completed,) = run.events("tool-call-completed")
    assert completed.result == {"id": {"$type": "int", "value": str(SNOWFLAKE + 1)}}
    root = run.recording.root
    assert [root.request(exchange.requested) for exchange in root.exchanges] == [first, second]
    assert (await reproduce(run.recording)).identical


@tool(read_only=True)
async def ping(key: str) -> str:
    """Answer."""
    return key
