from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from playhead.compose import SUPPRESS
from playhead.replay import reproduce
from playhead.testing import call, calls, text
from playhead.trace.types import Message, ToolCall
from tests.compose.hooked import (
    changes,
    contents,
    failures,
    lookup,
    on,
    open_calls,
    run_with,
    suppress,
    suppressions,
)
from tests.kernel.runs import ended, ending

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.compose import Block


# --- prompts ---------------------------------------------------------------------------------------------------------


async def test_the_system_prompt(tmp_path: Path):
    """What a hook makes of the system prompt is what the model gets, and is in the trace with what it was before."""
    run = await run_with(
        tmp_path, [text("done")], on("prompt.system", lambda prompt, _: f"Acme. {prompt}"), system_prompt="Be brief."
    )
    assert contents(run.model.requests[0]) == [("system", "Acme. Be brief."), ("user", "Do it.")]
    assert changes(run) == [("prompt.system", "0", "hook", "Be brief.", "Acme. Be brief.")]
    assert run.recording.header.agent.system_prompt == "Be brief."


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
    assert (await reproduce(run.recording)).divergences == ()


@pytest.mark.parametrize(
    ("tag", "roles", "tools"),
    [("prompt.system", ["user"], 2), ("prompt.task", ["system"], 2), ("prompt.tools", ["system", "user"], 0)],
)
async def test_a_suppressed_prompt(tmp_path: Path, tag: str, roles: Any, tools: int):
    """The request goes without that part, and the trace says that a hook removed it."""
    run = await run_with(tmp_path, [text("done")], suppress(tag))
    (request,) = run.model.requests
    assert ([role for role, _ in contents(request)], len(request.tools)) == (roles, tools)
    assert suppressions(run) == [(tag, "0", "hook")]


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


async def test_a_suppressed_request_ends_the_run(tmp_path: Path):
    """Without a request there is no answer: the run stops in order, with what it has."""
    run = await run_with(
        tmp_path, SCRIPT, on("llm.request", lambda _, context: SUPPRESS if context.iteration else None)
    )
    assert ending(run) == ended("done", "hook_stop", "found a", 2, terminated_source="hook:llm.request")
    assert (len(run.model.requests), suppressions(run)) == (1, [("llm.request", "1", "hook")])


async def test_the_answer_of_a_model(tmp_path: Path):
    """The run continues with the changed text; the trace keeps what the model sent."""
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
