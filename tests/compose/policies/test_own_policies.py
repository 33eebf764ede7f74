"""Policies of a user's own, made with the public harness alone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, Overrides, tool
from playhead.compose import (
    Answer,
    CallContext,
    Harness,
    HookContext,
    Nudge,
    PhaseContext,
    Refuse,
    Stop,
    SwitchTo,
    Unmet,
)
from playhead.errors import NotReplayableError
from playhead.replay import replay, reproduce
from playhead.testing import ScriptedModel, call, text
from playhead.trace.events import AssumptionRecorded, DecisionEvaluated, RunCompleted
from tests.kernel.runs import make_agent, record_agent

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.types import ToolCall


@tool(read_only=True)
async def look(key: str) -> str:
    """Look a fact up."""
    return f"found {key}"


@dataclass
class Seen:
    """What one agent's run has called."""

    calls: list[str] = field(default_factory=list)


def house(harness: Harness) -> None:
    """Say something after each look, refuse secrets, want a source in the answer, and write it in capitals."""
    harness.declare("house", {"secret": "x"})
    seen = harness.per_run(Seen)

    def admit(asked: ToolCall, context: CallContext) -> Refuse | None:
        seen(context).calls.append(str((asked.arguments or {}).get("key")))
        return Refuse("x is a secret") if seen(context).calls[-1] == "x" else None

    def count(context: PhaseContext) -> Nudge | None:
        looked = seen(context).calls
        return Nudge(f"Looked up: {', '.join(looked)}.", "hook", "warn") if looked else None

    def sourced(context: PhaseContext) -> Nudge | Answer | None:
        output = str(context.state.output)
        if not context.answered:
            return None
        if "source" not in output:
            return Nudge("Name the source.", otherwise=Stop("no source", terminated_by="no_source"))
        return Answer(output.upper())

    harness.on("tool.call", admit)
    harness.before("think", count)
    harness.before("complete", sourced)


async def test_nudge_refuse_and_answer(tmp_path: Path):
    """`Nudge` reaches the model, `Refuse` answers a call instead of its tool, and `Answer` replaces the output.

    Without the policy's code its recorded outcomes are served at the same places; what it would say of a new answer is not known.
    """
    turns = [call("look", key="a"), call("look", key="x"), text("42"), text("42, source: look")]
    run = await record_agent(make_agent(tmp_path, turns, look, compose=[house]), tmp_path)
    assert (run.result.output, run.result.terminated_by, run.result.iterations) == ("42, SOURCE: LOOK", "end_turn", 4)
    told = [(event.text, event.severity) for event in run.events("nudge-issued")]
    assert told == [
        ("Looked up: a.", "warn"), ("Looked up: a, x.", "warn"), ("Name the source.", "info"), ("Looked up: a, x.", "warn"),
    ]  # fmt: skip
    errors = [(each.error.type, each.error.message) for each in run.events("tool-call-completed") if each.error]
    assert errors == [("Refused", "x is a secret")]
    assert [event.action for event in run.events("hook-fired")] == ["nudge", "nudge", "nudge", "nudge", "answer"]
    blocks = [each for each in run.recording.header.agent.hooks if each.role == "block"]
    assert [(each.name, each.settings) for each in blocks] == [("house", {"secret": "x"})]
    again = await reproduce(tmp_path / "run.jsonl")
    assert again.identical, again.divergences
    other = Overrides(model=ScriptedModel([*turns[:2], text("43")]))
    with pytest.raises(NotReplayableError, match=r"house\.admit, house\.count, house\.sourced\. Give agent="):
        await replay(tmp_path / "run.jsonl", other, trace=None)


async def test_two_runs_at_once_share_nothing():
    """`per_run` state belongs to one run: two runs of one agent do not see each other's calls."""
    both = asyncio.Barrier(2)

    @tool(read_only=True)
    async def meet(key: str) -> str:
        """Wait for the other run."""
        await both.wait()
        return key

    told: list[tuple[str, str]] = []

    def heard(harness: Harness) -> None:
        house(harness)
        harness.tap("nudge.hook", lambda words, context: told.append((context.run_id, words)))

    def answered(request: Any) -> Any:
        turn, task = sum(each.role == "tool" for each in request.messages), str(request.messages[1].content)
        return text("source: me") if turn == 2 else call("meet", key=f"{task}{turn}")

    agent = Agent(ScriptedModel([answered] * 6), tools=[meet], compose=[heard], trace=None)
    first, second = await asyncio.gather(agent.run("a"), agent.run("b"))
    for result, task in ((first, "a"), (second, "b")):
        assert [words for run_id, words in told if run_id == result.run_id] == [
            f"Looked up: {task}0.", f"Looked up: {task}0, {task}1.",
        ]  # fmt: skip


