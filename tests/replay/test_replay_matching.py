"""Each call gets the answer that was recorded for it: for its owner, its place and the state it was given in."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import anyio

from playhead import Agent, Context, ToolContext, tool
from playhead.replay import replay
from playhead.replay.history import read_past
from playhead.replay.matching import Asked, Matcher
from playhead.replay.state import NOTHING, State, Touched
from playhead.testing import ScriptedModel, call, calls, text
from tests.kernel.runs import record
from tests.replay.stores import ScriptsModel, record_store, root_rungs

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.recording import Recording


def asked(recording: Recording, number: int, **changes: Any) -> Asked:
    """Return the recorded call of this number as the same call of a replay."""
    past = read_past(recording).calls[number]
    started = past.started
    fields: dict[str, Any] = {
        "sources": (past.owner,),
        "is_owner": True,
        "caller": f"{past.owner} {number}",
        "tool": started.tool,
        "request": started.request,
        "iteration": past.iteration,
        "position": started.position,
        "args": started.args,
        "args_hash": started.args_hash,
    }
    return Asked(**{**fields, **changes})


def found(matcher: Matcher, which: Asked, now: str | None = None) -> tuple[int, str] | None:
    """Return the event of the recorded call that is served, and how; by default in the state of the beginning."""
    match = matcher.take(which, State("test").key(None, "") if now is None else now)
    return None if match is None else (match.call.seq, match.rung)


# --- the matcher by itself ------------------------------------------------------------------------------------------


async def test_the_order_of_matching() -> None:
    """The exact call first, then the first of the same arguments, then by key; each once."""
    a, b = ("get", {"key": "a"}), ("get", {"key": "b"})
    recording = await record_store({"Do it.": [(a,), (a,), (b,), (("find", {"key": "a", "note": "x"}),)]}, ())
    first, second, third, fourth = (each.seq for each in read_past(recording).calls)
    matcher = Matcher(read_past(recording))
    assert found(matcher, asked(recording, 1)) == (second, "exact")
    assert found(matcher, asked(recording, 1, request=7)) == (first, "reordered")
    assert found(matcher, asked(recording, 0)) is None
    assert found(matcher, asked(recording, 2, position=1)) == (third, "reordered")
    note = {"key": "a", "note": "y"}
    assert found(matcher, asked(recording, 3, args=note, args_hash="other")) is None
    assert found(matcher, asked(recording, 3, args=note, args_hash="other", key=("key",))) == (fourth, "normalised")


async def test_a_reserved_call_is_kept_for_the_one_that_matches_it_exactly() -> None:
    """A call at another place does not take it, even when there is nothing else."""
    a = ("get", {"key": "a"})
    recording = await record_store({"Do it.": [(a, a)]}, ())
    first, second = (each.seq for each in read_past(recording).calls)
    matcher = Matcher(read_past(recording))
    matcher.reserve(asked(recording, 1))
    elsewhere = asked(recording, 0, position=5, caller="somebody else")
    assert found(matcher, elsewhere) == (first, "reordered")
    assert found(matcher, elsewhere) is None
    assert found(matcher, asked(recording, 1)) == (second, "exact")


async def test_an_answer_of_the_right_state_comes_before_the_one_of_the_right_place() -> None:
    """Of several recorded answers to the same call, the one of the replay's state is taken; else it is stale."""
    get, put = ("get", {"key": "a"}), ("put", {"key": "a", "value": 5})
    recording = await record_store({"Do it.": [(get,), (put,), (get,)]}, ())
    first, _, last = read_past(recording).calls
    assert found(Matcher(read_past(recording)), asked(recording, 0), last.state) == (last.seq, "reordered")
    assert found(Matcher(read_past(recording)), asked(recording, 2), first.state) == (first.seq, "reordered")
    assert found(Matcher(read_past(recording)), asked(recording, 2), "another") == (last.seq, "stale")


async def test_matching_takes_linear_time() -> None:
    """Hundreds of equal calls, found at other places than theirs, are found one after the other."""
    turn = tuple(("get", {"key": "a"}) for _ in range(500))
    recording = await record_store({"Do it.": [turn]}, ())
    past = read_past(recording)
    matcher, questions = Matcher(past), asked(recording, 0, request=9)
    started = time.perf_counter()
    served = [found(matcher, questions) for _ in turn]
    assert [each and each[0] for each in served] == [each.seq for each in past.calls]
    assert time.perf_counter() - started < 1  # a hundred times what it takes


# --- the state ------------------------------------------------------------------------------------------------------


