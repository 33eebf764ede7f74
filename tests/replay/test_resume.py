"""Going on with a run that died: what is served, what is asked again, what is refused, and what counts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import Agent, PlayheadError, ToolContext, UsageError, load_recording, tool
from playhead.compose import killswitches as ks
from playhead.errors import DivergedError, NotReplayableError, UnresolvedCallError
from playhead.kernel.session import Session
from playhead.replay import DID_NOT_HAPPEN, ResultOverride, reproduce, resume, resume_sync
from playhead.testing import ScriptedModel, call, calls, error, text
from playhead.trace.types import Usage
from tests.again import replay_sync
from tests.replay.resumed_shop import DONE, SHOP, charge, dead, look, make, once, pay, script

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()


async def test_it_goes_on_from_where_it_died(tmp_path: Path) -> None:
    """Nothing is done twice, what was not done again is marked, and the new trace is whole and reproduced by itself."""
    path = await dead(tmp_path, make(tmp_path), "tool-call-completed", 2)
    model = ScriptedModel(SHOP)
    result = await resume(make(None, model), path, run_id="on")
    assert (result.output, result.terminated_by, result.iterations) == ("Charged.", "end_turn", 3)
    assert DONE == ["charged 5"]
    assert [request.number for request in model.requests] == [2]
    assert result.trace_path == path.parent / "on.jsonl"
    recording = load_recording(result.trace_path)
    assert recording.header.resumed_from == "whole"
    marks: list[Any] = [record.event for record in recording.records if record.kind in ("replay-served", "run-resumed")]
    told = [(each.rung, each.request, each.call_id) if hasattr(each, "rung") else each.caught_up_with for each in marks]
    assert told == [
        ("exact", 0, ""),
        ("exact", None, "call_0_0"),
        ("exact", 1, ""),
        ("exact", None, "call_1_0"),
        "whole",
    ]
    rungs = [record.event.rung for record in recording.records if record.kind == "tool-call-completed"]  # type: ignore[attr-defined]
    assert rungs == ["exact", "exact", None]
    assert (await reproduce(recording)).identical
    assert (await reproduce(recording, agent=make(None))).identical


async def test_an_unresolved_call_stops_before_anything_happens(tmp_path: Path) -> None:
    """The error names the call, its arguments and its line, and how to answer; nothing ran, and no trace was made."""
    path = await dead(tmp_path, make(tmp_path), "tool-call-started", 3)
    model = ScriptedModel(SHOP)
    with pytest.raises(UnresolvedCallError) as caught:
        await resume(make(None, model), path)
    said = str(caught.value)
    line = len(path.read_bytes().splitlines())
    for part in ("unresolved-call", 'charge({"amount":5})', "'call_1_1'", "root", f"line {line} ", "DID_NOT_HAPPEN"):
        assert part in said
    (unresolved,) = caught.value.calls
    assert (unresolved.tool, unresolved.arguments, unresolved.line) == ("charge", {"amount": 5}, line)  # type: ignore[attr-defined]
    assert (DONE, model.requests) == ([], [])
    assert sorted(each.name for each in path.parent.iterdir()) == ["whole.jsonl"]


ANSWERS: dict[str, tuple[Any, list[str], str]] = {
    "result": (ResultOverride("charge", result="receipt 9"), [], "receipt 9"),
    "error": (ResultOverride("charge", error="card expired"), [], "error: card expired"),
    "did not happen": (DID_NOT_HAPPEN, ["charged 5"], "receipt 5"),
}


@pytest.mark.parametrize("name", ANSWERS)
async def test_the_caller_says_what_became_of_it(tmp_path: Path, name: str) -> None:
    """It returned, it failed, or it did nothing and runs: the model is told that, and the recording is reproduced."""
    answer, done, told = ANSWERS[name]
    path = await dead(tmp_path, make(tmp_path), "tool-call-started", 3)
    model = ScriptedModel(SHOP)
    result = await resume(make(None, model), path, unresolved={"call_1_1": answer})
    assert (DONE, result.output) == (done, "Charged.")
    assert model.requests[-1].messages[-1].content == told
    assert result.trace_path is not None
    completed = load_recording(result.trace_path).root.calls["call_1_1"].completed
    assert completed is not None
    assert completed.rung == (None if answer is DID_NOT_HAPPEN else "override")
    assert (await reproduce(result.trace_path)).identical


async def test_a_body_that_called_tools_is_not_run_again_unasked(tmp_path: Path) -> None:
    """A read-only tool whose body called tools is unresolved: what its body did would be done again, and that is said."""

    @tool(read_only=True)
    async def sneak(amount: int, context: ToolContext) -> str:
        """Charge twice from inside."""
        await context.tools.call("charge", amount=amount)
        return str(await context.tools.call("charge", amount=amount + 1))

    turns = script(call("sneak", amount=5), text("Done."))
    path = await dead(tmp_path, make(tmp_path, turns, charge, sneak), "tool-call-started", 3)
    with pytest.raises(UnresolvedCallError) as caught:
        await resume(make(None, turns, charge, sneak), path)
    (unresolved,) = caught.value.calls
    assert (unresolved.tool, DONE) == ("sneak", [])  # type: ignore[attr-defined]
    assert "its body runs again, with all calls that it makes" in str(caught.value)


async def test_wrong_answers_are_refused(tmp_path: Path) -> None:
    """A call that waits for no word, another tool, a filter, or anything else is an error that says what is right."""
    path = await dead(tmp_path, make(tmp_path), "tool-call-started", 3)
    for given, message in (
        ({"call_1_2": DID_NOT_HAPPEN}, "Did you mean 'call_1_1'"),
        ({"call_1_1": ResultOverride("look", result=1)}, "takes ResultOverride"),
        ({"call_1_1": ResultOverride("charge", arguments={"amount": 5}, result=1)}, "takes ResultOverride"),
        ({"call_1_1": "receipt"}, "takes ResultOverride"),
    ):
        with pytest.raises(UsageError, match=message):
            await resume(make(None), path, unresolved=given)  # type: ignore[arg-type]
    assert DONE == []


CHANGES: dict[str, Callable[[], Agent]] = {
    "system_prompt": lambda: make(None, SHOP, system_prompt="Be bold."),
    "model": lambda: make(None, ScriptedModel(SHOP, name="scripted/other")),
    "tools": lambda: make(None, SHOP, look),
    "read_only": lambda: make(None, SHOP, look, tool(read_only=True)(charge.function)),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_other_code_is_refused_before_anything_is_live(tmp_path: Path, name: str) -> None:
    """What would make another request stops, with where and what; no model is asked, no tool runs, no trace is made."""
    path = await dead(tmp_path, make(tmp_path), "tool-call-completed", 2)
    agent = CHANGES[name]()
    with pytest.raises(DivergedError, match="Nothing was run"):
        await resume(agent, path)
    assert (DONE, agent.model.requests) == ([], [])  # type: ignore[attr-defined]
    assert sorted(each.name for each in path.parent.iterdir()) == ["whole.jsonl"]


async def test_code_that_changes_its_mind_is_stopped_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes out the same in the rehearsal and another way in the run itself is caught before the first live request."""
    path = await dead(tmp_path, make(tmp_path), "tool-call-completed", 2)
    runs: list[Session] = []
    original = Session.emit

    def emit(self: Session, event: Any) -> None:
        if self not in runs:
            runs.append(self)
        if len(runs) == 2 and event.kind == "message-added" and event.role == "user":
            event = event.model_copy(update={"content": "Other."})
        original(self, event)

    monkeypatch.setattr(Session, "emit", emit)
    model = ScriptedModel(SHOP)
    with pytest.raises(DivergedError, match="content of the user message differs"):
        await resume(make(None, model), path, run_id="on")
    assert (DONE, model.requests) == ([], [])
    ending = load_recording(path.parent / "on.jsonl").ending
    assert ending is not None
    assert ending.terminated_by == "replay_stopped"
    monkeypatch.undo()
    assert (await resume(make(None), path)).output == "Charged."  # nothing of the other one was live


