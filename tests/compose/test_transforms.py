from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import tool
from playhead.compose import SUPPRESS, Harness
from playhead.errors import ModelRequestError
from playhead.testing import call, calls, error, text
from playhead.trace.types import ImagePart, Message, Rationale, TextPart, ToolCall, ToolSpec
from tests.compose.hooked import (
    EMITTED,
    EVERYTHING,
    TEXT_CALL,
    changes,
    contents,
    everything,
    failures,
    lookup,
    open_calls,
    run_with,
    save,
    sent,
    suppressions,
)
from tests.kernel.runs import data, ended, ending

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.compose import Block


def on(pattern: Any, function: Any, **options: Any) -> Block:
    """Return a block that registers one transform, under the name `hook`."""
    return lambda harness: harness.on(pattern, function, **{"name": "hook", **options})


def suppress(tag: Any) -> Block:
    """Return a block that removes what passes a tag."""
    return on(tag, lambda _, __: SUPPRESS)


# --- prompts ---------------------------------------------------------------------------------------------------------


async def test_the_system_prompt(tmp_path: Path):
    """What a hook makes of the system prompt is what the model gets, and is in the trace with what it was before."""
    run = await run_with(
        tmp_path, [text("done")], on("prompt.system", lambda prompt, _: f"Acme. {prompt}"), system_prompt="Be brief."
    )
    assert contents(run.model.requests[0]) == [("system", "Acme. Be brief."), ("user", "Do it.")]
    assert changes(run) == [("prompt.system", "0", "hook", "Be brief.", "Acme. Be brief.")]
    assert run.recording.header.agent.system_prompt == "Be brief."


@pytest.mark.parametrize("answer", [SUPPRESS, ""], ids=["suppressed", "empty"])
async def test_no_system_prompt(tmp_path: Path, answer: Any):
    """Without a system prompt there is no system message."""
    run = await run_with(tmp_path, [text("done")], on("prompt.system", lambda _, __: answer))
    assert contents(run.model.requests[0]) == [("user", "Do it.")]


async def test_the_task(tmp_path: Path):
    """What a hook makes of the task is what the model is asked; the header says what the user asked."""
    parts = (TextPart(text="Look"), ImagePart(url="https://example.org/a.png"))
    run = await run_with(tmp_path, [text("done")], on("prompt.task", lambda task, _: parts), system_prompt="")
    assert contents(run.model.requests[0]) == [("user", parts)]
    assert run.recording.header.task == "Do it."
    assert changes(run) == [
        ("prompt.task", "0", "hook", "Do it.", [{"type": "text", "text": "Look"}, {"type": "image", "url": "https://example.org/a.png"}])
    ]  # fmt: skip


async def test_a_task_of_parts(tmp_path: Path):
    """A task of parts is given as parts, and may be answered as text."""
    seen: list[Any] = []

    def transform(task: Any, _: Any) -> str:
        seen.append(task)
        return "as text"

    run = await run_with(
        tmp_path, [text("done")], on("prompt.task", transform), system_prompt="", task=(TextPart(text="Look"),)
    )
    assert (seen, contents(run.model.requests[0])) == ([(TextPart(text="Look"),)], [("user", "as text")])


async def test_a_suppressed_task(tmp_path: Path):
    """Without a task there is no user message."""
    run = await run_with(tmp_path, [text("done")], suppress("prompt.task"))
    assert [role for role, _ in contents(run.model.requests[0])] == ["system"]
    assert suppressions(run) == [("prompt.task", "0", "hook")]


async def test_the_tools_of_a_prompt(tmp_path: Path):
    """A changed description is offered, written once as a new schema, and only to the model."""

    def describe(specs: Any, _: Any) -> Any:
        return [each.model_copy(update={"description": "Better."}) if each.name == "lookup" else each for each in specs]

    run = await run_with(tmp_path, [call("lookup", key="a"), text("done")], on("prompt.tools", describe))
    offered = [[(spec.name, spec.description) for spec in request.tools] for request in run.model.requests]
    assert offered == [[("lookup", "Better."), ("save", "Save.")]] * 2
    first, second = run.events("tools-defined")
    assert [(spec.name, spec.description) for spec in first.tools] == [("lookup", "Look up."), ("save", "Save.")]
    assert (second.first_id, [spec.description for spec in second.tools]) == (2, ["Better."])
    assert [(tag, key, hook) for tag, key, hook, *_ in changes(run)] == [
        ("prompt.tools", "0", "hook"),
        ("prompt.tools", "1", "hook"),
    ]
    assert lookup.spec.description == "Look up."


