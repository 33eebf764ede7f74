"""What a replay is told to change is what it changes; what cannot be is an error that says what can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import Agent, register_strategy, tool
from playhead.errors import NotReplayableError, UsageError
from playhead.replay import Overrides, ToolResult, replay, replay_sync, reproduce
from playhead.replay.live import pause
from playhead.replay.redacted import require_whole
from playhead.testing import ScriptedModel, Turn, call, calls, error, text
from playhead.trace.events import ReplayDiverged, ReplayServed
from playhead.trace.integrity import check_trace
from tests.kernel.runs import make_agent, record, record_agent

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.recording import Recording


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look up."""
    return f"value of {key}"


@tool
def write(key: str) -> str:
    """Write."""
    return f"wrote {key}"


SCRIPT = [call("lookup", key="a"), call("lookup", key="b"), text("done")]


async def recorded(folder: Path, turns: Any = SCRIPT, *tools: Any, **options: Any) -> Recording:
    """Record a run."""
    return (await record(folder, turns, *(tools or (lookup,)), **options)).recording


def system_prompt_of(result: Any) -> str:
    """Return the system message that the replay's model was sent."""
    return str(result.recording.root.message(0).content)


async def test_a_replay_that_changes_nothing_is_the_same_run(tmp_path: Path) -> None:
    """Every call is served at its own place, the result is `same`, and the trace says whose replay it is."""
    recording = await recorded(tmp_path)
    result = await replay(recording, {"model": ScriptedModel(SCRIPT)}, trace=tmp_path)
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


async def test_a_replay_is_itself_a_recording(tmp_path: Path) -> None:
    """Its trace checks, is read back as it happened, reproduces, and can be replayed in its turn."""
    recording = await recorded(tmp_path)
    changed = ScriptedModel([call("lookup", key="b"), call("lookup", key="z"), text("other")])
    result = await replay(
        recording, {"system_prompt": "Be brief.", "model": changed}, on_missing="lenient", trace=tmp_path
    )
    assert result.run.trace_path is not None
    assert check_trace(result.run.trace_path).ok
    again = await reproduce(result.run.trace_path)
    assert (again.identical, again.status) == (True, "closed")
    third = await replay(result.recording, {"model": ScriptedModel([call("lookup", key="b"), text("x")])}, trace=None)
    assert (dict(third.rungs), third.run.trace_path) == ({"exact": 1}, None)
    assert any("itself a replay" in note for note in third.notes)


@pytest.mark.parametrize(
    ("change", "prompt"),
    [
        ("New.", "New."),
        ({"append": " Now."}, "Old one. Now."),
        ({"prepend": "So: "}, "So: Old one."),
        ({"replace": ["Old", "New"]}, "New one."),
        ({"replace": ["one", "two"], "append": "!"}, "Old two.!"),
        (str.upper, "OLD ONE."),
        ("", ""),
    ],
)
async def test_the_system_prompt(change: Any, prompt: str, tmp_path: Path) -> None:
    """It is replaced, or changed by a patch or a function; nothing else is."""
    recording = await recorded(tmp_path, system_prompt="Old one.")
    result = await replay(recording, {"system_prompt": change, "model": ScriptedModel(SCRIPT)}, trace=None)
    assert result.recording.header.agent.system_prompt == prompt
    if prompt:
        assert system_prompt_of(result) == prompt
    assert result.verdict == "same"


async def test_the_default_prompt_can_be_changed_too(tmp_path: Path) -> None:
    """A run without a prompt of its user's has Playhead's; a patch is put to that."""
    recording = await recorded(tmp_path)
    result = await replay(
        recording, {"system_prompt": {"append": " Hurry."}, "model": ScriptedModel(SCRIPT)}, trace=None
    )
    assert system_prompt_of(result) == f"{recording.root.message(0).content} Hurry."