async def test_what_is_over_is_refused(tmp_path: Path) -> None:
    """A run with an answer, a replay, and a file that was changed say why."""
    result = await make(tmp_path).run("Do it.", run_id="run")
    with pytest.raises(NotReplayableError, match="it has its answer"):
        await resume(make(None), tmp_path / "run.jsonl")
    played = await anyio.to_thread.run_sync(
        lambda: replay_sync(tmp_path / "run.jsonl", {"model": ScriptedModel(SHOP)}, trace=tmp_path / "replays")
    )
    assert played.run.trace_path is not None
    with pytest.raises(NotReplayableError, match="is a replay of run"):
        await resume(make(None), played.run.trace_path)
    assert result.trace_path is not None
    changed = tmp_path / "changed.jsonl"
    changed.write_bytes(result.trace_path.read_bytes().replace(b"receipt 5", b"receipt 6"))
    with pytest.raises(NotReplayableError, match="is not what was written"):
        await resume(make(None), changed)


async def test_a_run_that_its_provider_failed_goes_on(tmp_path: Path) -> None:
    """The request that was not answered is asked again; what came before it is not."""
    turns = [call("charge", amount=5), error("no such model")]
    with pytest.raises(PlayheadError):
        await make(tmp_path, turns).run("Do it.", run_id="run")
    DONE.clear()
    model = ScriptedModel(script(None, text("Charged.")))
    result = await resume(make(None, model), tmp_path / "run.jsonl")
    assert (result.output, DONE, [each.number for each in model.requests]) == ("Charged.", [], [1])
    assert result.trace_path is not None
    assert (await reproduce(result.trace_path)).identical


