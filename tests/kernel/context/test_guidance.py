from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import context_profile, tool
from playhead.compose import SUPPRESS
from playhead.kernel.context.guidance import BY_TIER
from playhead.kernel.context.profiles import TIERS
from playhead.replay import reproduce
from playhead.testing import call, text
from playhead.trace.guidance import Guidance
from playhead.trace.types import Message, ToolCall
from tests.compose.hooked import sent
from tests.kernel.runs import Ran, record

if TYPE_CHECKING:
    from pathlib import Path

WORDS = Guidance(
    prompt_patch="Patch.", tool_guidance="Tools.", task_framing="Frame.", continuation_hint="Next:", error_recovery="Recover.",
    synthesis_prompt="Synthesize.", quality_check="Check.",
)  # fmt: skip


@tool(read_only=True)
async def look(key: str) -> str:
    """Look."""
    if key == "bad":
        raise ValueError("not there")
    return f"found {key}"


async def run_with(folder: Path, turns: list[Any], **options: Any) -> Ran:
    """Run an agent that is told everything, reproduced from its file alone."""
    settings = {"profile": context_profile("mid", guidance=WORDS), "compression": False, "required_tools": {"look": 2}}
    run = await record(folder, turns, look, **{**settings, **options})
    assert sent(run) == run.model.requests
    reproduced = await reproduce(run.recording)
    assert reproduced.identical, reproduced.divergences
    return run


def users(run: Ran) -> list[str]:
    """Return what the last request said to the model."""
    return [str(each.content) for each in run.model.requests[-1].messages if each.role == "user"]


async def test_each_at_its_place(tmp_path: Path):
    """A word is said where it belongs, as a nudge that hooks may change, and none of those that are said once twice."""
    turns = [call("look", key="bad"), call("look", key="a"), call("look", key="b"), text("first"), text("last")]
    run = await run_with(tmp_path, turns)
    system = str(run.model.requests[0].messages[0].content)
    assert system.endswith("\n\nPatch.\n\nTools.")
    assert users(run) == ["Do it.", "Frame.", "Recover.", "Next: look", "Synthesize.", "Check."]
    assert [event.nudge for event in run.events("nudge-issued")] == [
        "task-framing", "error-recovery", "continuation", "produce", "quality-check",
    ]  # fmt: skip
    assert (run.result.output, run.result.terminated_by) == ("last", "end_turn")
    assert run.recording.header.agent.profile.guidance == WORDS  # type: ignore[union-attr]


async def test_without_a_profile(tmp_path: Path):
    """Nothing is said."""
    run = await run_with(tmp_path, [call("look", key="bad"), text("done")], profile=None, required_tools=())
    assert (users(run), run.events("nudge-issued")) == (["Do it."], [])


async def test_an_answer_in_the_last_turn_stands(tmp_path: Path):
    """There is no turn left in which to look at it."""
    run = await run_with(tmp_path, [text("done")], max_iterations=1, required_tools=())
    assert (run.result.output, run.result.success) == ("done", True)


async def test_a_check_that_a_hook_removed(tmp_path: Path):
    """The answer stands."""
    hide = lambda harness: harness.on("nudge.quality-check", lambda *_: SUPPRESS)  # noqa: E731
    run = await run_with(tmp_path, [text("done")], required_tools=(), compose=[hide])
    assert (run.result.output, run.result.success) == ("done", True)


async def test_a_check_beside_validators(tmp_path: Path):
    """They look at the answer that was given after it."""
    run = await run_with(
        tmp_path,
        [text("one"), text("two"), text("three")],
        required_tools=(),
        validators=[lambda answer: answer == "three"],
    )
    assert (run.result.output, [event.nudge for event in run.events("nudge-issued")][1:]) == (
        "three",
        ["quality-check", "output-rejected"],
    )


@pytest.mark.parametrize("tier", TIERS)
def test_the_texts_of_the_tiers(tier: Any):
    """Stand in the profile; none asks for another answer of its own accord, for that costs a request."""
    guidance = context_profile(tier).guidance
    assert guidance == BY_TIER.get(tier, Guidance())
    assert guidance.quality_check == ""


BELOW = Guidance(after_result="The task was: {task}", error_recovery="Again: {task}")
SAID = "The task was: Do it."


