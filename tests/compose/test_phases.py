from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead.compose import PHASES, Harness, Resume, Skip, Stop, Terminate
from playhead.testing import call, calls, text
from tests.compose.hooked import contents, fired, open_calls, run_with
from tests.kernel.runs import data, ended, ending

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.compose import Block
    from playhead.compose.contexts import PhaseContext

LOOP = ("think", "act", "observe")
AFTER_LOOP = ("verify", "memory-flush", "cost-track", "audit", "complete")
TIMINGS = ("before", "after")
SCRIPT = [call("lookup", key="a"), calls(call("lookup", key="b"), call("save", value="c")), text("done")]
"""Turn 1 is where hooks steer: one result is there, two calls are asked for."""


def at(timing: str, phase: str, answer: Any, *, iteration: int | None = 1) -> Block:
    """Return a block that answers at a phase, in this turn if the phase is one of the loop."""

    def hook(context: PhaseContext) -> Any:
        return answer if context.phase not in LOOP or context.iteration == iteration else None

    return lambda harness: getattr(harness, timing)(phase, hook, name="hook")


@pytest.mark.parametrize("timing", TIMINGS)
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("answer", [Stop("enough"), Terminate("broken")], ids=["stop", "terminate"])
async def test_a_hook_ends_the_run(tmp_path: Path, phase: str, timing: str, answer: Any):
    """At every phase: with the best output, recorded once, and nothing starts after it. Terminate makes it a failed run."""
    run = await run_with(tmp_path, SCRIPT, at(timing, phase, answer))
    found = [content for kind, _, content in run.steps() if kind == "observation"]
    status, by, error = ("done", "hook_stop", None) if type(answer) is Stop else ("failed", "hook_terminate", "broken")
    output = "done" if phase in AFTER_LOOP else found[-1] if found else None
    expected = ended(status, by, output, run.result.iterations, terminated_source="hook:hook", error=error)
    assert (ending(run), run.result.terminated_because, run.result.success) == (expected, answer.reason, False)
    decided = [(each["phase"], each["timing"], each["action"], each["terminated_by"]) for each in fired(run)]
    assert decided == [(phase, timing, type(answer).__name__.lower(), by)]
    kinds = run.kinds()
    after = kinds[kinds.index("hook-fired") + 1 :]
    assert set(after) <= {"message-added", "kernel-state-snapshot", "run-completed"}
    assert kinds.count("tool-call-started") == kinds.count("tool-call-completed")
    asked = 0 if phase in PHASES[:4] else 1 if (phase, timing) == ("think", "before") else 2 if phase in LOOP else 3
    assert len(run.model.requests) == asked


REFUSED, RAN = "refused", None


@pytest.mark.parametrize(
    ("phase", "timing", "ends", "told", "turns"),
    [
        ("think", "before", [RAN, RAN], 0, 4),
        ("think", "after", [REFUSED, REFUSED], 2, 3),
        ("act", "before", [REFUSED, REFUSED], 2, 3),
        ("act", "after", [RAN, RAN], 2, 3),
        ("observe", "before", [RAN, RAN], 2, 3),
        ("observe", "after", [RAN, RAN], 0, 3),
    ],
)
async def test_skip_in_the_loop(tmp_path: Path, phase: str, timing: str, ends: Any, told: int, turns: int):
    """The rest of the turn is skipped, the loop continues, and every native call has exactly one answer."""
    run = await run_with(tmp_path, [*SCRIPT[:2], text("done")], at(timing, phase, Skip("not now")))
    assert ending(run) == ended("done", "end_turn", "done", turns)
    assert [event.ended for event in run.events("tool-call-completed")] == [RAN, *ends]
    assert fired(run) == [{"hook": "hook", "phase": phase, "timing": timing, "action": "skip", "reason": "not now"}]
    skipped = [content for _, content in contents(run.model.requests[-1]) if "skipped: not now" in str(content)]
    assert (len(skipped), open_calls(run)) == (told, [])
    assert len([step for step in run.steps() if step[0] == "observation"]) == 1 + (0 if told else 2)