async def test_the_memory_of_the_run_is_there_again(tmp_path: Path) -> None:
    """A cacheable call that was answered before it died is answered from memory after it."""
    turns = script(call("once", key="a"), call("once", key="a"), text("Done."))
    path = await dead(tmp_path, make(tmp_path, turns, once), "llm-responded", 2)
    result = await resume(make(None, turns, once), path)
    assert (DONE, [step.content for step in result.steps if step.type == "observation"]) == ([], ["1", "1"])


async def test_approvals(tmp_path: Path) -> None:
    """A yes that was given holds; where nobody had answered, the killswitch's own approver is asked again."""
    turns = script(call("pay", amount=1), call("look", key="a"), text("Done."))
    asked: list[str] = []

    def approver(request: Any) -> bool:
        asked.append(request.tool)
        return True

    def under(folder: Path | None) -> Agent:
        switch = ks.require_approval_for(["look"], approver)
        return make(folder, turns, pay, look, compose=[switch], approver=approver)

    await under(tmp_path).run("Do it.", run_id="whole")
    lines = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["kind"] for line in lines]
    expected = {"approval-requested": [["pay", "look"], ["look"]], "fact-recorded": [["look"], []]}
    for kind, after in expected.items():
        for nth, wanted in enumerate(after):
            at = [place for place, each in enumerate(kinds) if each == kind][nth]
            path = tmp_path / f"{kind}-{nth}" / "whole.jsonl"
            path.parent.mkdir()
            path.write_bytes(b"".join(lines[: at + 1]))
            asked.clear()
            DONE.clear()
            result = await resume(under(None), path)
            assert (asked, result.output) == (wanted, "Done.")
            assert DONE.count("paid 1") == (nth == 0)


