from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead.compose import PHASES, Harness, runtime
from tests.compose.hooked import EMITTED, account, failures
from tests.compose.hostile import HOSTILE, PLACES, nap, placed, run_all, where
from tests.kernel.runs import ending
from tests.proving import sample

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Run async fixtures of the module on asyncio."""
    return "asyncio"


@pytest.fixture(scope="module")
async def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what happens without hooks."""
    return account(await run_all(tmp_path_factory.mktemp("plain")))


REQUIRED: dict[str, tuple[Any, dict[str, Any]]] = {
    name: HOSTILE[name]
    for name in ("error", "exit", "cancelled", "async error", "async hang", "async late", "too many")
}


@pytest.mark.parametrize(
    ("place", "hostile"),
    [
        *((place, hostile) for place in sample(PLACES, PLACES[::4]) for hostile in ("error", "async hang")),
        *((place, hostile) for place in ("on tool.result", "tap answer.final", "before act") for hostile in REQUIRED),
    ],
)
async def test_a_required_hook_that_fails_stops_the_run(tmp_path: Path, place: str, hostile: str):
    """It ends as failed, nothing leaves as its output, no model and no tool is asked after it, and the trace is whole."""
    hook, options = REQUIRED[hostile]
    run = await run_all(tmp_path, placed(place, hook, required=True, **options))
    end = ending(run)
    assert {name: end[name] for name in ("status", "terminated_by", "terminated_source", "output")} == {
        "status": "failed", "terminated_by": "hook_failed", "terminated_source": "hook:hostile", "output": None,
    }  # fmt: skip
    assert run.result.error is not None
    assert run.result.error.startswith(f"the required hook hostile failed at {where(place)}: ")
    assert (run.error, run.result.success) == (None, False)
    kinds = run.kinds()
    after = kinds[kinds.index("hook-failed") :]
    assert not {"llm-requested", "tool-call-started", "final-answer"} & set(after)
    assert kinds.count("tool-call-started") == kinds.count("tool-call-completed")
    assert "done" not in str(run.result.model_dump(exclude={"run_id", "trace_path"}))


@pytest.mark.parametrize("tag", [tag for tag in EMITTED if not tag.startswith(("lifecycle.", "answer."))])
async def test_a_required_transform_whose_answer_is_no_use(tmp_path: Path, tag: str):
    """What cannot be used is a failure, too: what had to be changed does not pass as it was."""
    run = await run_all(tmp_path, placed(f"on {tag}", lambda *_: 5, required=True))
    assert (run.result.terminated_by, run.result.output) == ("hook_failed", None)


@pytest.mark.parametrize("place", [f"{timing} {phase}" for timing in ("before", "after") for phase in PHASES])
async def test_a_required_phase_hook_whose_answer_means_nothing(tmp_path: Path, place: str):
    """The same at every phase."""
    run = await run_all(tmp_path, placed(place, lambda _: "stop", required=True))
    assert (run.result.terminated_by, run.result.output) == ("hook_failed", None)


async def test_a_required_hook_that_is_slow_has_looked(tmp_path: Path, plain: Any, monkeypatch: pytest.MonkeyPatch):
    """Slow is no failure: its answer counts, and the run goes on."""
    monkeypatch.setattr(runtime, "SLOW_S", 0.0005)
    run = await run_all(tmp_path, placed("tap answer.final", nap, required=True))
    assert (run.result.output, failures(run)) == ("done", [("hostile", "answer.final")])
    assert account(run) == plain


@pytest.mark.parametrize("slow", ["sync", "async"])
async def test_the_slow_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: str):
    """Who is reported is who held up the run, not who came after; an asynchronous hook holds up nobody."""
    monkeypatch.setattr(runtime, "SLOW_S", 0.01)

    async def wait(*_: Any) -> None:
        await anyio.sleep(0.02)

    def block(harness: Harness) -> None:
        harness.tap("answer.final", lambda *_: None, name="first")
        harness.tap("answer.final", wait if slow == "async" else lambda *_: time.sleep(0.02), name="slow")
        harness.tap("answer.final", lambda *_: time.sleep(0.001), name="third")

    run = await run_all(tmp_path, block)
    assert failures(run) == ([] if slow == "async" else [("slow", "answer.final")])
