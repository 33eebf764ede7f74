"""Each call gets the answer that was recorded for it: for its owner, its place and the state it was given in."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import Agent, Approval, ToolContext, tool
from playhead.replay import MissedCall, replay, reproduce
from playhead.replay.history import State, read_past
from playhead.replay.matching import Asked, Matcher
from playhead.testing import ScriptedModel, Turn, call, calls, text
from playhead.trace.events import ApprovalDecided
from tests.kernel.runs import make_agent, record
from tests.replay.stores import Scripts, ScriptsModel, Store, record_store, store_agent

if TYPE_CHECKING:
    from playhead.replay import ReplayResult
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


def found(matcher: Matcher, which: Asked, now: int | None = 0) -> tuple[int, str] | None:
    """Return the event of the recorded call that is served, and how."""
    match = matcher.take(which, now)
    return None if match is None else (match.call.seq, match.rung)


def rungs(result: ReplayResult) -> list[tuple[str, str | None, Any]]:
    """Return tool, rung and result or error of every call of the root, in the order of the file."""
    done = (each.completed for each in result.recording.root.calls.values())
    return [(each.tool, each.rung, each.result if each.ok else each.error and each.error.type) for each in done if each]


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
    before, _, after = (each.seq for each in read_past(recording).calls)
    assert found(Matcher(read_past(recording)), asked(recording, 0), 1) == (after, "reordered")
    assert found(Matcher(read_past(recording)), asked(recording, 2), 0) == (before, "reordered")
    assert found(Matcher(read_past(recording)), asked(recording, 2), 7) == (after, "stale")
    assert found(Matcher(read_past(recording)), asked(recording, 2), None) == (after, "stale")


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
        calls(call("read", key="a"), call("act", key="a"), call("act", kee="a"), call("none", key="a")),
        calls(call("act", key="fail"), call("slow", key="a"), call("pay", key="yes"), call("pay", key="no")),
        calls(call("read", key="b")),
        text("done"),
    ]

    def approver(request: Any) -> bool:
        return bool(request.arguments["key"] == "yes")

    ran = await record(tmp_path, turns, act, slow, read, pay, approver=approver)
    past = read_past(ran.recording)
    effects = [each for each in past.calls if each.effect]
    assert [(each.started.tool, each.started.args) for each in effects] == [
        ("act", {"key": "a"}),
        ("act", {"key": "fail"}),
        ("slow", {"key": "a"}),
        ("pay", {"key": "yes"}),
    ]
    assert past.calls[-1].effects_before == 4
    result = await replay(ran.recording, {"model": ScriptedModel(turns)}, trace=None)
    assert (result.verdict, dict(result.rungs)) == ("same", {"exact": 8})


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
    assert [(each.owner, each.started.tool, each.effect, each.effects_before) for each in past.calls] == [
        ("root", "outer", True, 0),
        ("root", "act", True, 1),
    ]
    assert (await replay(recording, {"model": ScriptedModel(turns)}, trace=None)).verdict == "same"
    dropped = await replay(recording, {"model": ScriptedModel(turns[1:])}, on_missing="lenient", trace=None)
    assert rungs(dropped) == [("act", "stale", "b")]


def test_what_parts_two_states() -> None:
    """The message names the side effect that is missing, or the one too many."""
    past = [("root", "put", "1"), ("root", "put", "2")]
    from playhead.replay.history import Effect

    state = State([Effect(*each) for each in past])
    assert state.now == 0
    assert state.difference(1) == "before it the recording has the side effect put by root, the replay none"
    state.add(Effect(*past[0]))
    assert state.now == 1
    assert state.difference(0) == "the replay has done put by root before it, which the recording has not"
    state.add(Effect("root/child", "pay", "3"))
    assert state.now is None
    assert state.difference(1) == "the replay has done pay by root/child before it, which the recording has not"
    assert state.difference(2) == (
        "before it the recording has the side effect put by root, the replay pay by root/child"
    )
    state.add(Effect(*past[1]))
    assert state.now is None


async def test_a_read_from_before_a_write_is_not_served_after_it() -> None:
    """Strict stops there and says which side effect is too many or missing; lenient marks it."""
    get, put = ("get", {"key": "a"}), ("put", {"key": "a", "value": 5})
    recording = await record_store({"Do it.": [(get,), (put,)]}, ())
    model = ScriptsModel({"Do it.": [(put,), (get,)]})
    strict = await replay(recording, {"model": model}, trace=None)
    assert rungs(strict) == [("put", "reordered", ["root", "put", "a", 5, 5]), ("get", None, "Cancelled")]
    assert strict.stopped is not None
    assert "in another state of the world" in strict.stopped
    assert "the replay has done put by root before it, which the recording has not" in strict.stopped
    lenient = await replay(recording, {"model": model}, on_missing="lenient", trace=None)
    assert rungs(lenient) == [
        ("put", "reordered", ["root", "put", "a", 5, 5]),
        ("get", "stale", ["root", "get", "a", 0, 0]),
    ]
    assert (lenient.grounded, lenient.verdict) == (0.5, "inconclusive")
    diverged = [record.event for record in lenient.recording.records if record.kind == "replay-diverged"]
    assert len(diverged) == 1


async def test_a_lenient_miss_does_nothing_to_the_state() -> None:
    """The model was told that nothing happened, so what is read then is what was recorded."""
    get, put = ("get", {"key": "a"}), ("put", {"key": "a", "value": 5})
    recording = await record_store({"Do it.": [(get,)]}, ())
    result = await replay(
        recording, {"model": ScriptsModel({"Do it.": [(put,), (get,)]})}, on_missing="lenient", trace=None
    )
    assert rungs(result) == [
        ("put", "synthetic-error", "NoRecording"),
        ("get", "reordered", ["root", "get", "a", 0, 0]),
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
    assert rungs(result)[0] == ("read", "stale", "a")
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
    assert rungs(same) == [("number", "exact", 1), ("act", "exact", "a"), ("number", "exact", 1)]
    more = [calls(*[call("number", key="a")] * 4), text("done")]
    result = await replay(recording, {"model": ScriptedModel(more)}, trace=None)
    assert [each[2] for each in rungs(result)] == [1, 1, 1, 1]
    late = [call("act", key="a"), call("number", key="a"), text("done")]
    result = await replay(recording, {"model": ScriptedModel(late)}, on_missing="lenient", trace=None)
    assert rungs(result)[1] == ("number", "stale", 1)


# --- owners ---------------------------------------------------------------------------------------------------------


def researcher(delays: dict[str, float] | None = None) -> Agent:
    """Return an agent whose one tool answers by the task of who asks."""

    @tool(read_only=True)
    async def lookup(key: str, context: ToolContext) -> str:
        """Look up, for one task otherwise than for the next."""
        state = context.session.state
        task = next(each.content for each in state.thread.messages if each.role == "user") if state else ""
        await anyio.sleep((delays or {}).get(str(task), 0))
        return f"{key} for {task}"

    return Agent(_Researching(), name="researcher", tools=[lookup], meta_tools=(), rationale=False)


class _Researching(ScriptedModel):
    """Looks one thing up, and says what it was told."""

    def __init__(self) -> None:
        super().__init__([])

    async def complete(self, request: Any) -> Any:
        self._queue = [call("lookup", key="x") if request.number == 0 else text(str(request.messages[-1].content))]
        self._next = 0
        return await super().complete(request)


class _Leading(_Researching):
    """The root's turns for the root, and the researcher's for those below."""

    def __init__(self, turns: list[Turn]) -> None:
        super().__init__()
        self._own = turns

    async def complete(self, request: Any) -> Any:
        task = next(each.content for each in request.messages if each.role == "user")
        if task != "Do it.":
            return await super().complete(request)
        self._queue, self._next = [self._own[request.number]], 0
        return await ScriptedModel.complete(self, request)


def tasks(*names: str) -> Turn:
    """Return a turn that calls the researcher with each of these tasks."""
    return calls(*(call("researcher", task=name) for name in names))


def children(result: ReplayResult) -> list[tuple[str, str | None, Any]]:
    """Return what each researcher was told, in the order of the calls."""
    below = {owner: each for owner, each in result.recording.owners.items() if owner != "root"}
    done = {owner: next(iter(each.calls.values())).completed for owner, each in sorted(below.items()) if each.calls}
    return [
        (owner, each.rung, each.result if each.ok else each.error and each.error.type)
        for owner, each in done.items()
        if each
    ]


async def record_tasks(folder: Path, *turns: Turn) -> Recording:
    """Record a run whose researchers were slower the earlier they were asked."""
    agent = make_agent(folder, _Leading([*turns, text("done")]), researcher({"north": 0.02, "south": 0.01}))
    result = await agent.run("Do it.")
    assert result.trace_path is not None
    from playhead import load_recording

    return load_recording(result.trace_path)


@pytest.mark.parametrize("order", [("north", "south", "east"), ("south", "east", "north"), ("east", "north", "south")])
async def test_agents_beside_each_other_get_their_own_results(order: tuple[str, ...], tmp_path: Path) -> None:
    """Same agent, same call, three tasks: in whatever order they are asked for, each has what was recorded for its task."""
    recording = await record_tasks(tmp_path, tasks("north", "south", "east"))
    result = await replay(recording, {"model": _Leading([tasks(*order), text("done")])}, trace=None)
    assert children(result) == [
        (f"root/researcher@0.{place}", "exact", f"x for {task}") for place, task in enumerate(order)
    ]
    assert result.grounded == 1.0


async def test_an_agent_is_found_again_in_another_turn(tmp_path: Path) -> None:
    """Its name says where it was called; its results follow its task, the second of equal tasks the second ones."""
    recording = await record_tasks(tmp_path, tasks("north"), tasks("south"), tasks("north"))
    turns = [tasks("south"), tasks("north", "north"), text("done")]
    result = await replay(recording, {"model": _Leading(turns)}, trace=None)
    assert children(result) == [
        ("root/researcher@0.0", "exact", "x for south"),
        ("root/researcher@1.0", "exact", "x for north"),
        ("root/researcher@1.1", "exact", "x for north"),
    ]


async def test_a_new_task_is_entered_and_never_given_a_choice(tmp_path: Path) -> None:
    """With one recorded agent of its name it gets that one's results; with two that differ, the replay stops."""
    one = await record_tasks(tmp_path, tasks("north"))
    result = await replay(one, {"model": _Leading([tasks("west"), text("done")])}, trace=None)
    assert children(result) == [("root/researcher@0.0", "reordered", "x for north")]
    two = await record_tasks(tmp_path, tasks("north", "south"))
    for policy in ("strict", "lenient", lambda _: "made up"):
        result = await replay(two, {"model": _Leading([tasks("west"), text("done")])}, on_missing=policy, trace=None)
        assert result.stopped is not None
        assert "root/researcher@0.0 (event" in result.stopped
        assert (
            "answered differently, so nothing says which answer is right. Give it with tool_results=" in result.stopped
        )
        assert (result.verdict, result.grounded) == ("inconclusive", 0.0)
    overrides = {"model": _Leading([tasks("west"), text("done")]), "tool_results": {"lookup": "x for west"}}
    assert children(await replay(two, overrides, trace=None)) == [("root/researcher@0.0", "override", "x for west")]


