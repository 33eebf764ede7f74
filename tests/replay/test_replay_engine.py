"""A replay is a run of its own: recorded, told from the original, and stopped rather than wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, Context, Execution, LiteLLM, PlayheadError, load_recording
from playhead.errors import NotReplayableError, UsageError
from playhead.replay import replay, reproduce
from playhead.testing import ScriptedModel, call, error, text
from playhead.trace.events import ReplayServed
from playhead.trace.types import Completion, Request
from tests.kernel.runs import make_agent
from tests.own_strategies import register
from tests.replay.small_runs import SCRIPT, lookup, recorded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.diagnose.recording import OwnerRecording, Recording
    from playhead.trace.types import Prices


async def test_a_replay_that_changes_nothing_is_the_same_run(tmp_path: Path) -> None:
    """Every call is served at its own place, the result is `same`, and the trace, which can be heard, says whose replay it is."""
    recording, heard = await recorded(tmp_path), list[Any]()
    result = await replay(recording, {"model": ScriptedModel(SCRIPT)}, trace=tmp_path, on_record=heard.append)
    assert tuple(heard) == result.recording.records
    assert (result.verdict, result.grounded, dict(result.rungs)) == ("same", 1.0, {"exact": 2})
    assert (result.stopped, result.notes, result.run.output) == (None, (), "done")
    assert result.diff.identical
    header = result.recording.header
    assert (header.replay_of, header.replay_mode, header.overrides) == (
        recording.run_id,
        "replay",
        {"model": "scripted/model"},
    )
    served = [each.event for each in result.recording.records if isinstance(each.event, ReplayServed)]
    answers = [call.completed for call in recording.root.calls.values()]
    assert [(each.rung, recording.records[each.source_seq or 0].event) for each in served] == [
        ("exact", answer) for answer in answers
    ]


async def test_a_failing_model_ends_the_replay_and_not_the_caller(tmp_path: Path) -> None:
    """What the live model's failure left is the result; the verdict is that nothing can be said."""
    recording = await recorded(tmp_path)
    result = await replay(recording, {"model": ScriptedModel([SCRIPT[0], error("gone")])}, trace=tmp_path)
    assert (result.stopped, result.verdict) == ("llm_error: gone", "inconclusive")
    assert (result.run.status, result.run.terminated_by) == ("failed", "llm_error")


async def test_a_damaged_recording_is_refused_and_a_cut_one_is_not(tmp_path: Path) -> None:
    """Damage proves nothing; a recording that was cut off is replayed, and the verdict is that it cannot be told."""
    recording = await recorded(tmp_path)
    lines = recording.path.read_bytes().splitlines(keepends=True)
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(b"".join(lines[:-1]))
    result = await replay(cut, {"model": ScriptedModel(SCRIPT)}, trace=None)
    assert (result.verdict, result.stopped, result.run.output) == ("inconclusive", None, "done")
    assert result.notes[0] == "the recording is open: how its run would have ended is not known"
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_bytes(b"".join([*lines[:3], *lines[4:]]))
    with pytest.raises(NotReplayableError, match="is not what was written"):
        await replay(damaged, {"model": ScriptedModel(SCRIPT)}, trace=None)


@pytest.mark.slow
async def test_every_place_where_a_recording_can_be_cut(tmp_path: Path) -> None:
    """A replay of a run that was killed goes as far as there are answers, and stops loudly."""
    child = Agent(
        ScriptedModel([call("lookup", key="c"), text("found")]),
        name="child",
        tools=[lookup],
        context=Context(meta_tools=()),
    )
    turns = [call("lookup", key="a"), call("child", task="t"), text("done")]
    script = [turns[0], turns[1], call("lookup", key="c"), text("found"), turns[2]]
    recording = await recorded(tmp_path, turns, lookup, child)
    lines = recording.path.read_bytes().splitlines(keepends=True)
    for kept in range(1, len(lines)):
        path = tmp_path / f"cut{kept}.jsonl"
        path.write_bytes(b"".join(lines[:kept]))
        if kept == 1:
            with pytest.raises(NotReplayableError, match="ends before it says which tools"):
                await replay(path, {"model": ScriptedModel(script)}, trace=None)
            continue
        result = await replay(path, {"model": ScriptedModel(script)}, trace=None)
        assert result.verdict == "inconclusive"
        assert (result.stopped is None) == (result.run.output == "done"), result.stopped