async def test_words_below_each_result(tmp_path: Path):
    """With the task in their place, also below those of the examples; a trace says them once a result, beside it."""
    examples = [
        Message(id=0, role="user", content="Find\n c."),
        Message(id=1, role="assistant", content="", tool_calls=(ToolCall(id="x", name="look", arguments={"key": "c"}),)),
        Message(id=2, role="tool", content="found c", tool_call_id="x"),
    ]  # fmt: skip
    turns = [call("look", key="a"), call("look", key="bad"), text("done")]
    profile = context_profile("mid", guidance=BELOW)
    run = await run_with(tmp_path, turns, profile=profile, required_tools=(), examples=examples)
    assert [each.content for each in run.model.requests[-1].messages if each.role == "tool"] == [
        "found c\n\nThe task was: Find c.", f"found a\n\n{SAID}", f"error: not there\n\n{SAID}",
    ]  # fmt: skip
    assert users(run)[-1] == "Again: Do it."
    referring = [each for each in run.events("message-added") if each.ref is not None and each.ref.call is not None]
    assert [(each.content, each.followed_by) for each in referring] == [(None, SAID)] * 2


async def test_words_below_a_result_that_is_shown_in_short(tmp_path: Path):
    """They stand below the preview."""

    @tool(read_only=True)
    def much() -> str:
        return "word " * 500

    profile = context_profile("mid", guidance=BELOW)
    run = await record(tmp_path, [call("much"), text("done")], much, profile=profile, compression={"budget": 300})
    told = str(run.model.requests[-1].messages[-1].content)
    assert told.endswith(f"\n\n{SAID}")
    assert len(told) < 600
    assert sent(run) == run.model.requests
    assert (await reproduce(run.recording)).identical


async def test_a_long_task_is_not_said_again_in_full(tmp_path: Path):
    """It would be in the thread as often as there are results."""
    profile = context_profile("mid", guidance=BELOW)
    run = await record(tmp_path, [call("look", key="a"), text("done")], look, task="long " * 1000, profile=profile)
    assert len(str(run.model.requests[-1].messages[-1].content)) < 500


DOUBTS = Guidance(
    no_call="Call.", repeated_task="You repeat.", unfounded_number="Whence {numbers}?", quality_check="Check."
)


@pytest.mark.parametrize(
    ("answers", "nudges"),
    [
        (["It is 1999.5.", "It is 4180."], [("unfounded-number", "Whence 1999.5?"), ("quality-check", "Check.")]),
        (["It is 1999.5.", "It is 1888.5.", "x"], [("unfounded-number", "Whence 1999.5?"), ("quality-check", "Check.")]),
        (["How high is the mount?", "high", "x"], [("repeated-task", "You repeat."), ("quality-check", "Check.")]),
        (["It is 4180.", "x"], [("quality-check", "Check.")]),
    ],
    ids=["a-number", "once-only", "the-task", "neither"],
)  # fmt: skip
async def test_an_answer_is_doubted_once(tmp_path: Path, answers: list[str], nudges: list[tuple[str, str]]):
    """For a number from nowhere, or because it only repeats the task; what the model then says stands."""
    turns = [call("look", key="4180"), *map(text, answers), text("last")]
    profile = context_profile("mid", guidance=DOUBTS)
    run = await run_with(tmp_path, turns, profile=profile, required_tools=(), task="How high is the mount? Say it.")
    assert [(event.nudge, event.text) for event in run.events("nudge-issued")] == nudges


async def test_a_doubt_that_a_hook_removed(tmp_path: Path):
    """The answer stands."""
    hide = lambda harness: harness.on("nudge.unfounded-number", lambda *_: SUPPRESS)  # noqa: E731
    profile = context_profile("mid", guidance=Guidance(unfounded_number="Whence?"))
    run = await run_with(tmp_path, [text("1999.5")], profile=profile, required_tools=(), compose=[hide])
    assert (run.result.output, run.result.terminated_by) == ("1999.5", "end_turn")


async def test_an_answer_before_any_call(tmp_path: Path):
    """Is asked about once where there are tools; a call that was made, whatever came of it, is one."""
    profile = context_profile("mid", guidance=Guidance(no_call="Call."))
    for number, (turns, nudges) in enumerate(
        [
            ([text("no"), text("still no")], ["no-call"]),
            ([text("no"), call("look", key="a"), text("yes")], ["no-call"]),
            ([call("look", key="bad"), text("no")], []),
        ]
    ):
        run = await run_with(tmp_path / str(number), turns, profile=profile, required_tools=())
        assert [event.nudge for event in run.events("nudge-issued")] == nudges
    run = await record(tmp_path, [text("no")], profile=profile)
    assert run.events("nudge-issued") == []
