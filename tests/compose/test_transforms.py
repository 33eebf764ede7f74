"""What transforms change and remove at each tag: what the model is sent, what runs, and what the trace says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import tool
from playhead.compose import SUPPRESS, Harness
from playhead.replay import reproduce
from playhead.testing import call, calls, text
from playhead.trace.types import Message, Rationale, ToolCall
from tests.compose.hooked import (
    EMITTED,
    TEXT_CALL,
    broken,
    changes,
    contents,
    failures,
    on,
    open_calls,
    run_all,
    run_with,
    setting,
    suppress,
    suppressions,
)
from tests.kernel.runs import data, ended, ending
from tests.kernel.strategies.looking import lookup

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kernel.runs import Ran

REASON = '<rationale call="1">{"why": "I miss a"}</rationale>'
DONE = [text("done")]
SCRIPT = [call("lookup", key="a"), *DONE]
IN_TEXT = [text(TEXT_CALL), *DONE]
REASONED = [calls(call("lookup", key="a"), text=REASON), *DONE]


def last(run: Ran, request: int = 1) -> tuple[str, Any]:
    """Return the last message of a request."""
    return contents(run.model.requests[request])[-1]


def nudged(run: Ran) -> Any:
    """Return the nudge that the model got, and what the trace says of it."""
    return last(run), [(event.nudge, event.text) for event in run.events("nudge-issued")]


def offered(run: Ran) -> Any:
    """Return the descriptions of the tools of each request, as they were written (each once), and as the tool has it."""
    requests = [[spec.description for spec in request.tools] for request in run.model.requests]
    return (
        requests,
        [[spec.description for spec in event.tools] for event in run.events("tools-defined")],
        lookup.spec.description,
    )


def called(run: Ran) -> Any:
    """Return the call that ran, as the trace, the steps and the model have it."""
    (started,) = run.events("tool-call-started")
    return started.tool, started.args, run.steps(), last(run)[1].endswith("saved b"), open_calls(run)


CALLED: Any = (
    "save", {"value": "b"}, [("action", "save", '{"value": "b"}'), ("observation", "save", "saved b")], True, [],
)  # fmt: skip
CHANGED: list[tuple[str, Any, list[Any], Any, Any]] = [
    ("prompt.system", lambda prompt, _: f"Acme. {prompt}", DONE,
     lambda run: (contents(run.model.requests[0]), run.recording.header.agent.system_prompt),
     ([("system", "Acme. Be brief."), ("user", "Do it.")], "Be brief.")),
    ("prompt.tools", lambda specs, _: [each.model_copy(update={"description": "Better."}) for each in specs], SCRIPT, offered,
     ([["Better."] * 2] * 2, [["Look up.", "Save."], ["Better."], ["Better."]], "Look up.")),
    ("message.tool-result", setting(content="***"), SCRIPT,
     lambda run: (last(run), run.steps()[-1]), (("tool", "***"), ("observation", "lookup", "found a"))),
    ("tool.result", setting(result={"key": 1}), SCRIPT,
     lambda run: (last(run), run.steps()[-1], [event.result for event in run.events("tool-call-completed")]),
     (("tool", '{"key": 1}'), ("observation", "lookup", '{"key": 1}'), ["found a"])),
    ("llm.response", setting(text="done"), [text("doen")],
     lambda run: (run.result.output, [event.text for event in run.events("llm-responded")]), ("done", ["doen"])),
    ("answer.final", lambda answer, _: {"answer": answer}, DONE, lambda run: run.result.output, {"answer": "done"}),
    ("nudge.empty-reply", lambda _, context: f"{context.trigger}, {context.severity}", [text(""), *DONE],
     nudged, (("user", "empty-reply, info"), [("empty-reply", "empty-reply, info")])),
    ("nudge.required-tools", lambda *_: "Encore.", [text("early"), *SCRIPT],
     nudged, (("user", "Encore."), [("required-tools", "Encore.")])),
    *(("decision.rationale", setting(why="***"), turns,
       lambda run: run.events("tool-call-started")[0].rationale, Rationale(why="***")) for turns in (REASONED, IN_TEXT)),
    *(("tool.call", setting(name="save", arguments={"value": "b"}), turns, called, CALLED) for turns in (SCRIPT, IN_TEXT)),
]  # fmt: skip
"""Tag, transform, script, what is looked at, and what is found there."""


@pytest.mark.parametrize(("tag", "change", "turns", "seen", "expected"), CHANGED, ids=[each[0] for each in CHANGED])
async def test_a_change(tmp_path: Path, tag: str, change: Any, turns: Any, seen: Any, expected: Any):
    """What a transform returns is what goes on from there; the trace has the change, and what was there before it."""
    options: dict[str, Any] = {"required_tools": ["lookup"]} if tag == "nudge.required-tools" else {}
    run = await run_with(
        tmp_path, turns, on(tag, change), system_prompt="Be brief.", rationale=tag == "decision.rationale", **options
    )
    assert seen(run) == expected
    assert {(where, hook, before != after) for where, _, hook, before, after in changes(run)} == {(tag, "hook", True)}
    assert (await reproduce(run.recording)).divergences == ()


def parts(run: Ran) -> Any:
    """Return the roles of the only request, and how many tools it offers."""
    (request,) = run.model.requests
    return [role for role, _ in contents(request)], len(request.tools)


def hidden(run: Ran) -> Any:
    """Return what the model got in place of a result; the steps have it."""
    assert (run.steps()[-1], open_calls(run)) == (("observation", "lookup", "found a"), [])
    return contents(run.model.requests[1])[3:]


def refused(run: Ran) -> Any:
    """Return how a call ended, and whether the model was told."""
    (completed,) = run.events("tool-call-completed")
    return data(completed)["ended"], "a hook removed the call of lookup" in last(run)[1], open_calls(run)


SUPPRESSED: list[tuple[str, list[Any], Any, Any]] = [
    ("prompt.system", DONE, parts, (["user"], 2)),
    ("prompt.task", DONE, parts, (["system"], 2)),
    ("prompt.tools", DONE, parts, (["system", "user"], 0)),
    ("llm.request", DONE, ending, ended("done", "hook_stop", None, 1, terminated_source="hook:llm.request")),
    ("message.tool-result", SCRIPT, hidden, [("tool", "(removed)")]),
    ("message.tool-result", IN_TEXT, hidden, []),
    ("tool.call", SCRIPT, refused, ("refused", True, [])),
    ("tool.call", IN_TEXT, refused, ("refused", True, [])),
    ("answer.final", SCRIPT, ending, ended("done", "end_turn", None, 2)),
]
"""Tag, script, what is looked at, and what is found there."""


@pytest.mark.parametrize(("tag", "turns", "seen", "expected"), SUPPRESSED, ids=[each[0] for each in SUPPRESSED])
async def test_a_removal(tmp_path: Path, tag: str, turns: Any, seen: Any, expected: Any):
    """What is removed is gone, nothing takes its place, and the trace says which hook removed it."""
    run = await run_with(tmp_path, turns, suppress(tag), lambda harness: harness.before("complete", lambda _: None))
    assert seen(run) == expected
    assert [(each[0], each[2]) for each in suppressions(run)] == [(tag, "hook")]


USUAL = [("system", "Be brief."), ("user", "Do it."), ("assistant", ""), ("tool", "found a")]


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        (lambda request: replace(request, messages=request.messages[1:]), USUAL[1:]),
        (lambda request: replace(request, messages=(request.messages[1], request.messages[0], *request.messages[2:])), [USUAL[1], USUAL[0], *USUAL[2:]]),
        (lambda request: replace(request, messages=(*request.messages, Message(id=99, role="user", content="Hurry."))), [*USUAL, ("user", "Hurry.")]),
        (lambda request: replace(request, messages=[Message(id=0, role="user", content="Else.")]), [("user", "Else.")]),
        (
            lambda request: replace(request, messages=tuple(each.model_copy(update={"content": f"{each.content}!"}) for each in request.messages)),
            [(role, f"{content}!") for role, content in USUAL],
        ),
    ],
    ids=["removed", "reordered", "added", "replaced", "edited"],
)  # fmt: skip
async def test_the_messages_of_a_request(tmp_path: Path, change: Any, messages: Any):
    """A hook may remove, reorder, edit and add messages of one request; the next one has the thread as it is."""
    script = [*SCRIPT[:1], call("lookup", key="b"), text("done")]
    run = await run_with(
        tmp_path,
        script,
        on("llm.request", lambda request, context: change(request) if context.iteration == 1 else None),
        system_prompt="Be brief.",
    )
    assert [contents(request) for request in run.model.requests] == [
        USUAL[:2], messages, [*USUAL, ("assistant", ""), ("tool", "found b")],
    ]  # fmt: skip
    assert [each[:3] for each in changes(run)] == [("llm.request", "1", "hook")]
    transient = {event.id for event in run.events("message-added") if event.transient}
    assert transient & {message.id for message in run.model.requests[2].messages} == set()


async def test_the_calls_of_an_answer(tmp_path: Path):
    """A hook may edit, remove, double and add calls; each has its own id and one result in the thread."""

    def change(answer: Any, context: Any) -> Any:
        if context.iteration:
            return None
        first, _ = answer.tool_calls
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


async def test_changed_arguments_are_checked_and_approved(tmp_path: Path):
    """Validation and approval apply to the arguments as the hook left them."""
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


async def test_parallel_calls(tmp_path: Path):
    """Calls that run beside each other pass hooks one after the other, in asking order, so that nothing depends on time."""
    order: list[str] = []

    async def change(asked: ToolCall, context: Any) -> ToolCall:
        order.append(f"in {asked.id}")
        await anyio.sleep(0.003 / len(order))
        order.append(f"out {asked.id}")
        assert context.call_id == asked.id
        return asked.model_copy(update={"arguments": {"key": f"{(asked.arguments or {})['key']}{asked.id[-1]}"}})

    turns = [calls(call("lookup", key="x"), call("lookup", key="y"), call("lookup", key="z")), text("done")]
    run = await run_with(tmp_path, turns, on("tool.call", change))
    assert order == [f"{way} call_0_{place}" for place in range(3) for way in ("in", "out")]
    assert {(key, after["arguments"]["key"]) for _, key, _, _, after in changes(run)} == {
        ("call_0_0", "x0"), ("call_0_1", "y1"), ("call_0_2", "z2"),
    }  # fmt: skip
    assert contents(run.model.requests[1])[-3:] == [("tool", f"found {each}") for each in ("x0", "y1", "z2")]


async def test_lifecycle_events(tmp_path: Path):
    """Lifecycle events are JSON; a changed event changes what later hooks see, and nothing else."""
    seen: list[Any] = []

    def block(harness: Harness) -> None:
        harness.tap("lifecycle.*", lambda event, context: seen.append((context.tag, event)))
        harness.on("lifecycle.completed", lambda event, _: {**event, "more": 1}, name="hook")

    run = await run_with(tmp_path, [call("broken", key="a"), *DONE], block, tools=[broken])
    assert seen == [
        ("lifecycle.started", {"task": "Do it.", "agent": "agent"}),
        ("lifecycle.failure", {"reason": "tool-error", "error_message": "error: no a", "attempt_number": 1, "failure_streak": 1, "current_strategy": "reactive"}),
        ("lifecycle.completed", {"status": "done", "terminated_by": "end_turn", "output": "done", "error": None, "more": 1}),
    ]  # fmt: skip
    assert run.result.output == "done"
    assert [each[:3] for each in changes(run)] == [("lifecycle.completed", "0", "hook")]


async def test_keeping_changes_nothing(tmp_path: Path):
    """Returning None, the payload or an equal one records no change; the script of these tests passes every chokepoint."""
    seen: set[str] = set()

    def block(harness: Harness) -> None:
        harness.tap("**", lambda _, context: seen.add(context.tag))
        harness.on("**", lambda _, __: None)
        harness.on("**", lambda payload, _: payload)
        harness.on("**", lambda payload, _: payload.model_copy() if hasattr(payload, "model_copy") else payload)

    run = await run_all(tmp_path, block)
    assert (seen, changes(run), failures(run), run.result.output) == (set(EMITTED), [], [], "done")


@pytest.mark.parametrize("tag", EMITTED)
async def test_nothing_follows_a_suppressed_payload(tmp_path: Path, tag: str):
    """After SUPPRESS no transform and no tap gets the payload; the run continues in order."""
    seen: list[Any] = []

    def block(harness: Harness) -> None:
        harness.on("**", lambda _, context: SUPPRESS if context.tag == tag else None, name="first")
        harness.on(tag, lambda payload, _: seen.append(payload))
        harness.tap(tag, lambda payload, _: seen.append(payload))

    run = await run_all(tmp_path, block)
    assert (seen, failures(run), run.error) == ([], [], None)
    assert {each[0] for each in suppressions(run)} == {tag}
    assert open_calls(run) == []
    ending(run)


async def test_seeds(tmp_path: Path):
    """Payloads emitted at the start pass the hooks; messages and nudges join the thread after the task."""
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