async def test_a_hidden_tool(tmp_path: Path):
    """A tool may be hidden, put last, or be one of the hook's own, which then is unknown when it is called."""
    own = ToolSpec(name="own", description="Own.")

    def hide(specs: Any, context: Any) -> Any:
        return (own, specs[1]) if context.iteration == 0 else tuple(reversed(specs))

    run = await run_with(tmp_path, [call("own"), text("done")], on("prompt.tools", hide))
    assert [[spec.name for spec in request.tools] for request in run.model.requests] == [
        ["own", "save"],
        ["save", "lookup"],
    ]
    assert [event.error.type for event in run.events("tool-call-completed")] == ["UnknownTool"]


async def test_suppressed_tools(tmp_path: Path):
    """Suppressed tools are offered to nobody."""
    run = await run_with(tmp_path, [text("done")], suppress("prompt.tools"))
    assert run.model.requests[0].tools == ()


# --- requests and answers --------------------------------------------------------------------------------------------


def edited(change: Any) -> Block:
    """Return a block that changes the second request."""
    return on("llm.request", lambda request, context: change(request) if context.iteration == 1 else None)


SCRIPT = [call("lookup", key="a"), text("done")]
USUAL = [("system", "Be brief."), ("user", "Do it."), ("assistant", ""), ("tool", "found a")]


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        (lambda request: replace(request, messages=request.messages[1:]), USUAL[1:]),
        (lambda request: replace(request, messages=request.messages[:1]), USUAL[:1]),
        (lambda request: replace(request, messages=(request.messages[1], request.messages[0], *request.messages[2:])), [USUAL[1], USUAL[0], *USUAL[2:]]),
        (lambda request: replace(request, messages=(*request.messages, Message(id=99, role="user", content="Hurry."))), [*USUAL, ("user", "Hurry.")]),
        (lambda request: replace(request, messages=[Message(id=0, role="user", content="Else.")]), [("user", "Else.")]),
        (lambda request: replace(request, messages=(*request.messages, request.messages[1])), [*USUAL, USUAL[1]]),
        (
            lambda request: replace(request, messages=tuple(each.model_copy(update={"content": f"{each.content}!"}) for each in request.messages)),
            [(role, f"{content}!") for role, content in USUAL],
        ),
    ],
    ids=["first removed", "last removed", "reordered", "added", "replaced", "twice", "edited"],
)  # fmt: skip
async def test_the_messages_of_a_request(tmp_path: Path, change: Any, messages: Any):
    """A hook may remove, reorder, edit and add messages of one request; the next one has the thread as it is."""
    script = [*SCRIPT[:1], call("lookup", key="b"), text("done")]
    run = await run_with(tmp_path, script, edited(change), system_prompt="Be brief.")
    assert [contents(request) for request in run.model.requests] == [
        USUAL[:2], messages, [*USUAL, ("assistant", ""), ("tool", "found b")],
    ]  # fmt: skip
    assert [each[:3] for each in changes(run)] == [("llm.request", "1", "hook")]
    transient = {event.id for event in run.events("message-added") if event.transient}
    assert transient & {message.id for message in run.model.requests[2].messages} == set()


async def test_a_message_of_every_kind_may_be_added(tmp_path: Path):
    """An added call and its result are sent and recorded with all that they have."""
    asked = Message(
        id=50, role="assistant", content="I ask.", tool_calls=(ToolCall(id="x", name="lookup", arguments={"key": "x"}),)
    )
    answer = Message(id=51, role="tool", content="found x", tool_call_id="x", name="lookup")
    run = await run_with(
        tmp_path, SCRIPT, edited(lambda request: replace(request, messages=(*request.messages, asked, answer)))
    )
    new = [message.model_copy(update={"id": 0}) for message in run.model.requests[1].messages[-2:]]
    assert new == [asked.model_copy(update={"id": 0}), answer.model_copy(update={"id": 0})]


async def test_the_parameters_of_a_request(tmp_path: Path):
    """Parameters may be changed: the model gets them, in this request and in no other."""
    run = await run_with(
        tmp_path,
        [*SCRIPT[:1], call("lookup", key="b"), text("done")],
        edited(lambda request: replace(request, parameters={**request.parameters, "temperature": 1, "stop": ["a"]})),
        parameters={"temperature": 0},
    )
    assert [request.parameters for request in run.model.requests] == [
        {"temperature": 0}, {"temperature": 1, "stop": ["a"]}, {"temperature": 0},
    ]  # fmt: skip
    assert changes(run) == [
        (
            "llm.request",
            "1",
            "hook",
            {"parameters": {"temperature": 0}},
            {"parameters": {"temperature": 1, "stop": ["a"]}},
        )
    ]


@pytest.mark.parametrize("other", [True, 1.0])
async def test_a_change_of_type_is_a_change(tmp_path: Path, other: Any):
    """Python takes 1, 1.0 and True for equal; in JSON they are not, so such a change is one."""

    @tool(read_only=True)
    async def show(value: Any) -> str:
        """Show."""
        return repr(value)

    def block(harness: Harness) -> None:
        harness.on("llm.request", lambda request, _: replace(request, parameters={"seed": other}), name="request")
        harness.on("tool.call", lambda asked, _: asked.model_copy(update={"arguments": {"value": other}}), name="call")
        harness.on("answer.final", lambda answer, _: answer)

    run = await run_with(tmp_path, [call("show", value=1), text("done")], block, tools=[show], parameters={"seed": 1})
    assert [repr(request.parameters) for request in run.model.requests] == [repr({"seed": other})] * 2
    assert run.steps()[-1][2] == repr(other)
    assert [hook for _, _, hook, *_ in changes(run)] == ["request", "call", "request"]


