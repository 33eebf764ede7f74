"""A model that says the same again: what is called full is sent again as it was, and ends as it did."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead.importing.values import NOTHING
from playhead.replay import replay
from playhead.testing import ScriptedModel, Turn, call, text
from tests.importing.traces import START_NS, Trace, calling, imported, offering

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.types import Request

LOOKUP = offering("lookup")
SYSTEM, TASK = ("system", "Use the tools."), ("user", "How high is Zed?")
ASKED = calling(("c1", "lookup", {"key": "Zed"}))
TWICE = calling(("c1", "lookup", {"key": "Zed"}), ("c2", "lookup", {"key": "Quill"}))
FIRST, SECOND = (
    {"role": "tool", "content": said, "tool_call_id": call_id} for call_id, said in (("c1", "4,180 feet"), ("c2", "61"))
)
NAMELESS = {"role": "tool", "content": "4,180 feet"}
EMPTY = {"role": "assistant", "content": ""}


def answered(said: str, output: Any = NOTHING, task: Any = TASK, **attributes: Any) -> Trace:
    """Return a run of one answer, which is its output unless another one is given."""
    given = said if output is NOTHING else output
    as_json = {} if isinstance(given, str) else {"output.mime_type": "application/json"}
    value = given if isinstance(given, str) else json.dumps(given)
    return (
        Trace()
        .agent(1, None, **{"output.value": value}, **as_json)
        .model(2, 1, [SYSTEM, task], ("assistant", said), **(attributes or LOOKUP))
    )


def called(then: list[Any], asked: Any = ASKED, result: str = "4,180 feet", second: dict[str, Any] = LOOKUP) -> Trace:
    """Return a run of calls; `then` is what the second prompt adds."""
    trace = Trace().agent(1, None, **{"output.value": "Done."}).model(2, 1, [SYSTEM, TASK], asked, **LOOKUP)
    for number, (call_id, name, arguments) in enumerate(asked["calls"]):
        returned = "61" if call_id == "c2" else result
        trace.tool(3 + number, 1, name, arguments, returned, attributes={"tool.id": call_id} if call_id else {})
    return trace.model(8, 1, [SYSTEM, TASK, *then], ("assistant", "Done."), **second)


async def replayed(recording: Any, *turns: Turn) -> tuple[Any, list[Request]]:
    """Return what came of a replay in which the model says this, and what it was sent."""
    model = ScriptedModel(turns)
    return await replay(recording, {"model": model}, trace=None), model.requests


WHOLE = {
    "nothing": ("", NOTHING),
    "a blank": (" ", NOTHING),
    "blanks around": (" 4,180 feet\n", NOTHING),
    "a final answer in its own words": ("I think so.\nFinal Answer: 42", NOTHING),
    "JSON": ('{"feet": 4180}', {"feet": 4180}),
    "a tag": ("<thinking>Hm.</thinking>4,180 feet", NOTHING),
    "broken JSON": ('{"name": "mail', NOTHING),
}


@pytest.mark.parametrize("name", list(WHOLE))
async def test_an_answer_that_calls_nothing_is_the_end_as_it_is(name: str, tmp_path: Path) -> None:
    """Nothing is asked once more after it, and nothing is taken out of it: other programs do neither."""
    said, output = WHOLE[name]
    run, recording = imported(answered(said, output).foreign(tmp_path), tmp_path / "runs")
    outcome, sent = await replayed(recording, text(said))
    assert (run.source.reasons, run.replayability) == ((), "full")
    assert (outcome.stopped, outcome.verdict, len(sent)) == (None, "same", 1)


async def test_an_answer_that_was_cut_off_before_its_first_word_is_no_output(tmp_path: Path) -> None:
    """A run of ours has none then."""
    trace = answered("", **LOOKUP, **{"llm.finish_reason": "length"})
    run, recording = imported(trace.foreign(tmp_path), tmp_path / "runs")
    outcome, _ = await replayed(recording, text("", finish_reason="length"))
    assert (run.replayability, outcome.verdict, outcome.run.output) == ("full", "same", None)


def test_a_task_that_is_empty_is_a_reason(tmp_path: Path) -> None:
    """No replay begins with it: it is refused."""
    run, _ = imported(answered("Done.", task=("user", "")).foreign(tmp_path), tmp_path / "runs")
    assert (run.replayability, run.source.reasons) == ("tools-only", ("the task is empty, which a replay refuses: 1",))


OTHERWISE: dict[str, Trace] = {
    "the result before the call": called([FIRST, ASKED]),
    "results in another order": called([TWICE, SECOND, FIRST], TWICE),
    "a message that says nothing after the call": called([ASKED, EMPTY, FIRST]),
    "a message that says nothing before the call": called([EMPTY, ASKED, FIRST]),
    "a result without an id": called([ASKED, NAMELESS]),
    "a result without an id in other words": called([ASKED, {**NAMELESS, "content": "Result: 4,180 feet"}]),
}


@pytest.mark.parametrize("name", list(OTHERWISE))
def test_what_a_replay_does_not_send_is_a_reason(name: str, tmp_path: Path) -> None:
    """Each was called full, and a replay sent something else."""
    run, _ = imported(OTHERWISE[name].foreign(tmp_path), tmp_path / "runs")
    assert [each for each in run.source.reasons if each.startswith("prompts go on with something else")]


def test_tools_in_another_order_are_a_reason(tmp_path: Path) -> None:
    """A replay offers them in the order of the first request."""
    two = offering("lookup", "mail")
    swapped = offering("mail", "lookup")
    trace = called([ASKED, FIRST], second=swapped)
    trace.spans[1] = Trace().model(2, 1, [SYSTEM, TASK], ASKED, **two).spans[0]
    run, _ = imported(trace.foreign(tmp_path), tmp_path / "runs")
    assert run.source.reasons == ("requests of an agent have other tools than its first: 1",)


@pytest.mark.parametrize(("result", "shown"), [('{"a":1}', '{ "a": 1 }'), ("4", " 4\n")])
async def test_a_result_is_sent_as_the_prompt_has_it(result: str, shown: str, tmp_path: Path) -> None:
    """Of two ways to write a text the prompt's counts: it is what was sent."""
    told = {**FIRST, "content": shown}
    run, recording = imported(called([ASKED, told], result=result).foreign(tmp_path), tmp_path / "runs")
    outcome, sent = await replayed(recording, call("lookup", key="Zed"), text("Done."))
    assert (run.replayability, outcome.verdict, sent[1].messages[-1].content) == ("full", "same", shown)