async def test_which_calls_are_side_effects(tmp_path: Path) -> None:
    """Undeclared tools that ran, failed or not; not what is read-only, refused, denied or unknown."""

    @tool
    def act(key: str) -> str:
        """Act, or fail."""
        if key == "fail":
            raise ValueError(key)
        return key

    @tool(timeout=0.01)
    async def slow(key: str) -> None:
        """Take too long."""
        await anyio.sleep(1)

    @tool(read_only=True)
    def read(key: str) -> str:
        """Read."""
        return key

    @tool(requires_approval=True)
    def pay(key: str) -> str:
        """Pay."""
        return key

    turns = [
        calls(call("read", key="a"), call("act", key="a"), call("act"), call("none", key="a")),
        calls(call("act", key="fail"), call("slow", key="a"), call("pay", key="yes"), call("pay", key="no")),
        calls(call("read", key="b")),
        text("done"),
    ]

    def approver(request: Any) -> bool:
        return bool(request.arguments["key"] == "yes")

    ran = await record(tmp_path, turns, act, slow, read, pay, approver=approver)
    past = read_past(ran.recording)
    effects = [each for each in past.calls if each.ran and each.touches.writes != NOTHING]
    assert [(each.started.tool, each.started.args) for each in effects] == [
        ("act", {"key": "a"}),
        ("act", {"key": "fail"}),
        ("slow", {"key": "a"}),
        ("pay", {"key": "yes"}),
    ]
    assert [(each.started.tool, each.adrift) for each in past.calls if each.adrift] == [("slow", True)]
    assert len({each.state for each in past.calls}) == 6
    result = await replay(ran.recording, {"model": ScriptedModel(turns)}, trace=None)
    assert (result.verdict, dict(result.rungs)) == ("same", {"exact": 6})  # what was refused or denied is no answer


async def test_what_a_body_does_counts_for_the_call(tmp_path: Path) -> None:
    """A tool that is declared read-only and calls one that is not has a side effect; its body's calls are not matched."""

    @tool
    def act(key: str) -> str:
        """Act."""
        return key

    @tool(read_only=True)
    async def outer(key: str, context: ToolContext) -> Any:
        """Act through another tool."""
        return await context.tools.call("act", key=key)

    turns = [call("outer", key="a"), call("act", key="b"), text("done")]
    recording = (await record(tmp_path, turns, act, outer)).recording
    past = read_past(recording)
    assert [(each.owner, each.started.tool, each.touches.writes) for each in past.calls] == [
        ("root", "outer", None),
        ("root", "act", None),
    ]
    assert (await replay(recording, {"model": ScriptedModel(turns)}, trace=None)).verdict == "same"
    dropped = await replay(recording, {"model": ScriptedModel(turns[1:])}, on_missing="lenient", trace=None)
    assert root_rungs(dropped) == [("act", "stale", "b")]


def test_what_parts_two_states() -> None:
    """States are equal when the same was done, in the same states, to what a call touches, and to nothing more of it."""
    orders, weather = frozenset({"orders"}), frozenset({"weather"})
    one, other = State("one"), State("other")
    assert one.key(None, "9") == other.key(None, "9")
    one.follow("put 1", Touched(orders, orders), "put", course="0")
    assert (one.key(weather, "9"), one.key(NOTHING, "9")) == (other.key(weather, "9"), other.key(NOTHING, "9"))
    assert one.key(orders, "9") != other.key(orders, "9")
    other.follow("set 2", Touched(weather, weather), "set", course="0")
    other.follow("put 1", Touched(orders, orders), "put", course="1")
    assert (one.key(orders, "9"), one.last(orders), one.last(weather)) == (other.key(orders, "9"), "put", None)
    one.follow("set 2", Touched(weather, weather), "set", course="1")
    assert one.key(None, "9") == other.key(None, "9")
    one.follow("move", Touched(orders | weather, weather), "move", course="2")
    other.lose(orders, "put, and nobody knows what that did")
    other.follow("move", Touched(orders | weather, weather), "move", course="2")
    assert one.key(weather, "9") != other.key(weather, "9"), "what moved there came from another state"


def test_what_changes_by_itself() -> None:
    """From a call on of which nobody knows when it is over, only the very same course comes to the same state."""
    orders = frozenset({"orders"})
    one, other = State("one"), State("other")
    for state in (one, other):
        state.follow("put", Touched(orders, orders), "put", course=state.begin("0", "put"), adrift=True)
    course = one.begin("1", "get")
    assert (
        one.key(orders, course) == other.key(orders, other.begin("1", "get")) != one.key(orders, one.begin("2", "get"))
    )
    assert one.key(orders, course) != other.key(orders, other.begin("3", "get"))
    assert one.key(frozenset({"weather"}), "7") == other.key(frozenset({"weather"}), "8")


def test_what_parts_two_courses() -> None:
    """Another place, other arguments, arguments that nobody knows, and a call with an unknown effect: none leads to the same again."""
    for one, other in ((("1", "a"), ("2", "a")), (("1", "a"), ("1", "b")), (("1", None), ("1", None))):
        then, now = State("then"), State("now")
        assert then.begin("0", "get") == now.begin("0", "get")
        assert then.begin(*one) != now.begin(*other)
        assert then.begin("9", "get") != now.begin("9", "get")
    then, now = State("then"), State("now")
    now.lose(NOTHING, "what it did is not known")
    assert then.timed("", then.begin("0", "get")) != now.timed("", now.begin("0", "get"))