async def test_task_parameters_and_turns(tmp_path: Path) -> None:
    """Each reaches the model's requests and the header; None takes a parameter out."""
    recording = await recorded(tmp_path, parameters={"temperature": 1, "seed": 7, "top_p": 0.5})
    model = ScriptedModel(SCRIPT)
    overrides = {
        "task": "Something else.",
        "temperature": 0.2,
        "parameters": {"seed": None, "top_p": 0.9, "stop": ["x"]},
        "max_iterations": 1,
        "model": model,
    }
    result = await replay(recording, overrides, trace=None)
    header = result.recording.header
    assert header.task == "Something else."
    assert header.agent.parameters == {"temperature": 0.2, "top_p": 0.9, "stop": ["x"]}
    assert model.requests[0].parameters == header.agent.parameters
    assert model.requests[0].messages[-1].content == "Something else."
    assert (result.run.terminated_by, result.run.iterations) == ("max_iterations", 1)
    assert header.overrides == {**overrides, "model": "scripted/model"}


async def test_a_model_override_is_a_substitution(tmp_path: Path) -> None:
    """It answers for every agent that was on the root's model; one on another model keeps it, and a note says so."""
    same = Agent(ScriptedModel([text("same found")], name="scripted/one"), name="same")
    other = Agent(ScriptedModel([text("other found")], name="scripted/two"), name="other")
    turns = [calls(call("same", task="s"), call("other", task="o")), text("done")]
    recording = await recorded(tmp_path, ScriptedModel(turns, name="scripted/one"), same, other)
    new = ScriptedModel([turns[0], text("new found"), text("new done")], name="scripted/new")
    with pytest.raises(UsageError, match=r"'scripted/two', an object of somebody's program; pass model="):
        await replay(recording, {"model": new}, trace=None)
    kept = ScriptedModel([text("kept found")], name="scripted/kept")
    result = await replay(recording, {"model": {"scripted/one": new, "scripted/two": kept}}, trace=None)
    models = {
        owner: recording.started.agent.model
        for owner, recording in result.recording.owners.items()
        if recording.started is not None
    }
    assert models == {"root": "scripted/new", "root/same@0.0": "scripted/new", "root/other@0.1": "scripted/kept"}
    assert result.notes == ("the agent other is answered by scripted/kept, live, not by scripted/new",)
    assert result.recording.header.overrides == {
        "model": {"scripted/one": "scripted/new", "scripted/two": "scripted/kept"}
    }
    with pytest.raises(UsageError, match=r"no recorded agent is on 'scripted/tow'. Did you mean 'scripted/two'"):
        await replay(recording, {"model": {"scripted/tow": new}}, trace=None)


async def test_an_agent_below_the_root_can_be_changed_by_name(tmp_path: Path) -> None:
    """Its prompt, model, parameters and turns; the root's stay as they were."""
    child = Agent(ScriptedModel([text("found")]), name="child", system_prompt="Search.")
    turns = [call("child", task="t"), text("done")]
    recording = await recorded(tmp_path, turns, child)
    changed = ScriptedModel([text("found too")], name="scripted/child")
    overrides = {
        "model": ScriptedModel(turns),
        "agents": {"child": {"system_prompt": {"append": " Well."}, "model": changed, "temperature": 0}},
    }
    result = await replay(recording, overrides, trace=None)
    started = result.recording.owners["root/child@0.0"].started
    assert started is not None
    assert (started.agent.system_prompt, started.agent.parameters) == ("Search. Well.", {"temperature": 0})
    assert started.agent.model == "scripted/child"
    assert result.recording.header.agent.parameters == {}
    with pytest.raises(UsageError, match=r"the recording has no agent 'chidl'. Did you mean 'child'"):
        await replay(recording, {"agents": {"chidl": {}}, "model": ScriptedModel([])}, trace=None)
    with pytest.raises(UsageError, match="task of 'child' cannot be changed"):
        Overrides(agents={"child": {"task": "other"}})