async def test_hooks_are_asked_from_the_point_of_death_on(tmp_path: Path) -> None:
    """What they saw before they are not shown again; what they changed stays changed."""
    seen: list[str] = []

    def hooks(harness: Any) -> None:
        harness.on(
            "message.tool-result", lambda message, _: message.model_copy(update={"content": message.content.upper()})
        )
        harness.tap("message.tool-result", lambda message, _: seen.append(message.content))

    path = await dead(tmp_path, make(tmp_path, SHOP, compose=[hooks]), "llm-responded", 2)
    seen.clear()
    model = ScriptedModel(SHOP)
    await resume(make(None, model, compose=[hooks]), path)
    assert seen == ["FOUND B", "RECEIPT 5"]
    assert [message.content for message in model.requests[0].messages if message.role == "tool"] == [
        "FOUND A", "FOUND B", "RECEIPT 5",
    ]  # fmt: skip


async def test_holes_are_filled_or_refused(tmp_path: Path) -> None:
    """A live model is not sent a redacted text: the values are given, stay out of the new trace, and reach tools and hooks."""

    def hide(value: str) -> str:
        return value.replace("4111-1111", "[redacted:card]")

    def shout(harness: Any) -> None:
        harness.on(
            "message.tool-result", lambda message, _: message.model_copy(update={"content": f"{message.content}!"})
        )

    turns = script(call("look", key="4111-1111"), call("look", key="4111-1111"), text("Done."))
    options = {"redact": [hide], "compose": [shout]}
    path = await dead(tmp_path, make(tmp_path, turns, **options), "llm-requested", 2)
    model = ScriptedModel(turns)
    with pytest.raises(NotReplayableError, match=r"rebind=\{NAME"):
        await resume(make(None, model, **options), path)
    assert model.requests == []
    result = await resume(make(None, model, **options), path, rebind={"card": "4111-1111"})
    assert (DONE, result.output) == (["looked 4111-1111"], "Done.")
    assert [message.content for message in model.requests[0].messages][-1] == "found 4111-1111!"
    assert result.trace_path is not None
    assert b"4111-1111" not in result.trace_path.read_bytes()


async def test_a_run_that_was_cancelled_goes_on(tmp_path: Path) -> None:
    """What was cancelled has no answer: a read-only call runs again, of another one the caller has to say what it did."""

    @tool(timeout=None)
    async def hang() -> str:
        """Wait for ever, the first time."""
        DONE.append("hung")
        if len(DONE) == 1:
            await anyio.sleep_forever()
        return "back"

    for read_only in (True, False):
        hanging = tool(read_only=read_only, timeout=None)(hang.function)
        turns, name = script(call("hang"), text("Done.")), f"run-{read_only}"
        DONE.clear()
        with anyio.move_on_after(0.05):
            await make(tmp_path, turns, hanging).run("Do it.", run_id=name)
        assert load_recording(tmp_path / f"{name}.jsonl").ending is not None
        if not read_only:
            with pytest.raises(UnresolvedCallError, match="hang"):
                await resume(make(None, turns, hanging), tmp_path / f"{name}.jsonl")
        said = {} if read_only else {"call_0_0": DID_NOT_HAPPEN}
        result = await resume(make(None, turns, hanging), tmp_path / f"{name}.jsonl", unresolved=said)
        assert (result.output, DONE) == ("Done.", ["hung", "hung"])
        assert result.trace_path is not None
        assert (await reproduce(result.trace_path)).identical


async def test_an_agent_that_its_own_deadline_ended_stays_ended(tmp_path: Path) -> None:
    """When the agent above it went on and died later, its answer is served as a whole; it is not entered again."""

    @tool(read_only=True, timeout=None)
    async def hang() -> str:
        """Wait for ever."""
        DONE.append("hung")
        await anyio.sleep_forever()
        return "never"

    below = make(
        None, script(call("look", key="a"), call("hang")), look, hang, name="below", compose=[ks.timeout_after(0.1)]
    )
    turns = script(call("below", task="Wait."), call("charge", amount=5), text("Charged."))
    path = await dead(tmp_path, make(tmp_path, turns, below, charge), "llm-responded", 4)
    result = await resume(make(None, turns, below, charge), path)
    assert (result.output, DONE) == ("Charged.", ["charged 5"])
    assert result.trace_path is not None
    assert (await reproduce(result.trace_path)).not_entered == ("root/below@0.0",)