async def test_a_new_task_gets_nothing_of_one_that_is_found_again(tmp_path: Path) -> None:
    """What was recorded for a task that the replay has too belongs to that one, wherever it stands in the turn."""
    recording = await record_tasks(tmp_path, tasks("north", "south"))
    turns = [tasks("west", "south", "north"), text("done")]
    result = await replay(recording, {"model": _Leading(turns)}, on_missing="lenient", trace=None)
    assert children(result)[1:] == [
        ("root/researcher@0.1", "exact", "x for south"),
        ("root/researcher@0.2", "exact", "x for north"),
    ]


async def test_an_agent_that_was_never_recorded_is_a_miss(tmp_path: Path) -> None:
    """There is no header to build it from: strict stops, lenient tells the model, a function may answer for it."""
    turns = [tasks("north"), text("done")]
    agent = make_agent(tmp_path, _Leading([text("done")]), researcher())
    await agent.run("Do it.", run_id="none")
    path = tmp_path / "none.jsonl"
    strict = await replay(path, {"model": _Leading(turns)}, trace=None)
    assert strict.stopped is not None
    assert "the recording holds no run of this agent there" in strict.stopped
    lenient = await replay(path, {"model": _Leading(turns)}, on_missing="lenient", trace=tmp_path)
    assert rungs(lenient) == [("researcher", "synthetic-error", "NoRecording")]
    made = await replay(path, {"model": _Leading(turns)}, on_missing=lambda _: "made up", trace=tmp_path)
    assert rungs(made) == [("researcher", "simulated", "made up")]
    for each in (lenient, made):
        assert (await reproduce(each.recording)).identical
    code = await replay(path, {"model": _Leading(turns)}, agent=agent, on_missing="lenient", trace=None)
    assert children(code) == [("root/researcher@0.0", "synthetic-error", "NoRecording")]