async def test_the_first_answer_wins(tmp_path: Path):
    """Hooks run in order of registration; the first answer takes effect and is recorded, and later hooks do not run."""
    asked: list[str] = []

    def block(harness: Harness) -> None:
        def note(name: str, answer: Any) -> Any:
            def hook(_: Any) -> Any:
                asked.append(name)
                return answer

            return hook

        for name, answer in [("first", None), ("second", Stop("2")), ("third", Terminate("3"))]:
            harness.before("act", note(name, answer), name=name)
        harness.after("act", lambda _: Terminate("4"), name="fourth")
        harness.before("verify", lambda _: Terminate("5"), name="fifth")
        harness.after("complete", lambda _: Terminate("6"), name="sixth")

    run = await run_with(tmp_path, SCRIPT, block)
    assert asked == ["first", "second"]
    assert (run.result.terminated_source, run.result.terminated_because) == ("hook:second", "2")
    assert [each["hook"] for each in fired(run)] == ["second"]


async def test_every_phase_comes_in_its_order(tmp_path: Path):
    """Once a run, and those of the loop once a turn, each before and after."""
    seen: list[tuple[str, str, int | None]] = []

    def block(harness: Harness) -> None:
        for timing in TIMINGS:
            getattr(harness, timing)(
                "*", lambda context: seen.append((context.timing, context.phase, context.iteration))
            )

    await run_with(tmp_path, [call("lookup", key="a"), text("done")], block)
    turns = [(phase, 0) for phase in LOOP] + [("think", 1)]
    places = [(phase, None) for phase in PHASES[:4]] + turns + [(phase, 1) for phase in AFTER_LOOP]
    assert seen == [(timing, phase, iteration) for phase, iteration in places for timing in TIMINGS]


# --- going on --------------------------------------------------------------------------------------------------------


def not_yet(*words: str) -> Block:
    """Return a block that lets an answer stand only when it has one of these words."""
    return lambda harness: harness.before(
        "complete",
        lambda context: None if any(word in str(context.state.output) for word in words) else Resume("Cite it."),
        name="hook",
    )


async def test_resume(tmp_path: Path):
    """The loop continues with the reason as a message, and the rejected answer is not the output."""
    run = await run_with(tmp_path, [text("draft"), call("lookup", key="a"), text("cited")], not_yet("cited"))
    assert ending(run) == ended("done", "end_turn", "cited", 3)
    assert contents(run.model.requests[1])[-2:] == [("assistant", "draft"), ("user", "Cite it.")]
    assert fired(run) == [
        {"hook": "hook", "phase": "complete", "timing": "before", "action": "resume", "reason": "Cite it."}
    ]
    assert [(event.nudge, event.text) for event in run.events("nudge-issued")] == [("resume", "Cite it.")]
    assert [event.output for event in run.events("final-answer")] == ["cited"]


@pytest.mark.parametrize("limit", [1, 4])
async def test_resume_is_bounded(tmp_path: Path, limit: int):
    """A hook that is never content ends at the limit of turns."""
    run = await run_with(tmp_path, [text("draft")] * 9, not_yet("never"), max_iterations=limit)
    assert ending(run) == ended("done", "max_iterations", None, limit)
    assert len(run.model.requests) == len(fired(run)) == limit


@pytest.mark.parametrize("second", ["final-answer", "lookup"])
async def test_resume_leaves_no_call_open(tmp_path: Path, second: str):
    """Each call of the turn with the answer has one result in the thread when the model gets the next request."""
    answer = call("final-answer", output="draft")
    other = call("final-answer", output="too late") if second == "final-answer" else call("lookup", key="b")
    turns = [call("lookup", key="a"), calls(answer, other), text("cited")]
    run = await run_with(tmp_path, turns, not_yet("cited"), meta_tools=("final-answer",))
    assert ending(run)["output"] == "cited"
    assert open_calls(run) == []
    assert [data(event).get("ended") for event in run.events("tool-call-completed")][1:] == [
        None, "refused" if second == "final-answer" else None,
    ]  # fmt: skip


@pytest.mark.parametrize("ends", [Stop("limit"), Terminate("limit")])
async def test_resume_does_not_undo_another_end(tmp_path: Path, ends: Any):
    """Only the model's own answer can be rejected; an end by a hook or a limit is final."""

    def block(harness: Harness) -> None:
        harness.after("act", lambda _: ends, name="switch")
        not_yet("never")(harness)

    run = await run_with(tmp_path, SCRIPT, block)
    assert (run.result.terminated_source, [each["hook"] for each in fired(run)]) == ("hook:switch", ["switch"])
    limited = await run_with(tmp_path / "limit", SCRIPT, not_yet("never"), max_iterations=1)
    assert (ending(limited), fired(limited)) == (ended("done", "max_iterations", "found a", 1), [])