async def test_the_tools_of_a_request(tmp_path: Path):
    """Tools may be changed in the request too; two of one name are refused."""

    def block(harness: Harness) -> None:
        harness.on("llm.request", lambda request, _: replace(request, tools=request.tools[1:]), name="cut")
        harness.on(
            "llm.request", lambda request, _: replace(request, tools=(*request.tools, *request.tools)), name="twice"
        )

    run = await run_with(tmp_path, [text("done")], block)
    assert [spec.name for spec in run.model.requests[0].tools] == ["save"]
    assert failures(run) == [("twice", "llm.request")]


async def test_a_suppressed_request_ends_the_run(tmp_path: Path):
    """Without a request there is no answer: the run stops in order, with what it has."""
    run = await run_with(
        tmp_path, SCRIPT, on("llm.request", lambda _, context: SUPPRESS if context.iteration else None)
    )
    assert ending(run) == ended("done", "hook_stop", "found a", 2, terminated_source="hook:llm.request")
    assert (len(run.model.requests), suppressions(run)) == (1, [("llm.request", "1", "hook")])


async def test_the_answer_of_a_model(tmp_path: Path):
    """Changed text is what the model is taken to have said; the trace keeps what it really said."""
    run = await run_with(
        tmp_path, [text("doen")], on("llm.response", lambda answer, _: answer.model_copy(update={"text": "done"}))
    )
    assert ending(run) == ended("done", "end_turn", "done", 1)
    assert [event.text for event in run.events("llm-responded")] == ["doen"]
    added = run.events("message-added")[-1]
    assert (added.role, added.content, added.ref) == ("assistant", "done", None)
    (change,) = changes(run)
    assert (change[3]["text"], change[4]["text"]) == ("doen", "done")


async def test_the_calls_of_an_answer(tmp_path: Path):
    """Calls may be edited, removed, doubled and added; each has an id of its own and one answer in the thread."""

    def change(answer: Any, context: Any) -> Any:
        if context.iteration:
            return None
        first, second = answer.tool_calls
        edited = first.model_copy(update={"arguments": {"key": "z"}})
        added = ToolCall(id="", name="save", arguments={"value": "v"})
        return answer.model_copy(
            update={"tool_calls": (edited, first, added, added.model_copy(update={"id": first.id}))}
        )

    turns = [calls(call("lookup", key="a"), call("lookup", key="b")), text("done")]
    run = await run_with(tmp_path, turns, on("llm.response", change))
    assert [(event.call_id, event.tool, event.args) for event in run.events("tool-call-started")] == [
        ("call_0_0", "lookup", {"key": "z"}),
        ("call_0_1_", "lookup", {"key": "a"}),
        ("call_0_2", "save", {"value": "v"}),
        ("call_0_3", "save", {"value": "v"}),
    ]
    assert (open_calls(run), run.result.output, failures(run)) == ([], "done", [])


async def test_a_call_put_into_text(tmp_path: Path):
    """A hook may put a call into text, for a model that writes its calls; and take native calls away."""

    def change(answer: Any, context: Any) -> Any:
        return answer.model_copy(update={"text": TEXT_CALL, "tool_calls": ()}) if context.iteration == 0 else None

    run = await run_with(tmp_path, [call("save", value="v"), text("done")], on("llm.response", change))
    assert run.steps() == [("action", "lookup", '{"key": "a"}'), ("observation", "lookup", "found a")]
    assert contents(run.model.requests[1])[-2:] == [("assistant", TEXT_CALL), ("user", "Result of lookup:\nfound a")]


async def test_a_suppressed_answer(tmp_path: Path):
    """A removed answer is an empty one, which the model is asked about once more."""
    run = await run_with(
        tmp_path,
        [text("bad"), text("done")],
        on("llm.response", lambda _, context: SUPPRESS if context.iteration == 0 else None),
    )
    assert run.result.output == "done"
    assert [nudge.nudge for nudge in run.events("nudge-issued")] == ["empty-reply"]
    assert "bad" not in str(run.model.requests)


# --- messages --------------------------------------------------------------------------------------------------------


