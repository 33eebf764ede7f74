"""What a diff says of two runs: causes, the first event and decision that differ, results, and what it cannot know."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, RunError, ToolContext, load_recording, tool
from playhead.diagnose.diff import diff_recordings
from playhead.diagnose.diff_values import line_diff
from playhead.diagnose.diff_view import diff_document
from playhead.kernel.hooks import SwitchTo
from playhead.testing import ScriptedModel, TickingClock, call, calls, error, text
from playhead.trace.events import LlmResponded, ToolCallCompleted, ToolCallStarted, UnknownEvent
from playhead.trace.types import Usage
from tests.diagnose.edits import apply_edits, tool_sequence
from tests.diagnose.planted import altered, recording_of, renamed
from tests.diagnose.recordings import printed
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.compose.contexts import PhaseContext
    from playhead.diagnose.diff_types import RunDiff
    from playhead.diagnose.recording import Recording


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look a fact up."""
    return f"{key} is known"


@tool
def note(line: str) -> str:
    """Write a line down."""
    return "noted"


class Runs:
    """Records runs of one agent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def __call__(self, *turns: Any, task: str = "go", tools: Any = (lookup, note), **options: Any) -> Recording:
        """Run on this script, and return the recording."""
        self.count += 1
        run_id = f"run-{self.count}"
        defaults: dict[str, Any] = {"rationale": False, "meta_tools": (), "retry_delay_s": 0}
        model = ScriptedModel(list(turns), name=options.pop("model", "scripted/m"))
        agent = Agent(model, **grouped(tools=tools, trace=self.folder, clock=TickingClock, **{**defaults, **options}))
        with suppress(RunError):  # a failed run is a recording, too
            agent.run_sync(task, run_id=run_id)
        return load_recording(self.folder / f"{run_id}.jsonl")


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """Records runs."""
    return Runs(tmp_path)


def index_of(recording: Recording, kind: type, number: int = 0) -> int:
    """Return the place of an event of this kind."""
    return [place for place, record in enumerate(recording.records) if isinstance(record.event, kind)][number]


def given(diff: RunDiff) -> list[tuple[str, str, Any, Any]]:
    """Return the inputs that differ, in short."""
    return [(each.agent, each.name, each.original, each.replay) for each in diff.inputs]


def test_a_switch_of_strategy_that_one_run_lacks_is_a_difference(runs: Runs) -> None:
    """The same answer, calls and turns under another strategy are not the same run, and the verdict says which switch."""

    def switch(context: PhaseContext) -> SwitchTo | None:
        return SwitchTo("direct") if context.strategy == "reactive" else None

    one = runs(text("done"), compose=[lambda harness: harness.before("think", switch)])
    other = runs(text("done"))
    diff = diff_recordings(one, other)
    assert (diff.output.equal, diff.tool_sequence, diff.iterations_delta, diff.identical) == (True, (), 0, False)
    assert (diff.original.switches, diff.replay.switches) == (("root: reactive → direct",), ())
    shown = printed(diff_document(diff), width=200)
    assert "different: the strategy (original: root: reactive → direct; replay: no switch)" in shown


def test_time_tokens_and_cost_do_not_count_for_identical(runs: Runs) -> None:
    """They are told on their own."""
    one, other = runs(text("a", usage=Usage(input_tokens=5))), runs(text("a", usage=Usage(input_tokens=9)))
    diff = diff_recordings(one, renamed(other))
    assert (diff.identical, diff.tokens_delta, diff.first_divergence) == (True, 4, None)
    assert diff.also_differs == ("tokens",)
    assert diff.duration_delta_ms == pytest.approx(17.25)
    unknown = recording_of(altered(one, index_of(one, LlmResponded), cost_usd=None))
    assert (diff_recordings(one, one).cost_delta, diff_recordings(one, unknown).cost_delta) == (0, None)


def test_an_edited_result_is_a_difference(runs: Runs) -> None:
    """The same call that something else came back from is named, with both results: see S-062."""
    one = runs(call("lookup", key="a"), text("done"))
    place = index_of(one, ToolCallCompleted)
    diff = diff_recordings(one, recording_of(altered(one, place, result="a is unknown")))
    (found,) = diff.results
    assert (found.tool, found.args) == ("lookup", {"key": "a"})
    assert (found.original, found.replay) == ({"result": "a is known"}, {"result": "a is unknown"})
    assert (found.original_seq, found.replay_seq) == (place - 1, place - 1)
    assert (diff.identical, diff.also_differs) == (True, ("events", "results"))
    assert diff.first_divergence is not None
    assert diff.first_divergence.what == "result of tool-call-completed (lookup) differs"


def test_everything_that_agents_were_given_is_told_one_by_one(runs: Runs) -> None:
    """Prompt, task, model, each parameter, each tool and its parts, limits and settings."""

    @tool(read_only=True, name="lookup")
    def other_lookup(key: str, deep: bool = False) -> str:
        """Look a fact up, or not."""
        return key

    one = runs(text("a"), system_prompt="Be brief.", parameters={"temperature": 0, "top_p": 1})
    changed: dict[str, Any] = {"task": "stay", "tools": (other_lookup,), "model": "scripted/n", "max_iterations": 3}
    prompt: dict[str, Any] = {"system_prompt": "Be brief.\nBe kind.", "parameters": {"temperature": 1, "seed": 3}}
    other = runs(text("a"), **changed, **prompt, rationale=True)
    diff = diff_recordings(one, other)
    changes = {each.name: each.change for each in diff.inputs}
    for name, change in {"parameters.top_p": "removed", "parameters.seed": "added", "tools.note": "removed"}.items():
        assert changes.pop(name) == change
    assert changes == dict.fromkeys(
        (
            "task", "system_prompt", "model", "parameters.temperature", "tools.lookup.description", "tools.lookup.parameters",
            "rationale", "max_iterations", "code of tool lookup",
        ), "changed",
    )  # fmt: skip
    by_name = {each.name: each for each in diff.inputs}
    assert by_name["system_prompt"].lines == ("@@", " Be brief.", "+Be kind.")
    assert (by_name["model"].original, by_name["model"].replay) == ("scripted/m", "scripted/n")


def test_a_replay_says_what_it_was_told_to_change(runs: Runs) -> None:
    """The overrides of its header, beside all inputs that differ; and a replay of another run is named as such."""
    one = runs(text("a"), system_prompt="A")
    other = runs(text("a"), system_prompt="B", max_iterations=3)
    replay = recording_of(altered(other, 0, replay_of=one.run_id, overrides={"system_prompt": "B"}))
    diff = diff_recordings(one, replay)
    assert diff.is_replay
    assert diff.overrides == {"system_prompt": "B"}
    assert [each.name for each in diff.inputs] == ["system_prompt", "max_iterations"]
    assert diff_recordings(other, replay).remarks == ("the second run is a replay of run-1, not of this original",)


def agent_below(turns: list[Any], name: str = "helper", **options: Any) -> Agent:
    """Return a sub-agent."""
    given = {"tools": [lookup], "rationale": False, "meta_tools": (), "trace": None, **options}
    return Agent(ScriptedModel(turns), **grouped(name=name, **given))


def test_sub_agents_belong_together_though_a_turn_came_before(runs: Runs) -> None:
    """An extra turn shifts the owner of a sub-agent; it is compared with the same one all the same."""
    inner = [call("lookup", key="x"), text("found")]
    one = runs(call("helper", task="find"), text("done"), tools=[lookup, agent_below(inner)])
    tools = [lookup, agent_below(inner, max_iterations=4)]
    other = runs(call("lookup", key="first"), call("helper", task="find"), text("done"), tools=tools)
    diff = diff_recordings(one, other)
    assert [(each.kind, each.tool, each.replay_place) for each in diff.tool_sequence] == [("added", "lookup", 0)]
    assert given(diff) == [("root/helper", "max_iterations", 10, 4)]
    assert diff.results == ()
    assert apply_edits(diff.tool_sequence, tool_sequence(one)) == tool_sequence(other)
    assert [use.owner for use in tool_sequence(one)] == ["root", "root/helper"]


def test_the_order_in_which_sub_agents_work_does_not_count(runs: Runs) -> None:
    """What agents do beside each other stands in the file in any order."""
    inner = [call("lookup", key="x"), text("found")]
    both = calls(call("helper", task="a"), call("other", task="b"))
    one = runs(both, text("done"), tools=[agent_below(inner), agent_below(inner, "other")])
    first = [record for record in one.records if record.owner.startswith("root/helper")]
    rest = [record for record in one.records if not record.owner.startswith("root/helper")]
    place = next(number for number, record in enumerate(rest) if record.owner.startswith("root/other"))
    last = max(number for number, record in enumerate(rest) if record.owner.startswith("root/other")) + 1
    for records in ([*rest[:place], *first, *rest[place:]], [*rest[:last], *first, *rest[last:]]):
        diff = diff_recordings(one, recording_of(records))
        assert (diff.identical, diff.first_divergence, diff.tool_sequence) == (True, None, ())


CALL_A, CALL_B = call("lookup", key="a"), call("lookup", key="b")


@pytest.mark.parametrize(
    ("original", "replay", "change"),
    [
        (text("x"), text("y"), "answer"),
        (CALL_A, CALL_B, "calls"),
        (CALL_A, text("y"), "calls"),
        (text("y"), CALL_A, "calls"),
        (CALL_A, call("note", line="a"), "calls"),
        (calls(CALL_A, CALL_B), calls(CALL_B, CALL_A), "calls"),
        (text("x"), error("gone"), "failure"),
    ],
)
def test_the_first_decision(runs: Runs, original: Any, replay: Any, change: str) -> None:
    """Which decision differs, how, with both sides."""
    one, other = runs(original, text("end")), runs(replay, text("end"))
    found = diff_recordings(one, other).first_decision
    assert found is not None
    assert (found.change, found.agent) == (change, "root")
    places = [index_of(recording, LlmResponded) if found.change != "failure" else 5 for recording in (one, other)]
    assert found.original is not None
    assert found.replay is not None
    assert [found.original.seq, found.replay.seq] == places


def test_a_recording_that_ends_early_is_compared_as_far_as_it_goes(runs: Runs) -> None:
    """What comes after its end is no divergence; that it is not known is said."""
    whole = runs(CALL_A, text("done"))
    for count in range(1, len(whole.records)):
        cut = recording_of(whole.records[:count])
        for diff in (diff_recordings(whole, cut), diff_recordings(cut, whole)):
            assert (diff.identical, diff.first_divergence, diff.first_decision, diff.results) == (False, None, None, ())
            assert any("it ends at event" in remark for remark in diff.remarks)
        assert not diff_recordings(cut, cut).identical  # nobody knows how either would have ended


def test_kinds_that_this_version_does_not_know_are_left_out_and_named(runs: Runs) -> None:
    """Nobody knows which of their fields are times."""
    one = runs(text("a"))
    unknown = one.records[3]._replace(event=UnknownEvent(kind="a-kind", when=1))  # type: ignore[call-arg]
    diff = diff_recordings(one, recording_of([*one.records[:3], unknown, *one.records[3:]]))
    assert (diff.identical, diff.first_divergence) == (True, None)
    assert diff.remarks == ("what this version does not know, or has no key for, was not compared: a-kind",)


def test_a_tool_whose_body_did_not_run_in_the_replay_is_no_difference(runs: Runs) -> None:
    """What a body did by itself cannot come again when its result is served; that it was not compared is said."""

    @tool(read_only=True)
    async def inner(key: str, context: ToolContext) -> str:
        """Use the ports from inside."""
        return str(await context.tools.call("lookup", key=key))

    one = runs(call("inner", key="a"), text("done"), tools=(inner, lookup))
    assert [use.tool for use in tool_sequence(one)] == ["inner", "lookup"]
    outside = recording_of([record for record in one.records if record.owner == "root"])
    served = recording_of(altered(outside, index_of(outside, ToolCallCompleted), rung="exact"))
    diff = diff_recordings(one, served)
    assert (diff.identical, diff.first_divergence) == (True, None)
    assert tool_sequence(one, not_entered=["root/inner@0.0"]) == tool_sequence(served)
    assert diff.remarks == (
        "what happened inside 1 tool call (root/inner@0.0) was not compared: the replay took the result from a recording",
    )
    assert diff_recordings(served, one).identical
    assert not diff_recordings(one, outside).identical


def nested(levels: int) -> Any:
    """Return a list in a list in a list, and so on."""
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.slow
@pytest.mark.parametrize("value", [nested(190), "x" * 1_000_000, {"\x1b": [1] * 10_000}, "\ud800"])
def test_absurd_values_are_compared_and_told(runs: Runs, value: Any) -> None:
    """Deep, huge and unprintable values do no harm, and the JSON stays JSON."""
    one = runs(CALL_A, text("done"))
    other = recording_of(altered(one, index_of(one, ToolCallStarted), args=value, args_hash="x"))
    other = recording_of(altered(other, index_of(one, ToolCallCompleted), result=value))
    for diff in (diff_recordings(one, other), diff_recordings(other, one)):
        assert diff.first_divergence is not None
        assert diff.first_divergence.original_seq == index_of(one, ToolCallStarted)
        assert json.dumps(diff.as_json(), allow_nan=False)
    assert diff_recordings(other, other).identical


def test_lines_that_differ() -> None:
    """As a unified diff with one line around it; what is the same before and after it does not count against the limit."""
    assert line_diff("a\nb\nc\nd", "a\nb\nx\nd") == ("@@", " b", "-c", "+x", " d")
    assert line_diff("", "a") == ("@@", "-", "+a")
    assert line_diff("-- a", "++ b") == ("@@", "--- a", "+++ b")
    lines = [f"line {number}" for number in range(20_000)]
    changed = [*lines[:15_000], "other", *lines[15_001:]]
    found = line_diff("\n".join(lines), "\n".join(changed))
    assert found == ("@@", " line 14999", "-line 15000", "+other", " line 15001")
    found = line_diff("\n".join(lines), "\n".join(f"b {n}" for n in range(30_000)))
    assert (len(found), found[-1]) == (401, "… more lines may differ")