def test_sync(tmp_path: Path) -> None:
    """The same, for callers without a loop."""
    path = anyio.run(dead, tmp_path, make(tmp_path), "tool-call-completed", 2)
    assert resume_sync(make(None), path, run_id="on").output == "Charged."


# --- one at a time, once, and from all that is known ------------------------------------------------------------------


async def test_a_run_is_resumed_once(tmp_path: Path) -> None:
    """A second time needs the caller's word; and while somebody holds it, nobody else can."""
    path = await dead(tmp_path, make(tmp_path), "tool-call-completed", 2)
    await resume(make(None), path, run_id="on")
    with pytest.raises(UsageError, match=r"has been resumed already, by on\.jsonl"):
        await resume(make(None), path)
    assert DONE == ["charged 5"]
    assert (await resume(make(None), path, again=True)).output == "Charged."
    assert DONE == ["charged 5"] * 2


@pytest.mark.parametrize("name", ["run", "copy"])
async def test_a_run_that_goes_on_is_not_resumed(tmp_path: Path, name: str) -> None:
    """Its process holds it, and with it each copy."""
    refused: list[str] = []

    @tool
    async def meanwhile() -> str:
        """Resume the run that this is."""
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes((tmp_path / "run.jsonl").read_bytes())
        with pytest.raises(UsageError) as caught:
            await resume(make(None, SHOP, meanwhile), path)
        refused.append(str(caught.value))
        return "refused"

    await make(tmp_path, script(call("meanwhile"), text("Done.")), meanwhile).run("Do it.", run_id="run")
    assert "run is not dead" in refused[0]


async def test_a_resumption_that_dies_is_resumed(tmp_path: Path) -> None:
    """From its own trace when it had gone on; one that had not caught up refers to the run that it continues."""
    path = await dead(tmp_path, make(tmp_path), "llm-responded", 1)
    await resume(make(None), path, run_id="on")
    lines = (path.parent / "on.jsonl").read_bytes().splitlines(keepends=True)
    live = next(place for place, line in enumerate(lines) if b"caught_up_with" in line)
    DONE.clear()
    again = tmp_path / "again"
    again.mkdir()
    (again / "on.jsonl").write_bytes(b"".join(lines[:live]))
    with pytest.raises(NotReplayableError, match=r"had not caught up with whole. Resume that one"):
        await resume(make(None), again / "on.jsonl")
    (again / "on.jsonl").write_bytes(b"".join(lines[: live + 4]))
    result = await resume(make(None), again / "on.jsonl")
    assert (result.output, DONE) == ("Charged.", ["looked b", "charged 5"])


async def test_a_copy_that_is_not_all_of_the_run(tmp_path: Path) -> None:
    """What it does not hold has happened all the same; a whole copy will do, under any name, but its run's id is taken."""
    path = await dead(tmp_path, make(tmp_path), "tool-call-completed", 2)
    lines = path.read_bytes().splitlines(keepends=True)
    backup = path.with_name("backup.jsonl")
    backup.write_bytes(b"".join(lines[:-2]))
    with pytest.raises(UsageError, match=r"backup\.jsonl is not all of whole: whole\.jsonl has more lines of it"):
        await resume(make(None), backup)
    assert DONE == []
    path.unlink()
    backup.write_bytes(b"".join(lines))
    with pytest.raises(UsageError, match="whole is the run that died"):
        await resume(make(None), backup, run_id="whole")
    assert (await resume(make(None), backup)).output == "Charged."