async def test_what_the_user_says(tmp_path: Path):
    """The user's message and the kernel's words to the model pass the same door."""
    run = await run_with(
        tmp_path,
        [text(""), text("done")],
        on("message.user", lambda message, _: message.model_copy(update={"content": f"[{message.content}]"})),
        system_prompt="",
    )
    nudge = "Your last reply was empty. Call a tool, or reply with the answer."
    assert contents(run.model.requests[1]) == [("user", "[Do it.]"), ("assistant", ""), ("user", f"[{nudge}]")]
    assert changes(run) == [
        ("message.user", "0", "hook", {"content": "Do it."}, {"content": "[Do it.]"}),
        ("message.user", "1", "hook", {"content": nudge}, {"content": f"[{nudge}]"}),
    ]


async def test_what_the_model_said(tmp_path: Path):
    """Another content of the model's message is what it is sent from then on; what it asked for stays."""
    run = await run_with(
        tmp_path,
        [calls(call("lookup", key="a"), text="secret plan"), text("done")],
        on("message.assistant", lambda message, _: message.model_copy(update={"content": "plan"})),
    )
    assert contents(run.model.requests[1])[-2:] == [("assistant", "plan"), ("tool", "found a")]
    assert open_calls(run) == []
    assert [step for step in run.steps() if step[0] == "thought"] == [("thought", None, "secret plan")]


async def test_suppressed_messages(tmp_path: Path):
    """A removed message is not in the thread; one with native calls is emptied, because their results refer to it."""

    def block(harness: Harness) -> None:
        harness.on("message.assistant", lambda _, __: SUPPRESS, name="hook")
        harness.on("message.user", lambda _, context: SUPPRESS if context.iteration is None else None, name="user")

    run = await run_with(
        tmp_path, [calls(call("lookup", key="a"), text="plan"), text(""), text("done")], block, system_prompt="S"
    )
    assert [[role for role, _ in contents(request)] for request in run.model.requests] == [
        ["system"], ["system", "assistant", "tool"], ["system", "assistant", "tool", "user"],
    ]  # fmt: skip
    assert run.model.requests[1].messages[1].content == ""
    assert (open_calls(run), run.result.output) == ([], "done")


async def test_a_result_for_the_model(tmp_path: Path):
    """What a hook makes of a result's message is all that the model is told; others are told the result."""
    run = await run_with(
        tmp_path, SCRIPT, on("message.tool-result", lambda message, _: message.model_copy(update={"content": "***"}))
    )
    assert contents(run.model.requests[1])[-1] == ("tool", "***")
    assert run.steps()[-1] == ("observation", "lookup", "found a")
    assert changes(run) == [("message.tool-result", "call_0_0", "hook", {"content": "found a"}, {"content": "***"})]


async def test_a_result_for_a_model_that_writes_its_calls(tmp_path: Path):
    """In text too: the message with the result is the user's, and says what it is."""
    run = await run_with(
        tmp_path,
        [text(TEXT_CALL), text("done")],
        on("message.tool-result", lambda message, _: message.model_copy(update={"content": "***"})),
    )
    assert contents(run.model.requests[1])[-1] == ("user", "***")
    assert changes(run) == [
        ("message.tool-result", "text_0_1", "hook", {"content": "Result of lookup:\nfound a"}, {"content": "***"})
    ]


@pytest.mark.parametrize(("turn", "left"), [(call("lookup", key="a"), [("tool", "(removed)")]), (text(TEXT_CALL), [])])
async def test_a_suppressed_result(tmp_path: Path, turn: Any, left: Any):
    """A removed result is gone; where a provider wants an answer to every call, the answer says so."""
    run = await run_with(tmp_path, [turn, text("done")], suppress("message.tool-result"))
    assert contents(run.model.requests[1])[3:] == left
    assert "found a" not in str(run.model.requests)
    assert (run.steps()[-1], open_calls(run)) == (("observation", "lookup", "found a"), [])


async def test_a_result_for_everybody_else(tmp_path: Path):
    """What a hook makes of the step is in `steps` and in the output of a run without an answer; the model is told the result."""
    run = await run_with(
        tmp_path,
        [call("lookup", key="a"), call("lookup", key="b")],
        on("observation.tool-result", lambda step, _: replace(step, content="***")),
        max_iterations=1,
    )
    assert [step.content for step in run.result.steps if step.type == "observation"] == ["***"]
    assert ending(run) == ended("done", "max_iterations", "***", 1)
    assert [each[:3] for each in changes(run)] == [("observation.tool-result", "call_0_0", "hook")]


async def test_a_suppressed_step(tmp_path: Path):
    """A removed step is in no list of steps, and is nobody's output."""
    run = await run_with(tmp_path, SCRIPT, suppress("observation.tool-result"), max_iterations=1)
    assert (run.steps(), run.result.output) == ([("action", "lookup", '{"key": "a"}')], None)