async def test_facts_answer_as_they_did(tmp_path: Path) -> None:
    """What steers a strategy besides model and tools is served in its order, and once more than recorded is loud."""
    asked: list[str] = []
    times = [2]

    def luck() -> int:
        asked.append("luck")
        return len(asked)

    async def lucky(state: Any, session: Any) -> Any:
        found = [await session.facts.ask("luck", luck) for _ in range(times[0])]
        session.terminate("end_turn", found)
        return state

    register("lucky", lucky)
    agent = make_agent(tmp_path, [], strategy="lucky")
    await agent.run("Do it.", run_id="run")
    result = await replay(tmp_path / "run.jsonl", {"model": ScriptedModel([])}, trace=None)
    assert (result.run.output, result.verdict, len(asked)) == ([1, 2], "same", 2)
    times[0] = 3
    result = await replay(tmp_path / "run.jsonl", {"model": ScriptedModel([])}, on_missing="lenient", trace=None)
    assert result.stopped is not None
    assert "root asks for the fact 'luck', which was not recorded for it" in result.stopped
    assert len(asked) == 2


async def test_an_agent_below_whose_model_fails_proves_nothing(tmp_path: Path):
    """The failed call is an answer like any other to the caller, but the verdict knows that it is none of the agent's."""
    child = Agent(ScriptedModel([text("found")], name="scripted/child"), name="child", trace=None)
    turns = [call("child", task="Look."), text("done")]
    agent = Agent(
        ScriptedModel(turns, name="scripted/root"), tools=[child], trace=tmp_path, context=Context(rationale=False)
    )
    await agent.run("Go.", run_id="run")
    broken = {"agents": {"child": {"model": ScriptedModel([error("boom")])}}, "model": ScriptedModel(turns)}
    outcome = await replay(tmp_path / "run.jsonl", broken, trace=None)
    assert outcome.verdict == "inconclusive"
    assert any("the model of root/child@0.0 failed" in note for note in outcome.notes)


@pytest.mark.slow
async def test_a_model_that_was_served_elsewhere_is_not_asked_at_its_usual_address(tmp_path: Path, monkeypatch: Any):
    """What was said to a server of one's own is not sent to the provider because an option was forgotten."""
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key-of-anybody")
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    agent = Agent(
        LiteLLM("openai/tiny", api_base="http://user:secret@127.0.0.1:9/v1"),
        trace=tmp_path,
        execution=Execution(retries=0),
    )
    with pytest.raises(PlayheadError):
        await agent.run("Go.", run_id="run")
    recording = load_recording(tmp_path / "run.jsonl")
    assert recording.header.agent.address == "http://127.0.0.1:9/v1"
    with pytest.raises(UsageError, match=r"was reached at http://127\.0\.0\.1:9/v1"):
        await replay(recording, {"system_prompt": "Be brief."}, trace=None)
    elsewhere = await replay(recording, api_base="http://127.0.0.1:10/v1", trace=None)
    assert [change.name for change in elsewhere.diff.inputs] == ["address"]


# --- recordings of real models ----------------------------------------------------------------------------------------


SAMPLES = sorted((Path(__file__).parents[2] / "traces").glob("*.jsonl"))


class Echo:
    """Says again what was recorded, to each agent by its task."""

    secrets: Mapping[str, str] = {}

    def __init__(self, recording: Recording) -> None:
        self.name = recording.header.agent.model
        self._owners: dict[str, OwnerRecording] = {}
        for owner in recording.owners.values():
            if owner.started is not None:
                self._owners.setdefault(str(owner.started.task), owner)

    async def prices(self) -> Prices | None:
        """Not know."""
        return None

    async def complete(self, request: Request) -> Completion:
        """Say it again."""
        said = self._owners[self._task(request)].responses[request.number]
        return Completion(**{name: getattr(said, name) for name in Completion.__slots__})

    def _task(self, request: Request) -> str:
        """Return whose task a request is about: a message is the task, or holds it, as a critic's does."""
        told = [str(each.content) for each in request.messages]
        own = [each for each in told if each in self._owners]
        return own[0] if own else max((task for task in self._owners if any(task in each for each in told)), key=len)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
async def test_a_model_that_repeats_itself_changes_nothing(path: Path) -> None:
    """Also with approvals that were denied, calls that failed, agents below, and answers that were cut."""
    recording = load_recording(path)
    result = await replay(recording, {"model": Echo(recording)}, trace=None)
    assert result.stopped is None
    assert set(result.rungs) <= {"exact"}
    assert result.diff.identical
    assert result.verdict == "same"
    assert (await reproduce(result.recording)).identical
