"""What hooks did is in the recording, so a run with hooks is reproduced without their code."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from playhead import PlayheadError, load_recording
from playhead.compose import SUPPRESS, Harness, Recover, Resume, Skip, Stop, Terminate
from playhead.diagnose.integrity import check_trace
from playhead.kernel.state import Step, transition
from playhead.replay import reproduce
from playhead.trace.events import LlmResponded, ToolCallCompleted
from playhead.trace.types import Message, Rationale, Request, ToolCall
from tests.proving import sample
from tests.replay.random_agents import Outside, random_agent

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playhead.compose import Block, HookContext, PhaseContext

CASES: Final = sample(300, 50)


QUICK: Final = Message(id=10**6, role="user", content="And be quick.")
CHANGES: Final[dict[type, Callable[[Any], Any]]] = {
    str: lambda given: f"{given} (changed)",
    Message: lambda given: given.model_copy(update={"content": "changed"}),
    Step: lambda given: replace(given, content="changed"),
    ToolCall: lambda given: given.model_copy(update={"arguments": {**(given.arguments or {}), "more": 1}}),
    ToolCallCompleted: lambda given: given.model_copy(update={"ok": True, "result": ["changed"], "error": None}),
    LlmResponded: lambda given: given.model_copy(update={"text": f"{given.text} (changed)"}),
    Rationale: lambda given: given.model_copy(update={"why": "changed"}),
    Request: lambda given: replace(given, messages=(*given.messages, QUICK), parameters={"temperature": 1}),
    tuple: lambda given: given[:-1],
    dict: lambda given: {**given, "more": 1},
}
PHASE_ANSWERS: Final[dict[str, Any]] = {
    "stop": Stop("enough"),
    "terminate": Terminate("too much", switch="limit", terminated_by="limit"),
    "skip": Skip("not now"),
    "resume": Resume("Say more."),
}


def _decide(seed: int, place: str, **odds: float) -> str | None:
    """Decide at random, but the same way for the same place."""
    chance = random.Random(f"{seed} {place}").random()
    for answer, share in odds.items():
        chance -= share
        if chance < 0:
            return answer
    return None


def _random_block(seed: int) -> Block:
    """Return a block whose hooks change, remove, stop, skip, resume, recover and fail at random."""

    async def transform(payload: Any, context: HookContext) -> Any:
        place = f"{context.tag} {context.owner} {context.iteration} {getattr(context, 'call_id', '')}"
        done = _decide(seed, place, change=0.25, suppress=0.06, fail=0.05)
        if done == "fail":
            raise LookupError("no")
        if done == "suppress":
            return SUPPRESS
        return CHANGES.get(type(payload), lambda _: None)(payload) if done == "change" else None

    def phase_hook(context: PhaseContext) -> Any:
        place = f"{context.timing} {context.tag} {context.owner} {context.iteration}"
        said = _decide(seed, place, stop=0.02, terminate=0.02, skip=0.05, resume=0.1)
        return PHASE_ANSWERS.get(said or "")

    def error_hook(error: Exception, context: PhaseContext) -> Any:
        if context.state is not None and _decide(seed, f"error {context.owner} {context.iteration}", recover=0.7):
            return Recover(transition(context.state, meta={"recovered": True}), "try on")
        return None

    def block(harness: Harness) -> None:
        # A required hook of the caller's ends the caller too, at once: which of the calls beside have started by then
        # is a matter of time, and no reproduction can promise it.
        required = seed % 11 == 0
        harness.on("**", transform, required=required, inherit=not required)
        harness.before("*", phase_hook)
        harness.after("*", phase_hook)
        harness.on_error("*", error_hook)
        if seed % 3 == 0:
            harness.emit("message.user", "One more thing.")
            harness.emit("nudge.required-tools", "Hurry.")

    return block


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(CASES))
async def test_a_run_with_hooks_is_reproduced_without_them(seed: int, tmp_path: Path):
    """Whatever hooks changed, removed, stopped, skipped or resumed, every event comes out again from the file alone."""
    agent = random_agent(seed, Outside(), trace=tmp_path, compose=[_random_block(seed)])
    with suppress(PlayheadError):
        await agent.run("Do it.", run_id="run")
    path = tmp_path / "run.jsonl"
    assert check_trace(path).problems == ()
    recording = load_recording(path)
    assert recording.status == "closed"
    outcome = await reproduce(recording)
    assert outcome.divergences == ()
    assert outcome.identical
    with_code = await reproduce(recording, agent=agent)
    assert with_code.divergences == ()