# --- tools -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", [call("lookup", key="a"), text(TEXT_CALL)], ids=["native", "text"])
async def test_a_call(tmp_path: Path, turn: Any):
    """What a hook makes of a call is what runs, what is hashed and recorded, and what the steps say."""

    def change(asked: ToolCall, context: Any) -> ToolCall:
        assert (context.tool, context.call_id) == (asked.name, asked.id)
        return asked.model_copy(update={"name": "save", "arguments": {"value": "b"}})

    run = await run_with(tmp_path, [turn, text("done")], on("tool.call", change))
    (started,) = run.events("tool-call-started")
    assert (started.tool, started.args) == ("save", {"value": "b"})
    assert run.steps() == [("action", "save", '{"value": "b"}'), ("observation", "save", "saved b")]
    assert run.model.requests[1].messages[-1].name == "save"
    assert [each[2:] for each in changes(run)] == [
        ("hook", {"name": "lookup", "arguments": {"key": "a"}}, {"name": "save", "arguments": {"value": "b"}})
    ]
    assert open_calls(run) == []


@pytest.mark.parametrize("turn", [call("lookup", key="a"), text(TEXT_CALL)], ids=["native", "text"])
async def test_a_suppressed_call_is_refused(tmp_path: Path, turn: Any):
    """A removed call does not run; the model is told, and the thread stays in order."""
    run = await run_with(tmp_path, [turn, text("done")], suppress("tool.call"))
    (completed,) = run.events("tool-call-completed")
    assert data(completed)["ended"] == "refused"
    assert "a hook removed the call of lookup" in contents(run.model.requests[1])[-1][1]
    assert (run.result.output, open_calls(run)) == ("done", [])


async def test_what_a_hook_makes_of_a_call_is_checked_and_approved(tmp_path: Path):
    """Arguments are checked, and approved, as the hook left them."""
    asked: list[Any] = []

    @tool(requires_approval=True)
    async def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    def approve(request: Any) -> bool:
        asked.append(request.arguments)
        return True

    def change(each: ToolCall, context: Any) -> ToolCall:
        return each.model_copy(update={"arguments": {"amount": [5, "much"][context.iteration]}})

    run = await run_with(
        tmp_path,
        [call("pay", amount=1), call("pay", amount=2), text("done")],
        on("tool.call", change),
        tools=[pay],
        approver=approve,
    )
    assert asked == [{"amount": 5}]
    assert [event.ok for event in run.events("tool-call-completed")] == [True, False]


async def test_tags_in_arguments_survive(tmp_path: Path):
    """What stands for a value that JSON lacks is still that value after a hook touched its neighbour."""
    big = 2**60

    @tool(read_only=True)
    async def show(number: int, more: str) -> str:
        """Show."""
        return f"{number == big} {more}"

    def change(asked: ToolCall, _: Any) -> ToolCall:
        return asked.model_copy(update={"arguments": {**(asked.arguments or {}), "more": "b"}})

    run = await run_with(
        tmp_path, [call("show", number=big, more="a"), text("done")], on("tool.call", change), tools=[show]
    )
    assert run.steps()[-1] == ("observation", "show", "True b")


async def test_a_result(tmp_path: Path):
    """What a hook makes of a result is what the model and everybody else is told; the trace keeps what came back."""
    run = await run_with(
        tmp_path, SCRIPT, on("tool.result", lambda result, _: result.model_copy(update={"result": {"key": 1}}))
    )
    assert contents(run.model.requests[1])[-1] == ("tool", '{"key": 1}')
    assert run.steps()[-1] == ("observation", "lookup", '{"key": 1}')
    assert [event.result for event in run.events("tool-call-completed")] == ["found a"]
    assert changes(run) == [
        ("tool.result", "call_0_0", "hook", {"ok": True, "result": "found a", "error": None}, {"ok": True, "result": {"key": 1}, "error": None})
    ]  # fmt: skip


async def test_a_result_made_a_failure(tmp_path: Path):
    """A result may be made a failure: a required tool has then not returned."""

    def fail(result: Any, context: Any) -> Any:
        failed = {"ok": False, "result": None, "error": {"type": "Stale", "message": "too old"}}
        return type(result).model_validate({**result.model_dump(), **failed}) if context.iteration == 0 else None

    run = await run_with(
        tmp_path, [call("lookup", key="a"), text("early"), call("lookup", key="b"), text("done")],
        on("tool.result", fail), required_tools=["lookup"],
    )  # fmt: skip
    assert [step[2] for step in run.steps() if step[0] == "observation"] == ["error: too old", "found b"]
    assert [event.nudge for event in run.events("nudge-issued")] == ["required-tools"]


async def test_a_suppressed_result_is_told_as_a_failure(tmp_path: Path):
    """Of a removed result nobody is told more than that."""
    run = await run_with(tmp_path, SCRIPT, suppress("tool.result"))
    assert contents(run.model.requests[1])[-1] == ("tool", "error: a hook removed the result")
    assert run.steps()[-1] == ("observation", "lookup", "error: a hook removed the result")


