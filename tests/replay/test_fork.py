"""A fork leaves everything before its turn as it was, and is a replay from there on."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from playhead import load_recording
from playhead.errors import NotReplayableError, PlayheadError, UsageError
from playhead.replay import replay, reproduce
from playhead.replay.divergence import divergences_of
from playhead.replay.reproduction import Follower
from playhead.replay.steered import Races
from playhead.testing import ScriptedModel, text
from playhead.trace.events import LlmRequested, MessageAdded
from tests.cli.command_line import playhead
from tests.kernel.runs import make_agent
from tests.proving import sample
from tests.replay import small_runs
from tests.replay.random_agents import Outside, random_agent
from tests.replay.small_runs import SCRIPT, lookup
from tests.replay.test_replay_canaries import POLICIES, Wild, agents_below, needs_code

if TYPE_CHECKING:
    from playhead.replay import Recording, ReplayResult

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.jsonl"))
SEEDS = range(sample(30, 6))


async def recorded(folder: Path, *given: Any, **options: Any) -> Recording:
    """Record a run that can be forked."""
    return load_recording((await small_runs.recorded(folder, *given, **options)).path)


def turns(recording: Recording) -> list[int]:
    """Return the turns of the root."""
    found = {each.iteration for each in recording.records if each.owner == "root"}
    return sorted(each for each in found if each is not None)


def places() -> list[Any]:
    """Return each golden recording with each of its turns."""
    return [pytest.param(path, at, id=f"{path.stem}-{at}") for path in GOLDEN for at in turns(load_recording(path))]


def follow(recording: Recording, until: float = float("inf")) -> Follower:
    """Return what compares a fork with the recording; `until` is the first `seq` that it does not compare."""
    records = tuple(each for each in recording.records if each.seq < until)
    return Follower(dataclasses.replace(recording, records=records), Races(recording), open_ended=until < float("inf"))


def before(recording: Recording, at: int) -> int:
    """Return the `seq` of the first event of a turn of the root."""
    return next(each.seq for each in recording.records if each.owner == "root" and each.iteration == at)


def asked(result: ReplayResult, at: int) -> tuple[LlmRequested, list[str]]:
    """Return the root's first request of a turn, and the texts of its messages."""
    events = [each.event for each in result.recording.records if each.owner == "root" and each.iteration == at]
    request = next(each for each in events if isinstance(each, LlmRequested))
    added = {each.event.id: each.event for each in result.recording.records if isinstance(each.event, MessageAdded)}
    ids = [number for first, last in request.messages for number in range(first, last + 1)]
    return request, [str(added[number].content) for number in ids]


@pytest.mark.parametrize(("path", "at"), places())
async def test_with_the_recorded_model_every_event_is_the_same(path: Path, at: int) -> None:
    """A fork of a golden recording at any turn, with the recorded model and no change, reproduces it event by event."""
    recording = load_recording(path)
    same = follow(recording)
    result = await recording.fork(at, model="recorded", trace=None, on_record=same)
    assert (divergences_of(same.comparison, cut_short=False), same.error) == ((), None)
    assert result.diff.identical
    header = result.recording.header
    assert (header.replay_of, header.replay_mode, header.overrides) == (
        path.stem,
        "fork",
        {"model": "recorded", "at": at},
    )


async def test_the_changes_hold_from_the_turn_on(tmp_path: Path) -> None:
    """The first request that is not frozen has the new prompt, parameters, model and texts; the trace says all of them."""
    recording = await recorded(tmp_path, system_prompt="Be exact.")
    model = ScriptedModel([text("so be it")])
    result = await recording.fork(
        1, model=model, system_prompt="Be brief.", temperature=0.5, edit={3: "edited"}, trace=tmp_path
    )
    first, before_it = asked(result, 0)
    second, after = asked(result, 1)
    assert (first.parameters, first.model) == ({}, "scripted/model")
    assert (second.parameters, second.model) == ({"temperature": 0.5}, model.name)
    assert before_it[0].startswith("Be exact.")
    assert (after[0].startswith("Be brief."), after[-1]) == (True, "edited")
    assert [message.content for message in model.requests[0].messages][-1] == "edited"
    assert (result.run.output, result.verdict, len(model.requests), result.notes) == ("so be it", "changed", 1, ())
    assert result.recording.header.overrides["edit"] == {"3": "edited"}


async def test_another_answer_of_the_model_at_the_turn(tmp_path: Path) -> None:
    """The model is not asked at the turn: the caller's answer is its answer; after it, the model is live."""
    recording = await recorded(tmp_path)
    model = ScriptedModel([text("then this")])
    answer = {"calls": [{"tool": "lookup", "arguments": {"key": "b"}}]}
    result = await recording.fork(0, model=model, answer=answer, trace=tmp_path)
    assert (result.run.output, len(model.requests), dict(result.rungs)) == ("then this", 1, {"reordered": 1})
    last = await recording.fork(2, model="recorded", answer="other", trace=None)
    assert (last.run.output, last.verdict, last.stopped) == ("other", "changed", None)
    again = {
        "calls": [{"tool": call.name, "arguments": call.arguments} for call in recording.root.responses[0].tool_calls]
    }
    verdicts = [
        (await recording.fork(0, model="recorded", answer=each, trace=None)).verdict for each in (again, answer)
    ]
    assert verdicts == ["same", "inconclusive"]  # what a caller cannot give, ids and usage, is as recorded