async def test_an_overridden_result_answers_the_calls_it_means(tmp_path: Path) -> None:
    """By tool, by arguments, by number; what it answers instead is used up, and what fitted nothing is said."""
    turns = [call("lookup", key="a"), call("lookup", key="a"), call("lookup", key="b"), text("done")]
    recording = await recorded(tmp_path, turns)
    results = [
        ToolResult("lookup", {"key": "a"}, result="second a", nth=1),
        ToolResult("lookup", {"key": "b"}, error="no b today"),
        {"tool": "lookup", "arguments": {"key": "c"}, "result": "c"},
        ToolResult("lookup", {"key": "a"}, result="ninth a", nth=8),
    ]
    result = await replay(recording, {"tool_results": results, "model": ScriptedModel(turns)}, trace=None)
    observations = [step.content for step in result.run.steps if step.type == "observation"]
    assert observations == ["value of a", "second a", "error: no b today"]
    assert dict(result.rungs) == {"exact": 1, "override": 2}
    assert (result.grounded, result.verdict) == (1 / 3, "inconclusive")
    assert result.notes == (
        "the override of lookup fitted no call of the replay",
        "the override of call 8 of lookup was not reached: 2 calls fitted",
    )
    assert result.recording.header.overrides["tool_results"] == [
        {"tool": "lookup", "arguments": {"key": "a"}, "nth": 1, "result": "second a"},
        {"tool": "lookup", "arguments": {"key": "b"}, "error": "no b today"},
        {"tool": "lookup", "arguments": {"key": "c"}, "result": "c"},
        {"tool": "lookup", "arguments": {"key": "a"}, "nth": 8, "result": "ninth a"},
    ]
    short = await replay(recording, {"tool_results": {"lookup": 5}, "model": ScriptedModel(turns)}, trace=None)
    assert [step.content for step in short.run.steps if step.type == "observation"] == ["5", "5", "5"]


async def test_an_overridden_side_effect_leaves_the_state_unknown(tmp_path: Path) -> None:
    """What was recorded after a write whose answer is changed is stale; a changed read changes nothing."""
    turns = [call("lookup", key="a"), call("write", key="a"), call("lookup", key="b"), text("done")]
    recording = await recorded(tmp_path, turns, lookup, write)
    model = ScriptedModel(turns)
    result = await replay(recording, {"tool_results": {"write": "failed"}, "model": model}, trace=None)
    assert result.stopped is not None
    assert "the answer of write before it was overridden, so nobody knows what it did" in result.stopped
    assert (result.verdict, result.run.terminated_by) == ("inconclusive", "replay_stopped")
    read = ToolResult("lookup", {"key": "a"}, result="x")
    result = await replay(recording, {"tool_results": [read], "model": ScriptedModel(turns)}, trace=None)
    assert dict(result.rungs) == {"override": 1, "exact": 2}


async def test_an_agents_answer_can_be_overridden(tmp_path: Path) -> None:
    """It is not entered then, and the replay's recording reproduces."""
    child = Agent(ScriptedModel([text("found")]), name="child", meta_tools=())
    turns = [call("child", task="t"), text("done")]
    recording = await recorded(tmp_path, turns, child)
    result = await replay(
        recording, {"tool_results": {"child": "nothing"}, "model": ScriptedModel(turns)}, trace=tmp_path
    )
    assert list(result.recording.owners) == ["root"]
    assert dict(result.rungs) == {"override": 1}
    assert (await reproduce(result.recording)).identical


async def test_code_that_is_not_what_was_recorded(tmp_path: Path) -> None:
    """With `agent=` the code's prompt counts, and a note says what is different."""
    recording = await recorded(tmp_path, system_prompt="Old.")
    result = await replay(recording, agent=make_agent(None, SCRIPT, lookup, system_prompt="New."), trace=None)
    assert result.notes == ("agent= is not the agent that was recorded: system_prompt",)
    assert result.recording.header.agent.system_prompt == "New."