async def test_parallel_calls(tmp_path: Path):
    """Calls that run beside each other pass asynchronous hooks beside each other; each change is its own call's."""
    inside: list[int] = []
    most: list[int] = []

    async def change(asked: ToolCall, context: Any) -> ToolCall:
        inside.append(1)
        most.append(len(inside))
        await anyio.sleep(0.003 * (3 - len(most)))
        inside.pop()
        assert context.call_id == asked.id
        return asked.model_copy(update={"arguments": {"key": f"{(asked.arguments or {})['key']}{asked.id[-1]}"}})

    turns = [calls(call("lookup", key="x"), call("lookup", key="y"), call("lookup", key="z")), text("done")]
    run = await run_with(tmp_path, turns, on("tool.call", change))
    assert max(most) == 3
    assert {(key, after["arguments"]["key"]) for _, key, _, _, after in changes(run)} == {
        ("call_0_0", "x0"), ("call_0_1", "y1"), ("call_0_2", "z2"),
    }  # fmt: skip
    assert contents(run.model.requests[1])[-3:] == [("tool", f"found {each}") for each in ("x0", "y1", "z2")]


async def test_calls_that_hooks_gave_side_effects_run_alone(tmp_path: Path):
    """A call is run beside others for what it is after the hooks, not for what the model asked for."""
    inside: list[str] = []
    overlaps: list[tuple[str, ...]] = []

    async def body(name: str) -> str:
        inside.append(name)
        overlaps.append(tuple(inside))
        await anyio.sleep(0.005)
        inside.remove(name)
        return name

    @tool(read_only=True)
    async def look(key: str) -> str:
        """Look."""
        return await body(key)

    @tool
    async def pay(key: str) -> str:
        """Pay."""
        return await body(f"pay {key}")

    def change(asked: ToolCall, _: Any) -> ToolCall | None:
        return asked.model_copy(update={"name": "pay"}) if asked.arguments in ({"key": "a"}, {"key": "b"}) else None

    turns = [calls(*(call("look", key=key) for key in "abcd")), text("done")]
    run = await run_with(tmp_path, turns, on("tool.call", change), tools=[look, pay], max_parallel=4)
    assert sorted(each for each in overlaps if any("pay" in name for name in each)) == [("pay a",), ("pay b",)]
    assert ("c", "d") in overlaps
    assert [content for role, content in contents(run.model.requests[1]) if role == "tool"] == [
        "pay a",
        "pay b",
        "c",
        "d",
    ]


# --- reasons, nudges, events, the answer -----------------------------------------------------------------------------

REASON = '<rationale call="1">{"why": "I miss a"}</rationale>'


@pytest.mark.parametrize("turn", [calls(call("lookup", key="a"), text=REASON), text(TEXT_CALL)], ids=["native", "text"])
async def test_a_reason(tmp_path: Path, turn: Any):
    """What a hook makes of a stated reason is what is recorded with the call."""
    run = await run_with(
        tmp_path,
        [turn, text("done")],
        on("decision.rationale", lambda reason, _: reason.model_copy(update={"why": "***"})),
        rationale=True,
    )
    (started,) = run.events("tool-call-started")
    assert started.rationale == Rationale(why="***")
    assert [each[0] for each in changes(run)] == ["decision.rationale"]


async def test_a_suppressed_reason_is_none(tmp_path: Path):
    """A removed reason is recorded nowhere but as removed; that the model stated none is not said."""
    run = await run_with(
        tmp_path,
        [calls(call("lookup", key="a"), text=REASON), text("done")],
        suppress("decision.rationale"),
        rationale=True,
    )
    assert run.events("tool-call-started")[0].rationale is None
    assert run.events("rationale-missing") == []
    assert suppressions(run) == [("decision.rationale", "call_0_0", "hook")]


NUDGES: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("required-tools", [text("early"), call("lookup", key="a"), text("done")], {"required_tools": ["lookup"]}),
    ("empty-reply", [text(""), text("done")], {}),
]


@pytest.mark.parametrize(("nudge", "turns", "options"), NUDGES)
async def test_a_nudge(tmp_path: Path, nudge: str, turns: Any, options: Any):
    """What a hook makes of a word of the kernel is what the model is told, and what the trace says it was told."""
    seen: list[Any] = []

    def change(_: str, context: Any) -> str:
        seen.append((context.trigger, context.severity))
        return "Encore."

    run = await run_with(tmp_path, turns, on(f"nudge.{nudge}", change), **options)
    assert contents(run.model.requests[1])[-1] == ("user", "Encore.")
    assert [(event.nudge, event.text) for event in run.events("nudge-issued")] == [(nudge, "Encore.")]
    assert seen == [(nudge, "info")]
    assert [each[:3] for each in changes(run)] == [(f"nudge.{nudge}", "0", "hook")]