# --- what there is no recording of ----------------------------------------------------------------------------------


async def test_a_miss_names_the_nearest_recorded_call() -> None:
    """What was asked, what was recorded instead, and what differs; or that it has been served."""
    get = ("get", {"key": "a"})
    recording = await record_store({"Do it.": [(get,)]}, ())
    other = await replay(recording, {"model": ScriptsModel({"Do it.": [(("get", {"key": "b"}),)]})}, trace=None)
    seq = read_past(recording).calls[0].seq
    assert other.stopped == (
        'replay_stopped: root calls get({"key": "b"}) in turn 0, place 0; the nearest recorded call is get '
        f'(event {seq}): arguments {{"key": "a"}}'
    )
    again = await replay(recording, {"model": ScriptsModel({"Do it.": [(get,), (get,)]})}, trace=None)
    assert again.stopped == (
        f'replay_stopped: root calls get({{"key": "a"}}) in turn 1, place 0; it was recorded once (event {seq}), '
        "and it has been served already or is another call's"
    )
    assert (again.verdict, again.grounded) == ("inconclusive", 0.5)
    assert isinstance(again.run.steps, tuple)
    lenient = await replay(
        recording, {"model": ScriptsModel({"Do it.": [(get,), (get,)]})}, on_missing="lenient", trace=None
    )
    assert (dict(lenient.rungs), lenient.stopped, lenient.run.status) == (
        {"exact": 1, "synthetic-error": 1},
        None,
        "done",
    )