@pytest.mark.parametrize("trace", [None, "elsewhere"])
async def test_a_run_is_held_while_nothing_beside_it_tells_of_the_resumption(tmp_path: Path, trace: str | None) -> None:
    """A resumption that is not recorded beside the dead run keeps others away for as long as it goes on."""
    folder = None if trace is None else tmp_path / trace
    refused: list[str] = []

    @tool
    async def meanwhile() -> str:
        """Resume the same run a second time, from a copy."""
        with pytest.raises(UsageError) as caught:
            await resume(make(None, turns, meanwhile), copy, trace=folder)
        refused.append(str(caught.value))
        return "refused"

    turns = script(call("meanwhile"), text("Done."))
    path = tmp_path / "dead" / "whole.jsonl"
    path.parent.mkdir()
    agent = make(tmp_path, script(text("Done.")), meanwhile)
    whole = await agent.run("Do it.", run_id="whole")
    assert whole.trace_path is not None
    lines = whole.trace_path.read_bytes().splitlines(keepends=True)
    copy = path.with_name("copy (1).jsonl")
    for each in (path, copy):
        each.write_bytes(b"".join(lines[:3]))
    assert (await resume(make(None, turns, meanwhile), path, trace=folder)).output == "Done."
    assert ["is not dead" in each for each in refused] == [True]


# --- what counts ------------------------------------------------------------------------------------------------------


async def test_more_budget(tmp_path: Path) -> None:
    """What was spent counts: with the same limit it stops where it stopped, with a higher one it goes on."""
    spent = {"usage": Usage(input_tokens=1_000, output_tokens=10)}
    turns = script(
        calls(call("look", key="a"), **spent), calls(call("charge", amount=5), **spent), text("Charged.", **spent)
    )

    def limited(tokens: int, folder: Path | None) -> Agent:
        return make(folder, turns, compose=[ks.budget_limit(max_tokens=tokens, output_cap=50)])

    assert (await limited(3_000, tmp_path).run("Do it.", run_id="run")).terminated_by == "budget_limit"
    DONE.clear()
    same = await resume(limited(3_000, None), tmp_path / "run.jsonl", run_id="same")
    assert (same.terminated_by, DONE) == ("budget_limit", [])
    more = await resume(limited(30_000, None), tmp_path / "run.jsonl", run_id="more", again=True)
    assert (more.output, DONE) == ("Charged.", [])
    assert more.usage.input_tokens == 3_000


async def test_a_request_in_flight_may_have_been_billed(tmp_path: Path) -> None:
    """What was set aside for it counts as spent, and it is asked again with what is left; else the run ends."""
    turns = script(call("look", key="a"), text("Done."))

    def limited(tokens: int, folder: Path | None) -> Agent:
        return make(folder, turns, compose=[ks.budget_limit(max_tokens=tokens, output_cap=50)])

    path = await dead(tmp_path, limited(3_500, tmp_path), "llm-requested", 1)
    recorded = [json.loads(line) for line in path.read_bytes().splitlines()]
    (reserved,) = [each["data"]["tokens"] for each in recorded if each["kind"] == "budget-reserved"]
    result = await resume(limited(3_500, None), path)
    assert result.trace_path is not None
    left = [
        record.event.left_tokens  # type: ignore[attr-defined]
        for record in load_recording(result.trace_path).records
        if record.kind == "budget-reserved"
    ]
    assert left[0] == 3_500 - 2 * reserved
    tight = await resume(limited(2 * reserved - 100, None), path, again=True)
    assert tight.terminated_by == "budget_limit"


async def test_failures_before_count_for_the_circuit_breaker(tmp_path: Path) -> None:
    """Also the last one, after which the run died before the breaker could fire."""

    @tool(read_only=True)
    async def broken() -> str:
        """Fail."""
        raise ValueError("no")

    turns = script(call("broken"), call("broken"), text("Done."))
    path = await dead(tmp_path, make(tmp_path, turns, broken), "tool-call-completed", 2)
    result = await resume(make(None, turns, broken, compose=[ks.circuit_breaker(2)]), path)
    assert result.terminated_by == "circuit_breaker"