@pytest.mark.parametrize(
    ("nudge", "turns", "options", "end"),
    [
        (*NUDGES[0], ("required_tools_missing", "early")),
        (*NUDGES[1], ("end_turn", "")),
    ],
)
async def test_a_suppressed_nudge(tmp_path: Path, nudge: str, turns: Any, options: Any, end: Any):
    """A model that is told nothing is not asked again: the run ends as if there were no more nudges."""
    run = await run_with(tmp_path, turns, suppress(f"nudge.{nudge}"), **options)
    assert len(run.model.requests) == 1
    assert (run.result.terminated_by, run.result.output) == end
    assert run.events("nudge-issued") == []


async def test_events_are_told(tmp_path: Path):
    """What happens is told as JSON; a changed event changes what later hooks see, and nothing else."""
    seen: list[Any] = []

    def block(harness: Harness) -> None:
        harness.tap("lifecycle.*", lambda event, context: seen.append((context.tag, event)))
        harness.on("lifecycle.completed", lambda event, _: {**event, "more": 1}, name="hook")

    run = await run_with(
        tmp_path, [call("broken", key="a"), text("done")], block, **EVERYTHING | {"required_tools": []}
    )
    assert seen == [
        ("lifecycle.started", {"task": "Do it.", "agent": "agent"}),
        ("lifecycle.failure", {"reason": "tool-error", "error_message": "error: no a", "attempt_number": 1, "failure_streak": 1, "current_strategy": "reactive"}),
        ("lifecycle.completed", {"status": "done", "terminated_by": "end_turn", "output": "done", "error": None, "more": 1}),
    ]  # fmt: skip
    assert run.result.output == "done"
    assert [each[:3] for each in changes(run)] == [("lifecycle.completed", "0", "hook")]


async def test_a_failure_of_the_model_is_told(tmp_path: Path):
    """A model that does not answer is told, with the attempts it took, and how the run ended after it."""
    seen: list[Any] = []
    run = await run_with(
        tmp_path,
        [error("busy", retryable=True), error("busy", retryable=True)],
        lambda harness: harness.tap("lifecycle.*", lambda event, context: seen.append((context.tag, event))),
        max_retries=1,
    )
    assert seen[1:] == [
        ("lifecycle.failure", {"reason": "llm-failure", "error_message": "busy", "attempt_number": 2, "failure_streak": 1, "current_strategy": "reactive"}),
        ("lifecycle.completed", {"status": "failed", "terminated_by": "llm_error", "output": None, "error": "busy"}),
    ]  # fmt: skip
    assert run.result.terminated_by == "llm_error"


async def test_the_answer(tmp_path: Path):
    """What a hook makes of the answer is the output, in the result and in the trace."""
    run = await run_with(tmp_path, [text("done")], on("answer.final", lambda answer, _: {"answer": answer, "ok": True}))
    assert ending(run) == ended("done", "end_turn", {"answer": "done", "ok": True}, 1)
    assert changes(run) == [("answer.final", "0", "hook", "done", {"answer": "done", "ok": True})]


async def test_the_best_output_passes_too(tmp_path: Path):
    """Whatever ended the run: what leaves as its output has passed."""
    run = await run_with(tmp_path, SCRIPT, on("answer.final", lambda answer, _: f"<{answer}>"), max_iterations=1)
    assert ending(run) == ended("done", "max_iterations", "<found a>", 1)
    run = await run_with(
        tmp_path / "2", [call("lookup", key="a"), error("dead")], on("answer.final", lambda answer, _: f"<{answer}>")
    )
    assert isinstance(run.error, ModelRequestError)
    assert ending(run) == ended("failed", "llm_error", "<found a>", 2, error="dead")


@pytest.mark.parametrize("with_phase_hook", [False, True])
async def test_a_suppressed_answer_does_not_come_back(tmp_path: Path, with_phase_hook: bool):
    """A removed answer is no output, and nothing takes its place: no final answer, no result of a tool."""

    def block(harness: Harness) -> None:
        harness.on("answer.final", lambda _, __: SUPPRESS)
        if with_phase_hook:
            harness.before("complete", lambda _: None)

    run = await run_with(tmp_path, SCRIPT, block)
    assert ending(run) == ended("done", "end_turn", None, 2)


async def test_tags_in_an_answer_survive(tmp_path: Path, register: Any):
    """An answer with values that JSON lacks passes a hook that returns it as it got it, unchanged."""
    from playhead.kernel.state import transition

    async def binary(state: Any, session: Any) -> Any:
        return transition(state, output={"data": b"\xff", "n": 2**60})

    register("binary", binary)
    run = await run_with(tmp_path, [], on("answer.final", lambda answer, _: dict(answer)), strategy="binary")
    assert changes(run) == []
    assert run.result.output["data"]["$type"] == "bytes"


# --- in general ------------------------------------------------------------------------------------------------------


def test_all_tags_that_are_emitted_are_tested():
    """The script passes every tag that the kernel emits so far."""
    from playhead.compose import TAGS

    later = {"prompt.plan", "prompt.critique", "prompt.reflect", "nudge.loop-detected", "nudge.healing-failure",
             "nudge.rationale-missing", "nudge.novelty", "nudge.budget", "nudge.resume", "control.strategy-evaluated",
             "control.strategy-switched"}  # fmt: skip
    assert set(TAGS) == set(EMITTED) | later