async def test_a_function_answers_what_was_not_recorded(tmp_path: Path) -> None:
    """It is told the call and why; sync or async; what it raises is a failed call, and its side effects count."""
    get, put = ("get", {"key": "a"}), ("put", {"key": "b", "value": 2})
    recording = await record_store({"Do it.": [(get,), (get,)]}, ())
    model = ScriptsModel({"Do it.": [(put,), (get,)]})
    missed: list[MissedCall] = []

    async def simulate(call: MissedCall) -> Any:
        await anyio.lowlevel.checkpoint()
        missed.append(call)
        if call.tool == "put":
            return {"put": call.arguments["value"]}
        raise ValueError("no idea")

    result = await replay(recording, {"model": model}, on_missing=simulate, trace=tmp_path)
    assert rungs(result) == [("put", "simulated", {"put": 2}), ("get", "simulated", "ValueError")]
    assert [(each.tool, each.owner, each.iteration, each.position, each.stale) for each in missed] == [
        ("put", "root", 0, 0, None),
        ("get", "root", 1, 0, ["root", "get", "a", 0, 0]),
    ]
    assert "in another state of the world" in missed[1].why
    assert (await reproduce(result.recording)).identical
    sync = await replay(recording, {"model": model}, on_missing=lambda call: call.tool, trace=None)
    assert rungs(sync) == [("put", "simulated", "put"), ("get", "simulated", "get")]


async def test_recorded_failures_come_back_as_failures(tmp_path: Path) -> None:
    """A body that raised, a time-out, a refusal: what the model was told then, it is told again."""

    @tool(read_only=True, timeout=0.01)
    async def fail(how: str) -> str:
        """Fail."""
        if how == "slow":
            await anyio.sleep(1)
        raise ValueError(how)

    turns = [calls(call("fail", how="a"), call("fail", how="slow"), call("fail", hwo="a")), text("done")]
    ran = await record(tmp_path, turns, fail)
    result = await replay(ran.recording, {"model": ScriptedModel(turns)}, trace=tmp_path)
    assert [each[2] for each in rungs(result)] == ["ValueError", "Timeout", "InvalidArguments"]
    assert result.verdict == "same"
    assert [step.content for step in result.run.steps] == [step.content for step in ran.result.steps]
    assert (await reproduce(result.recording)).identical


# --- approvals ------------------------------------------------------------------------------------------------------