async def test_a_read_from_before_a_write_is_not_served_after_it() -> None:
    """Strict stops there and says which side effect is too many or missing; lenient marks it."""
    get, put = ("get", {"key": "a"}), ("put", {"key": "a", "value": 5})
    recording = await record_store({"Do it.": [(get,), (put,)]}, ())
    model = ScriptsModel({"Do it.": [(put,), (get,)]})
    strict = await replay(recording, {"model": model}, trace=None)
    assert root_rungs(strict) == [("put", "reordered", ["root", "put", "a", 5, 5]), ("get", None, "Cancelled")]
    assert strict.stopped is not None
    assert "in another state of the world" in strict.stopped
    assert "the last side effect before it was none, in the replay it is put by root" in strict.stopped
    lenient = await replay(recording, {"model": model}, on_missing="lenient", trace=None)
    assert root_rungs(lenient) == [
        ("put", "reordered", ["root", "put", "a", 5, 5]),
        ("get", "stale", ["root", "get", "a", 0, 0]),
    ]
    assert (lenient.grounded, lenient.verdict) == (0.5, "inconclusive")
    diverged = [record.event for record in lenient.recording.records if record.kind == "replay-diverged"]
    assert len(diverged) == 1


async def test_after_a_lenient_miss_of_a_side_effect_the_state_is_not_known() -> None:
    """Nothing ran, but the replay went on as if something might have: what is read then is stale."""
    get, put = ("get", {"key": "a"}), ("put", {"key": "a", "value": 5})
    recording = await record_store({"Do it.": [(get,)]}, ())
    result = await replay(
        recording, {"model": ScriptsModel({"Do it.": [(put,), (get,)]})}, on_missing="lenient", trace=None
    )
    assert root_rungs(result) == [
        ("put", "synthetic-error", "NoRecording"),
        ("get", "stale", ["root", "get", "a", 0, 0]),
    ]


async def test_a_result_beside_which_something_else_was_done_is_stale(tmp_path: Path) -> None:
    """When a side effect of another agent ran beside a read, nobody knows which came first: not served as sure."""

    @tool
    async def act(key: str) -> str:
        """Act slowly."""
        await anyio.sleep(0.01)
        return key

    @tool(read_only=True)
    async def read(key: str) -> str:
        """Read slowly."""
        await anyio.sleep(0.02)
        return key

    child = Agent(ScriptedModel([call("act", key="a"), text("found")]), name="child", tools=[act])
    turn = calls(call("read", key="a"), call("child", task="t"))
    turns = [turn, text("done")]
    recording = (await record(tmp_path, turns, read, child.as_tool(read_only=True))).recording
    both = ScriptedModel([turn, call("act", key="a"), text("found"), text("done")])
    result = await replay(recording, {"model": both}, on_missing="lenient", trace=None)
    assert root_rungs(result)[0] == ("read", "stale", "a")
    assert (await replay(recording, {"model": both}, trace=None)).stopped is not None


async def test_a_remembered_answer_is_given_again(tmp_path: Path) -> None:
    """What the run's own memory would answer, it answers in a replay too, as often as it is asked."""
    count = [0]

    @tool(read_only=True, cache=True)
    def number(key: str) -> int:
        """Count."""
        count[0] += 1
        return count[0]

    @tool
    def act(key: str) -> str:
        """Act."""
        return key

    turns = [call("number", key="a"), call("act", key="a"), call("number", key="a"), text("done")]
    recording = (await record(tmp_path, turns, number, act)).recording
    same = await replay(recording, {"model": ScriptedModel(turns)}, trace=None)
    assert root_rungs(same) == [("number", "exact", 1), ("act", "exact", "a"), ("number", "exact", 1)]
    more = [calls(*[call("number", key="a")] * 4), text("done")]
    result = await replay(recording, {"model": ScriptedModel(more)}, trace=None)
    assert [each[2] for each in root_rungs(result)] == [1, 1, 1, 1]
    late = [call("act", key="a"), call("number", key="a"), text("done")]
    result = await replay(recording, {"model": ScriptedModel(late)}, on_missing="lenient", trace=None)
    assert root_rungs(result)[1] == ("number", "stale", 1)


async def test_a_key_that_does_not_identify_the_answer_is_no_reason_to_choose(tmp_path: Path):
    """Two recorded calls that the key says are the same were answered differently: a third is not given either answer."""

    @tool(read_only=True, key=("city",))
    def weather(city: str, unit: str) -> str:
        """Tell the temperature."""
        return {"C": "20", "F": "68"}[unit]

    turns = [call("weather", city="Rome", unit="C"), call("weather", city="Rome", unit="F"), text("done")]
    agent = Agent(ScriptedModel(turns), tools=[weather], trace=tmp_path, context=Context(rationale=False))
    await agent.run("Go.", run_id="run")
    other = [call("weather", city="Rome", unit="K"), text("done")]
    outcome = await replay(tmp_path / "run.jsonl", {"model": ScriptedModel(other)}, on_missing="lenient", trace=None)
    assert outcome.verdict == "inconclusive"
    assert outcome.stopped is not None
    assert "its key (city)" in outcome.stopped