def test_a_request_that_says_it_offers_no_tools_is_another_one(tmp_path: Path) -> None:
    """An empty list of the GenAI conventions is no silence."""
    definition = {"type": "function", "name": "lookup", "parameters": {"type": "object"}}
    said = [{"role": "user", "parts": [{"type": "text", "content": "Zed?"}]}]
    asks = {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c1", "name": "lookup", "arguments": {"key": "Zed"}}],
    }
    told = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "61"}]}
    ends = {"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}

    def chat(asked: list[Any], answer: Any, tools: list[Any]) -> dict[str, Any]:
        names = {"input.messages": asked, "output.messages": [answer], "tool.definitions": tools}
        operation = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"}
        return operation | {f"gen_ai.{name}": json.dumps(value) for name, value in names.items()}

    ran = {"operation.name": "execute_tool", "tool.name": "lookup", "tool.call.id": "c1", "tool.call.result": "61"}
    trace = (
        Trace()
        .add(1, None, "agent", {"gen_ai.operation.name": "invoke_agent"}, endTimeUnixNano=str(START_NS + 10**9))
        .add(2, 1, "chat", chat(said, asks, [definition]))
        .add(4, 1, "tool", {f"gen_ai.{name}": value for name, value in ran.items()})
        .add(6, 1, "chat", chat([*said, asks, told], ends, []))
    )
    run, _ = imported(trace.foreign(tmp_path), tmp_path / "runs")
    assert run.source.reasons == ("requests of an agent have other tools than its first: 1",)


GAVE = {
    "the one value of a tool with one": ("Zed", True),
    "as Python writes it": ("{'key': 'Zed'}", True),
    "another value": ("Quill", False),
    "another one as Python writes it": ("{'key': 'Quill'}", False),
}


@pytest.mark.parametrize("name", list(GAVE))
def test_arguments_that_are_no_json_are_compared_too(name: str, tmp_path: Path) -> None:
    """LangChain's tools say what they were given as a text: another one than the model gave is a reason."""
    given, is_same = GAVE[name]
    trace = called([ASKED, FIRST])
    trace.spans[2] = Trace().tool(3, 1, "lookup", None, "4,180 feet", attributes={"input.value": given}).spans[0]
    run, _ = imported(trace.foreign(tmp_path), tmp_path / "runs")
    why = () if is_same else ("calls ran with other arguments than the model gave: lookup",)
    assert tuple(each for each in run.source.reasons if "other arguments" in each) == why


def test_another_provider_of_the_same_model_is_a_reason(tmp_path: Path) -> None:
    """A replay asks one alone."""
    trace = called([ASKED, FIRST], second=LOOKUP | {"llm.provider": "azure"})
    run, _ = imported(trace.foreign(tmp_path / "a"), tmp_path / "a")
    assert run.source.reasons == ("requests of an agent have other models than its first: 1",)


def entered(returned: str, said: str, told: str) -> Trace:
    """Return a run whose tool enters an agent, which says something; what the tool returned, and the prompt's form of it."""
    asked = calling(("c1", "ask", {"task": "How high is Zed?"}))
    tools = offering("ask")
    inner = {"openinference.span.kind": "AGENT", "agent.name": "inner", "output.value": said}
    return (
        Trace()
        .agent(1, None, **{"output.value": "Done."})
        .model(2, 1, [SYSTEM, TASK], asked, **tools)
        .tool(3, 1, "ask", {"task": "How high is Zed?"}, returned, attributes={"tool.id": "c1"})
        .add(4, 3, "inner", inner)
        .model(5, 4, [SYSTEM, TASK], ("assistant", said))
        .model(8, 1, [SYSTEM, TASK, asked, {**FIRST, "content": told}], ("assistant", "Done."), **tools)
    )


@pytest.mark.parametrize(
    ("returned", "said", "told", "is_full"),
    [
        ("4,180 feet", "4,180 feet", "4,180 feet", True),
        ("inner: 4,180 feet", "4,180 feet", "inner: 4,180 feet", False),
        ("4,180 feet", "4,180 feet", "inner: 4,180 feet", False),
        ("4,180 feet", "4,180 feet", "4,180 FEET", False),
    ],
)
def test_an_agent_that_was_entered_gives_what_it_says(
    returned: str, said: str, told: str, is_full: bool, tmp_path: Path
) -> None:
    """A replay enters it again, and tells its answer as it is: words around it would not be there."""
    run, _ = imported(entered(returned, said, told).foreign(tmp_path), tmp_path / "runs")
    why = "later prompts show other results than the tools' spans: ask"
    if returned != said:
        why = "what the agents said that calls entered is not what the calls returned: ask"
    assert (run.source.reasons[:1] == (why,)) == (not is_full)
    assert (run.replayability == "full") == is_full


@pytest.mark.parametrize("arguments", ["{bad", "[1]", '"Zed"'])
def test_a_call_whose_arguments_are_no_object_is_a_reason(arguments: str, tmp_path: Path) -> None:
    """Its program read them in some way; a replay tells the model that they are none."""
    asked = calling(("c1", "lookup", arguments))
    trace = called([asked, FIRST], asked)
    run, _ = imported(trace.foreign(tmp_path), tmp_path / "runs")
    why = "calls whose arguments are not a JSON object, which a replay answers itself: lookup"
    assert why in run.source.reasons


@pytest.mark.parametrize("shown", ["", "Tool failed: no way", "error: no way"])
async def test_an_error_is_told_as_the_prompt_has_it(shown: str, tmp_path: Path) -> None:
    """Also one of which the model was told nothing."""
    trace = called([ASKED, {**FIRST, "content": shown}])
    trace.spans[2] = Trace().tool(3, 1, "lookup", {"key": "Zed"}, "", status={"code": 2, "message": "no way"}).spans[0]
    run, recording = imported(trace.foreign(tmp_path), tmp_path / "runs")
    outcome, sent = await replayed(recording, call("lookup", key="Zed"), text("Done."))
    assert (run.replayability, outcome.verdict, sent[1].messages[-1].content) == ("full", "same", shown)