async def test_the_script_passes_every_tag(tmp_path: Path):
    """So what is tested with it is tested at every chokepoint."""
    seen: set[str] = set()
    run = await run_with(
        tmp_path,
        everything(),
        lambda harness: harness.tap("**", lambda _, context: seen.add(context.tag)),
        rationale=True,
        **EVERYTHING,
    )
    assert (seen, run.result.output, failures(run)) == (set(EMITTED), "done", [])


@pytest.mark.parametrize("tag", EMITTED)
async def test_keeping_changes_nothing(tmp_path: Path, tag: str):
    """None keeps, and so does the payload itself, or an equal one: no event, no new object."""

    def block(harness: Harness) -> None:
        harness.on(tag, lambda _, __: None)
        harness.on(tag, lambda payload, _: payload)
        harness.on(tag, lambda payload, _: payload.model_copy() if hasattr(payload, "model_copy") else payload)

    run = await run_with(tmp_path, everything(), block, rationale=True, **EVERYTHING)
    assert (changes(run), failures(run), run.result.output) == ([], [], "done")


@pytest.mark.parametrize("tag", EMITTED)
async def test_nothing_follows_a_suppressed_payload(tmp_path: Path, tag: str):
    """After one that removes a payload no transform and no tap gets it; the run goes on in order."""
    seen: list[Any] = []

    def block(harness: Harness) -> None:
        harness.on("**", lambda _, context: SUPPRESS if context.tag == tag else None, name="first")
        harness.on(tag, lambda payload, _: seen.append(payload))
        harness.tap(tag, lambda payload, _: seen.append(payload))

    run = await run_with(tmp_path, everything(), block, rationale=True, **EVERYTHING)
    assert (seen, failures(run), run.error) == ([], [], None)
    assert {each[0] for each in suppressions(run)} == {tag}
    assert open_calls(run) == []
    ending(run)


async def test_async_transforms(tmp_path: Path):
    """A transform may be asynchronous."""

    async def change(prompt: str, _: Any) -> str:
        await anyio.sleep(0)
        return f"{prompt}!"

    run = await run_with(tmp_path, [text("done")], on("prompt.system", change), system_prompt="Go")
    assert run.model.requests[0].messages[0].content == "Go!"


async def test_surrogates_in_what_a_hook_returns(tmp_path: Path):
    """Text that no wire can hold is mended before it is used and recorded."""
    run = await run_with(tmp_path, [text("done")], on("prompt.system", lambda _, __: "a\ud800b"))
    assert run.model.requests[0].messages[0].content == "a\ufffdb"


async def test_seeds(tmp_path: Path):
    """What is emitted at the start passes the hooks; what is for the model joins its thread, after the task."""
    seen: list[Any] = []

    def block(harness: Harness) -> None:
        harness.emit("message.user", "By the way.")
        harness.emit("message.user", Message(id=7, role="user", content="And more."))
        harness.emit("nudge.budget", "Be quick.")
        harness.emit("control.strategy-evaluated", {"score": 1})
        harness.on("nudge.budget", lambda words, _: words.upper())
        harness.tap("control.*", lambda event, _: seen.append(event))

    run = await run_with(tmp_path, [text("done")], block, system_prompt="")
    assert contents(run.model.requests[0]) == [
        ("user", "Do it."), ("user", "By the way."), ("user", "And more."), ("user", "BE QUICK."),
    ]  # fmt: skip
    assert seen == [{"score": 1}]
    assert [event.text for event in run.events("nudge-issued")] == ["BE QUICK."]


async def test_requests_of_the_whole_script(tmp_path: Path):
    """With a change at every chokepoint at once, the trace still says exactly what the model was asked."""

    def block(harness: Harness) -> None:
        harness.on(["prompt.system", "prompt.task", "nudge.*"], lambda words, _: f"{words} ~")
        harness.on("message.*", lambda message, _: message.model_copy(update={"content": f"{message.content} ~"}))
        harness.on("prompt.tools", lambda specs, _: [each.model_copy(update={"description": "~"}) for each in specs])
        harness.on(
            "llm.request", lambda request, _: replace(request, messages=request.messages[::-1], parameters={"seed": 1})
        )
        harness.on("tool.result", lambda result, _: result.model_copy(update={"result": f"{result.result} ~"}))

    run = await run_with(tmp_path, everything(), block, rationale=True, parameters={"a": 1}, **EVERYTHING)
    assert [request.parameters for request in run.model.requests] == [{"seed": 1}] * len(run.model.requests)
    assert sent(run) == run.model.requests
    assert all(message.content.endswith("~") for request in run.model.requests for message in request.messages)
    assert save.spec.description == "Save."