async def test_switch_to(tmp_path: Path):
    """Another strategy continues with a summary and the reason, and the run is reproduced without the hook."""

    def other_way(harness: Harness) -> None:
        def look_at(context: PhaseContext) -> SwitchTo | None:
            is_late = context.iteration == 2 and context.strategy == "reactive"
            return SwitchTo("reflexion", "Two turns are enough.") if is_late else None

        harness.before("think", look_at)

    good = text('{"issues": [], "suggestion": "", "score": 9, "satisfied": true}')
    turns = [call("look", key="a"), call("look", key="b"), text("42"), good]
    run = await record_agent(make_agent(tmp_path, turns, look, compose=[other_way]), tmp_path)
    assert (run.result.output, run.result.strategy_used) == ("42", "reflexion")
    (switched,) = run.events("strategy-switched")
    told = (switched.from_strategy, switched.to_strategy, switched.rationale)
    assert told == ("reactive", "reflexion", "Two turns are enough.")
    assert "Two turns are enough." in str(run.model.requests[2].messages[-1].content)
    again = await reproduce(tmp_path / "run.jsonl")
    assert again.identical, again.divergences


async def test_a_question_a_fact_and_a_decision(tmp_path: Path):
    """A hook's model request, fact and time are recorded and served to the same code; reproduction without the code is refused."""
    asked: list[str] = []
    times: list[int] = []

    def boss() -> str:
        asked.append("who")
        return "the boss"

    def careful(harness: Harness) -> None:
        async def check(context: PhaseContext) -> None:
            said = await context.model.ask("Is it risky?")
            who = await context.facts.ask("who", boss)
            times.append(await context.facts.now_us("when"))
            context.record(DecisionEvaluated(decision=f"{who}: {said}"))
            context.record(AssumptionRecorded(request=0, assumption="it is risky"))

        harness.before("complete", check)

    agent = make_agent(tmp_path, [text("42"), text("no")], compose=[careful])
    run = await record_agent(agent, tmp_path)
    assert (run.result.output, run.result.terminated_by, asked) == ("42", "end_turn", ["who"])
    (decided,) = run.events("decision-evaluated")
    assert decided.decision == "the boss: no"
    assert [event.assumption for event in run.events("assumption-recorded")] == ["it is risky"]
    assert [event.purpose for event in run.events("llm-requested")] == ["think", "hook"]
    assert run.result.usage.total_tokens == sum(each.usage.total_tokens for each in run.events("llm-responded"))
    with pytest.raises(NotReplayableError, match="a hook of root asked the model when run was recorded"):
        await reproduce(tmp_path / "run.jsonl")
    other = Overrides(model=ScriptedModel([text("43"), text("yes")]))
    replayed = await replay(tmp_path / "run.jsonl", other, agent=agent, trace=None)
    assert (replayed.run.output, asked, times[1:]) == ("43", ["who"], times[:1])


async def test_answers_a_hook_cannot_give(tmp_path: Path):
    """An answer at the wrong place, and an event that only the kernel records, is the hook's failure; the run continues."""

    def wrong(harness: Harness) -> None:
        harness.before("act", lambda _: Nudge("now?"), name="early")
        harness.before("think", lambda _: SwitchTo("nowhere"), name="nowhere")
        harness.before("complete", lambda context: context.record(RunCompleted.model_construct()), name="forger")
        harness.before("complete", lambda _: Nudge(5), name="number")  # type: ignore[arg-type]

    run = await record_agent(make_agent(tmp_path, [call("look", key="a"), text("42")], look, compose=[wrong]), tmp_path)
    assert run.result.output == "42"
    failed = {event.hook: event.error for event in run.events("hook-failed")}
    assert failed["early"] == "it returned Nudge, which only a hook before think or complete may do"
    assert failed["nowhere"].startswith("it returned SwitchTo: there is no strategy 'nowhere'")
    assert failed["forger"] == (
        "UsageError: a hook records a AssumptionRecorded, DecisionEvaluated, GuardrailViolation, VerifierVerdict; it is a RunCompleted"
    )
    assert failed["number"] == "it returned Nudge with a reason that is no text"


async def test_unmet(tmp_path: Path):
    """What a block of your own still requires keeps `final-answer` back, as `require_tools` does."""

    def twice(harness: Harness) -> None:
        def left(context: HookContext) -> list[Unmet]:
            done = sum(step.type == "action" for step in context.state.steps) if context.state else 0
            return [Unmet("look twice")] if done < 2 else []

        harness.unmet(left)

    turns = [call("look", key="a"), call("final-answer", output="early"), call("look", key="b"), text("42")]
    agent = make_agent(tmp_path, turns, look, compose=[twice], meta_tools=("final-answer",))
    run = await record_agent(agent, tmp_path)
    (refused,) = [each for each in run.events("tool-call-completed") if each.error]
    assert refused.error.message == "final-answer is not available yet: look twice first"
    assert run.result.output == "42"
