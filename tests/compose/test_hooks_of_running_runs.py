from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from playhead import load_recording
from playhead.testing import ScriptedModel, text
from tests.kernel.runs import make_agent

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.compose import Harness


def lambda_model() -> ScriptedModel:
    """Return a model that answers for ever."""
    return ScriptedModel([lambda request: text(f"{request.messages[-1].content}!")] * 50)


async def test_a_block_is_undone_in_a_running_run(tmp_path: Path):
    """Undoing a block removes its hooks from running runs, and from the header of the next run."""
    seen: list[str] = []
    agent = make_agent(tmp_path, lambda_model())
    undo = agent.compose(
        lambda harness: harness.tap(
            ["lifecycle.*", "prompt.*"], lambda _, context: seen.append(context.tag), name="tap"
        )
    )
    agent.compose(lambda harness: harness.before("bootstrap", lambda _: undo(), name="undo"))
    await agent.run("Do it.", run_id="first")
    assert seen == ["lifecycle.started"]
    await agent.run("Do it.", run_id="second")
    first, second = (load_recording(tmp_path / f"{name}.jsonl").header.agent.hooks for name in ("first", "second"))
    assert ([each.name for each in first], [each.name for each in second]) == (["tap", "tap", "undo"], ["undo"])


async def test_concurrent_runs_share_nothing(tmp_path: Path):
    """Each context belongs to its own run, and a failure is recorded in the trace of its run."""
    seen: dict[str, set[Any]] = {}

    async def look(payload: Any, context: Any) -> None:
        await anyio.sleep(0.001)
        seen.setdefault(context.run_id, set()).add(
            str(context.state.thread.messages[-1:]) if context.tag == "answer.final" else ""
        )
        if context.tag == "answer.final" and context.run_id == "run-3":
            raise ValueError(payload)

    def block(harness: Harness) -> None:
        harness.tap("**", look, name="look")
        harness.on("answer.final", lambda answer, context: f"{context.run_id}: {answer}")

    agent = make_agent(tmp_path, lambda_model(), compose=[block])
    results: dict[str, Any] = {}

    async def one(name: str) -> None:
        results[name] = await agent.run(name, run_id=name)

    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(one, f"run-{number}")
    assert {name: result.output for name, result in results.items()} == {
        f"run-{number}": f"run-{number}: run-{number}!" for number in range(6)
    }
    for name in results:
        records = load_recording(tmp_path / f"{name}.jsonl").records
        failed = [getattr(record.event, "where", None) for record in records if record.kind == "hook-failed"]
        assert failed == (["answer.final"] if name == "run-3" else [])
        assert all(name in each or not each for each in seen[name])
