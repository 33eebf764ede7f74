from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from playhead.compose import SUPPRESS, Harness
from playhead.testing import call, calls, text
from playhead.trace.types import Message, Rationale
from tests.compose.hooked import (
    EMITTED,
    EVERYTHING,
    TEXT_CALL,
    changes,
    contents,
    everything,
    failures,
    on,
    open_calls,
    run_with,
    save,
    sent,
    suppressions,
)
from tests.kernel.runs import ended, ending

if TYPE_CHECKING:
    from pathlib import Path


SCRIPT = [call("lookup", key="a"), text("done")]

# --- reasons, nudges, events, the answer -----------------------------------------------------------------------------

REASON = '<rationale call="1">{"why": "I miss a"}</rationale>'


@pytest.mark.parametrize("turn", [calls(call("lookup", key="a"), text=REASON), text(TEXT_CALL)], ids=["native", "text"])
async def test_a_reason(tmp_path: Path, turn: Any):
    """The call is recorded with the rationale that the hook returned."""
    run = await run_with(
        tmp_path,
        [turn, text("done")],
        on("decision.rationale", lambda reason, _: reason.model_copy(update={"why": "***"})),
        rationale=True,
    )
    (started,) = run.events("tool-call-started")
    assert started.rationale == Rationale(why="***")
    assert [each[0] for each in changes(run)] == ["decision.rationale"]


NUDGES: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("required-tools", [text("early"), call("lookup", key="a"), text("done")], {"required_tools": ["lookup"]}),
    ("empty-reply", [text(""), text("done")], {}),
]


@pytest.mark.parametrize(("nudge", "turns", "options"), NUDGES)
async def test_a_nudge(tmp_path: Path, nudge: str, turns: Any, options: Any):
    """The model gets the nudge that the hook returned, and the trace records that text."""
    seen: list[Any] = []

    def change(_: str, context: Any) -> str:
        seen.append((context.trigger, context.severity))
        return "Encore."

    run = await run_with(tmp_path, turns, on(f"nudge.{nudge}", change), **options)
    assert contents(run.model.requests[1])[-1] == ("user", "Encore.")
    assert [(event.nudge, event.text) for event in run.events("nudge-issued")] == [(nudge, "Encore.")]
    assert seen == [(nudge, "info")]
    assert [each[:3] for each in changes(run)] == [(f"nudge.{nudge}", "0", "hook")]


async def test_lifecycle_events(tmp_path: Path):
    """Lifecycle events are JSON; a changed event changes what later hooks see, and nothing else."""
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


async def test_the_answer(tmp_path: Path):
    """What a hook makes of the answer is the output, in the result and in the trace."""
    run = await run_with(tmp_path, [text("done")], on("answer.final", lambda answer, _: {"answer": answer, "ok": True}))
    assert ending(run) == ended("done", "end_turn", {"answer": "done", "ok": True}, 1)
    assert changes(run) == [("answer.final", "0", "hook", "done", {"answer": "done", "ok": True})]


@pytest.mark.parametrize("with_phase_hook", [False, True])
async def test_a_suppressed_answer_does_not_come_back(tmp_path: Path, with_phase_hook: bool):
    """A removed answer is no output, and nothing takes its place: no final answer, no result of a tool."""

    def block(harness: Harness) -> None:
        harness.on("answer.final", lambda _, __: SUPPRESS)
        if with_phase_hook:
            harness.before("complete", lambda _: None)

    run = await run_with(tmp_path, SCRIPT, block)
    assert ending(run) == ended("done", "end_turn", None, 2)


# --- in general ------------------------------------------------------------------------------------------------------


def test_all_tags_that_are_emitted_are_tested():
    """The script passes every tag of the kernel, other than those of features that have tests of their own."""
    from playhead.compose import TAGS

    elsewhere = {"prompt.plan", "prompt.critique", "prompt.reflect", "nudge.loop-detected", "nudge.repair-failed",
             "nudge.output-rejected", "nudge.synthesis", "nudge.novelty", "nudge.budget", "nudge.resume", "nudge.unfinished", "nudge.hook", "control.strategy-evaluated",
             "control.strategy-switched"}  # fmt: skip
    assert set(TAGS) == set(EMITTED) | elsewhere


async def test_the_script_passes_every_tag(tmp_path: Path):
    """A test that uses the script covers every chokepoint."""
    seen: set[str] = set()
    run = await run_with(
        tmp_path,
        everything(),
        lambda harness: harness.tap("**", lambda _, context: seen.add(context.tag)),
        rationale=True,
        **EVERYTHING,
    )
    assert (seen, run.result.output, failures(run)) == (set(EMITTED), "done", [])


async def test_keeping_changes_nothing(tmp_path: Path):
    """Returning None, the payload or an equal one records no change."""

    def block(harness: Harness) -> None:
        for tag in EMITTED:
            harness.on(tag, lambda _, __: None)
            harness.on(tag, lambda payload, _: payload)
            harness.on(tag, lambda payload, _: payload.model_copy() if hasattr(payload, "model_copy") else payload)

    run = await run_with(tmp_path, everything(), block, rationale=True, **EVERYTHING)
    assert (changes(run), failures(run), run.result.output) == ([], [], "done")


@pytest.mark.parametrize("tag", EMITTED)
async def test_nothing_follows_a_suppressed_payload(tmp_path: Path, tag: str):
    """After SUPPRESS no transform and no tap gets the payload; the run continues in order."""
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


async def test_requests_of_the_whole_script(tmp_path: Path):
    """With a change at every chokepoint at once, the trace still holds the exact requests."""

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