@pytest.mark.parametrize("model", ["recorded", ScriptedModel(SCRIPT[1:])])
async def test_overrides_of_results_do_not_reach_back(model: Any, tmp_path: Path) -> None:
    """Calls before the turn have their recorded results. The recorded model answers nothing that it was not asked: the fork stops."""
    recording = await recorded(tmp_path)
    result = await recording.fork(1, model=model, tool_results={"lookup": "new"}, trace=None)
    done = [each.completed for each in result.recording.root.calls.values()]
    assert [(each.result, each.rung) for each in done if each] == [("value of a", "exact"), ("new", "override")]
    is_stopped = "root asks the model what it was not asked in the recording" in str(result.stopped)
    assert (result.verdict == "inconclusive", is_stopped) == (model == "recorded",) * 2


async def test_code_that_does_something_else_before_the_turn_stops_the_fork(tmp_path: Path) -> None:
    """With agent=, the code has to repeat the events before the turn; if it does not, no model is asked."""
    recording = await recorded(tmp_path, system_prompt="Be exact.")
    model = ScriptedModel(SCRIPT)
    other = make_agent(None, SCRIPT, lookup, system_prompt="Be vague.")
    result = await recording.fork(1, model=model, agent=other, trace=None)
    assert (result.verdict, len(model.requests)) == ("inconclusive", 0)
    assert str(result.stopped).startswith("the events before turn 1 do not come again: root, outside the loop")


async def test_what_cannot_be_forked_is_refused(tmp_path: Path) -> None:
    """An unknown turn, message or form of an answer, a new task, and a fork of a fork each say what to do."""
    recording = await recorded(tmp_path)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"at": 7}, "cannot begin at turn 7; it can at: 0, 1, 2"),
        ({"at": True}, "cannot begin at turn True"),
        ({"at": 1, "edit": {9: "x"}}, "'x' is no new text of message 9; before the turn the root has messages 0 to 3"),
        ({"at": 1, "answer": {"call": "lookup"}}, r'give text, or {"text": …'),
        ({"at": 1, "task": "Another."}, "task: it stands before the turn; edit its message"),
        ({"at": 1, "agents": {"x": {}}}, 'model="recorded" has only what the recorded agents were answered'),
        ({"at": 1, "max_iterations": 1}, "max_iterations: turn 1 is the fork's first; it needs 2 or more"),
        ({"at": 1, "program": print}, "a run of a recorded function cannot be forked"),
    ]
    for given, why in refused:
        with pytest.raises(UsageError, match=re.escape(why)):
            await recording.fork(**{"model": "recorded", **given})
    forked = await recording.fork(1, model="recorded", trace=tmp_path)
    for again in (replay, reproduce):
        with pytest.raises(NotReplayableError, match=f"is a fork of {recording.run_id} at turn 1"):
            await again(forked.recording)


async def test_an_edit_that_changes_nothing_is_said() -> None:
    """A fork notes an edit of a message that no request from the turn on holds."""
    recording = load_recording(GOLDEN[0].with_stem("tree-of-thought-best-path"))
    result = await recording.fork(0, model="recorded", edit={2: "z"}, trace=None)
    assert (result.verdict, result.notes) == (
        "same",
        ("the edit of message 2 was not used: no request from turn 0 on holds the recorded text",),
    )


@pytest.mark.slow
@pytest.mark.parametrize("with_code", [False, True])
async def test_nothing_real_runs(with_code: bool, tmp_path: Path) -> None:
    """Under every policy, at each turn, no body runs and nobody is asked; what ended at a moment may not recur, and is said."""
    outside, came = Outside(), Counter[bool]()
    for seed in SEEDS:
        agent = random_agent(seed, outside, trace=tmp_path)
        try:
            await agent.run("Do it.", run_id=f"run-{seed}")
        except PlayheadError:
            continue
        was, recording = outside.copy(), load_recording(tmp_path / f"run-{seed}.jsonl")
        code = agent if with_code or needs_code(recording) else None
        for at in turns(recording)[:: sample(1, 2)]:
            for policy in POLICIES.values():
                wild = Wild(seed, recording)
                agents = {each: {"model": wild} for each in agents_below(recording, code)}
                same = follow(recording, before(recording, at))
                given = {"system_prompt": {"append": "!"}, "agent": code, "on_missing": policy, "on_record": same}
                result = await recording.fork(at, model=wild, agents=agents, trace=None, **given)
                recurs = divergences_of(same.comparison, cut_short=True) == ()
                assert recurs or (result.verdict == "inconclusive" and result.stopped), (seed, at)
                came[recurs] += 1
        assert outside == was, seed
    assert came[False] <= came.total() * 0.05, came


def test_the_command_forks(tmp_path: Path) -> None:
    """`replay --from` forks and exits as a replay does; what is given of a fork without it is an error of usage."""
    path, where = str(GOLDEN[0].with_stem("reactive-tools")), ["--trace-dir", str(tmp_path)]
    same = playhead("replay", path, "--from", "1", "--model", "recorded", *where)
    assert (same.exit_code, "verdict   same" in same.output) == (0, True)
    other = playhead("replay", path, "--from", "1", "--model", "recorded", "--answer", "no idea", *where)
    assert (other.exit_code, "verdict   changed" in other.output) == (0, True)
    edited = playhead("replay", path, "--from", "1", "--model", "recorded", "--edit", "3=4,181 feet", *where)
    assert (edited.exit_code, "name the model that is to" in edited.output) == (4, True)
    for wrong in (
        ["--answer", "x"],
        ["--from", "1", "--answer", "{no"],
        ["--edit", "3=x"],
        ["--from", "9"],
        ["--from", "1", "--edit", "x=y"],
    ):
        assert playhead("replay", path, *wrong, "--model", "recorded", *where).exit_code == 2, wrong