@tool(requires_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def sensible(request: Any) -> Approval:
    """Approve what is small."""
    return Approval(approved=request.arguments["amount"] < 10, why="by size", by="ann")


async def test_approvals_answer_as_they_did(tmp_path: Path) -> None:
    """The decision on the same call is served, wherever the call stands now; what was denied is denied again."""
    turns = [call("pay", amount=5), call("pay", amount=50), text("done")]
    recording = (await record(tmp_path, turns, pay, approver=sensible)).recording
    result = await replay(
        recording, {"model": ScriptedModel([turns[1], turns[0], text("done")])}, on_missing="lenient", trace=tmp_path
    )
    decided = [each.event for each in result.recording.records if isinstance(each.event, ApprovalDecided)]
    said = [(each.approved, each.why, each.by) for each in decided]
    assert said == [(False, "by size", "ann"), (True, "by size", "ann")]
    # The recorded denial came after a payment, and the state of then is not that of now.
    assert dict(result.rungs) == {"stale": 1, "reordered": 1}
    assert [each[2] for each in rungs(result)] == ["ApprovalDenied", "paid 5"]
    assert (await reproduce(result.recording)).identical


@pytest.mark.parametrize("policy", ["strict", "lenient", lambda _: "paid, or so"])
async def test_nobody_is_asked_for_a_call_that_was_not_recorded(policy: Any, tmp_path: Path) -> None:
    """It never gets as far as an approval, and the replay's recording reproduces without one."""
    recording = (await record(tmp_path, [call("pay", amount=5), text("done")], pay, approver=sensible)).recording
    model = ScriptedModel([call("pay", amount=7), text("done")])
    result = await replay(recording, {"model": model}, on_missing=policy, trace=tmp_path)
    asked_for = [record.event for record in result.recording.records if record.kind == "approval-decided"]
    assert len(asked_for) == callable(policy)
    again = await reproduce(result.recording)
    assert (again.identical, again.cut_short) == (True, policy == "strict"), again.divergences


async def test_an_overridden_call_needs_no_approval(tmp_path: Path) -> None:
    """Nothing runs, so nobody has to say yes."""
    recording = (await record(tmp_path, [call("pay", amount=5), text("done")], pay, approver=sensible)).recording
    model = ScriptedModel([call("pay", amount=50), text("done")])
    result = await replay(recording, {"model": model, "tool_results": {"pay": "paid"}}, trace=tmp_path)
    assert rungs(result) == [("pay", "override", "paid")]
    assert (await reproduce(result.recording)).identical


async def test_a_fact_that_was_never_asked_for_stops_loudly(tmp_path: Path) -> None:
    """With code that asks more than was recorded there is no answer, whatever the policy: nobody is asked instead."""

    @tool(name="pay", read_only=True)
    def free(amount: int) -> str:
        """Pay."""
        return "paid"

    recording = (await record(tmp_path, [call("pay", amount=5), text("done")], free)).recording

    def refuse(_: Any) -> bool:
        raise AssertionError("asked")

    agent = make_agent(None, [call("pay", amount=5), text("done")], pay, approver=refuse)
    result = await replay(recording, agent=agent, on_missing="lenient", trace=None)
    assert result.stopped is not None
    assert "asks for the fact 'approval', which was not recorded for it; a replay asks nobody" in result.stopped


# --- twice ----------------------------------------------------------------------------------------------------------


async def test_one_recording_is_replayed_twice_at_once(tmp_path: Path) -> None:
    """Replays share nothing but the recording."""
    recording = await record_tasks(tmp_path, tasks("north", "south"), tasks("east"))
    results: list[ReplayResult] = []

    async def once(*turns: Turn) -> None:
        results.append(await replay(recording, {"model": _Leading([*turns, text("done")])}, trace=tmp_path))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(once, tasks("north", "south"), tasks("east"))
            group.start_soon(once, tasks("east", "south"), tasks("north"))
    assert sorted(result.verdict for result in results) == ["changed"] * 3 + ["same"] * 3
    assert {result.grounded for result in results} == {1.0}
    assert len({result.run.run_id for result in results}) == 6


async def test_code_and_recording_are_served_alike() -> None:
    """With `agent=` the tools come from code, and every answer still from the recording."""
    scripts: Scripts = {
        "Do it.": [(("put", {"key": "a", "value": 5}),), (("writer", {"task": "north"}),)],
        "north": [(("get", {"key": "a"}),)],
    }
    recording = await record_store(scripts, ("writer",))
    store = Store()
    result = await replay(recording, agent=store_agent(store, scripts, ("writer",)), trace=None)
    assert (result.verdict, dict(result.rungs), store.ran) == ("same", {"exact": 2}, 0)


async def test_a_recording_without_a_file() -> None:
    """A recording may be in memory only."""
    recording = await record_store({"Do it.": []}, ())
    assert recording.path == Path(f"{recording.run_id}.jsonl")
    result = await replay(recording, {"model": ScriptsModel({"Do it.": []})}, trace=None)
    assert (result.verdict, result.run.trace_path) == ("same", None)