async def test_a_failing_model_ends_the_replay_and_not_the_caller(tmp_path: Path) -> None:
    """What the live model's failure left is the result; the verdict is that nothing can be said."""
    recording = await recorded(tmp_path)
    result = await replay(recording, {"model": ScriptedModel([SCRIPT[0], error("gone")])}, trace=tmp_path)
    assert (result.stopped, result.verdict) == ("llm_error: gone", "inconclusive")
    assert (result.run.status, result.run.terminated_by) == ("failed", "llm_error")


async def test_retries_of_a_live_model_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes between attempts, as it would; nowhere else in a replay."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(anyio, "sleep", sleep)
    recording = await recorded(tmp_path, retry_delay_s=0.25)
    model = ScriptedModel([error("busy", retryable=True), error("busy", retryable=True), *SCRIPT])
    assert (await replay(recording, {"model": model}, trace=None)).verdict == "same"
    assert waited == [0.25, 0.5]
    await pause(5)
    assert waited == [0.25, 0.5]


async def test_keys_and_secret_parameters_stay_out_of_the_replays_trace(tmp_path: Path) -> None:
    """The live model's key and a parameter that is a secret by its name are redacted wherever they would stand."""

    class Keyed(ScriptedModel):
        @property
        def secrets(self) -> dict[str, str]:
            return {"SOME_API_KEY": "sk-very-secret"}

    recording = await recorded(tmp_path)
    model = Keyed([call("lookup", key="sk-very-secret"), text("the token is tok-123456")])
    parameters = {"extra_headers": {"Authorization": "Bearer tok-123456"}}
    result = await replay(recording, {"model": model, "parameters": parameters}, on_missing="lenient", trace=tmp_path)
    assert result.run.trace_path is not None
    written = result.run.trace_path.read_text()
    assert "sk-very-secret" not in written
    assert "tok-123456" not in written
    assert "sk-very-secret" not in str(result.recording.header)


async def test_a_redacted_prompt_is_not_sent_to_a_live_model(tmp_path: Path) -> None:
    """Not before its holes are filled: the message names the fields and the fix, and values given stay out of the trace."""

    class Keyed(ScriptedModel):
        @property
        def secrets(self) -> dict[str, str]:
            return {"DB_PASSWORD": "hunter2-hunter2"}

    @tool(read_only=True)
    def secret(key: str) -> str:
        """Tell."""
        return "hunter2-hunter2"

    turns = [call("secret", key="hunter2-hunter2"), text("done")]
    agent = make_agent(tmp_path, Keyed(turns), secret, system_prompt="The password is hunter2-hunter2.")
    recording = (await record_agent(agent, tmp_path, task="Use hunter2-hunter2")).recording
    overrides: dict[str, Any] = {"model": ScriptedModel(turns)}
    with pytest.raises(NotReplayableError) as refused:
        await replay(recording, overrides, trace=None)
    assert str(refused.value) == (
        "the recording is redacted where a live model has to read it: task ([redacted:DB_PASSWORD]); "
        "system_prompt ([redacted:DB_PASSWORD]). Give the values with rebind={'DB_PASSWORD': …}, or override the fields"
    )
    rebound = await replay(recording, overrides, rebind={"DB_PASSWORD": "hunter2-hunter2"}, trace=tmp_path)
    assert (rebound.verdict, dict(rebound.rungs)) == ("same", {"exact": 1})
    sent = overrides["model"].requests[-1].messages
    assert [each.content for each in sent if each.role != "assistant"] == [
        "The password is hunter2-hunter2.",
        "Use hunter2-hunter2",
        "hunter2-hunter2",
    ]
    assert rebound.run.trace_path is not None
    assert "hunter2" not in rebound.run.trace_path.read_text()
    assert (await reproduce(rebound.run.trace_path)).identical
    changed = {**overrides, "system_prompt": "None.", "task": "Go.", "model": ScriptedModel(turns)}
    result = await replay(recording, changed, on_missing="lenient", trace=None)
    assert result.notes == ("recorded results are redacted, and are served so unless rebind= gives the values: secret",)


def test_text_whose_redaction_failed_cannot_be_given_back() -> None:
    """Nobody knows what stood there, so only an override helps; what is whole passes."""
    require_whole({"task": "all [redacted] there", "tools": [{"a": 1}]})
    with pytest.raises(NotReplayableError, match=r"task \(\[redaction failed\]\)\. Override the fields$"):
        require_whole({"task": ["so: [redaction failed]"]})


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


async def test_every_place_where_a_recording_can_be_cut(tmp_path: Path) -> None:
    """A replay of a run that was killed goes as far as there are answers, and stops loudly."""
    child = Agent(ScriptedModel([call("lookup", key="c"), text("found")]), name="child", tools=[lookup], meta_tools=())
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


def test_the_blocking_form(tmp_path: Path) -> None:
    """`replay_sync` takes what `replay` takes, and a reference in place of a recording."""
    agent = make_agent(tmp_path, SCRIPT, lookup)
    path = agent.run_sync("Do it.").trace_path
    assert path is not None
    heard: list[str] = []
    result = replay_sync(
        path,
        Overrides(model=ScriptedModel(SCRIPT)),
        trace=tmp_path,
        on_record=lambda record: heard.append(record.kind),
    )
    assert result.verdict == "same"
    assert heard == [record.kind for record in result.recording.records]


async def test_facts_answer_as_they_did(tmp_path: Path) -> None:
    """What steers a strategy besides model and tools is served in its order, and once more than recorded is loud."""
    asked: list[str] = []
    times, nap_s = [2], [0.0]

    def luck() -> int:
        asked.append("luck")
        return len(asked)

    async def lucky(state: Any, session: Any) -> Any:
        found = [await session.facts.ask("luck", luck) for _ in range(times[0])]
        await session.facts.sleep(nap_s[0])
        session.terminate("end_turn", found)
        return state

    register_strategy("lucky", lucky)
    agent = make_agent(tmp_path, [], strategy="lucky")
    await agent.run("Do it.", run_id="run")
    nap_s[0] = 1000  # which has passed already
    result = await replay(tmp_path / "run.jsonl", {"model": ScriptedModel([])}, trace=None)
    assert (result.run.output, result.verdict, len(asked)) == ([1, 2], "same", 2)
    times[0] = 3
    result = await replay(tmp_path / "run.jsonl", {"model": ScriptedModel([])}, on_missing="lenient", trace=None)
    assert result.stopped is not None
    assert "root asks for the fact 'luck', which was not recorded for it" in result.stopped
    assert len(asked) == 2


async def test_hooks_of_the_recorded_run_are_named(tmp_path: Path) -> None:
    """They are code, so they are not in effect, and a note says so."""
    from playhead.compose.killswitches import max_iterations

    recording = await recorded(tmp_path, compose=[max_iterations(1)])
    result = await replay(recording, {"model": ScriptedModel(SCRIPT)}, trace=None)
    assert any(note.startswith("hooks were in effect in the recorded run, and are not") for note in result.notes)
    assert result.recording.header.agent.hooks == ()
    noted = [each.event.what for each in result.recording.records if isinstance(each.event, ReplayDiverged)]
    assert noted[: len(result.notes)] == list(result.notes)


async def test_turns_without_calls_have_no_grounds(tmp_path: Path) -> None:
    """A replay that made no call has nothing to be grounded in, and can be told all the same."""
    recording = await recorded(tmp_path, [Turn(text="done")])
    result = await replay(recording, {"model": ScriptedModel([text("done")])}, trace=None)
    assert (result.grounded, result.verdict) == (None, "same")
