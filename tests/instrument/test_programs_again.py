"""Recorded programs run again: the same function, with nothing real called, compared strand by strand."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import json
import os
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import openai
import pytest

import playhead
from playhead import recorded, tool
from playhead.compose.killswitches import budget_limit, max_iterations
from playhead.diagnose.debrief import build_debrief
from playhead.errors import NotReplayableError, RunEndedError, UsageError
from playhead.instrument import facts
from playhead.instrument.sealed import no_sockets
from playhead.instrument.worlds import ProgramWorld
from playhead.replay import find_cause
from tests.cli.command_line import playhead as command_line
from tests.instrument.chatting import Chat, calls, says, whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playhead import Recording
    from playhead.replay import Reproduction

RAN: list[str] = []
"""The bodies of tools that ran."""
LEFT: list[Any] = []  # tasks at work
PROMPT = {"role": "system", "content": "Be brief."}
ASKED = {"messages": [PROMPT, {"role": "user", "content": "x"}], "model": "openai/gpt-4o-mini"}


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look a fact up."""
    RAN.append(key)
    if key == "nothing":
        raise KeyError(key)
    return f"{key} is 42"


@tool
def send(text: str) -> dict:
    """Send a text."""
    RAN.append(text)
    return {"sent": len(RAN)}


def one_call(body: dict[str, Any]) -> dict[str, Any]:
    """Ask for one lookup, then answer with its result."""
    last = body["messages"][-1]
    return says(f"So {last['content']}.") if last["role"] == "tool" else calls(("lookup", {"key": "a"}))


CHAT = Chat(one_call)
ECHO = Chat(lambda body: says(f"echo {body['messages'][-1]['content']}"))


def loop(task: str, prompt: str = "Be brief.") -> str:
    """The loop that most people have."""
    messages: list[Any] = [{"role": "system", "content": prompt}, {"role": "user", "content": task}]
    while True:
        message = CHAT.create(messages).choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content or ""
        for each in message.tool_calls:
            result = lookup(**json.loads(each.function.arguments))
            messages.append({"role": "tool", "tool_call_id": each.id, "content": result})


@recorded
def billing(task: str) -> str:
    """Answer a question."""
    return loop(task) + str(send(text=task)["sent"])


@pytest.fixture(autouse=True)
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Record into a folder of the test."""
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path))
    RAN.clear()
    ProgramWorld.said.clear()
    return tmp_path


def reproduced(program: Callable[..., Any], recording: Recording | None = None, **args: Any) -> Reproduction:
    """Reproduce the newest recording; nothing real may be called."""
    before = len(RAN), len(CHAT.asked), len(ECHO.asked)
    outcome = (recording or playhead.load_recording("latest")).reproduce_sync(program=program, args=args)
    assert (len(RAN), len(CHAT.asked), len(ECHO.asked)) == before
    return outcome


@pytest.mark.parametrize(
    ("changed", "what", "expected", "actual"),
    [
        (lambda task: loop(task, "Be long.") + "2", "messages[0].content of the request", "Be brief.", "Be long."),
        (lambda task: str(send(text=task)) + loop(task), "call of send instead of the request", ASKED, {"text": "x"}),
        (lambda task: loop(task) + str(send(text="y")["sent"]), "text of the call of send", "x", "y"),
        (lambda task: loop(task) + "2", "only the recording has the call of send", {"text": "x"}, None),
        (lambda task: loop(task) + str(send(text=task)["sent"]) + "!", "output of run-completed", "2", "2!"),
        (lambda task: loop(task) + str(send(text=task)["sent"]) + lookup("b"), "only the program", None, {"key": "b"}),
    ],
)
def test_a_change_of_the_program_is_noticed_where_it_is(
    changed: Callable[[str], str], what: str, expected: Any, actual: Any
) -> None:
    """The first divergence names what the program does otherwise, with both values."""
    billing("x")
    recording = playhead.load_recording("latest")

    @recorded(name="billing")
    def other(task: str) -> str:
        return changed(task)

    outcome = reproduced(other, recording)
    first = outcome.divergences[0]
    assert not outcome.identical
    assert what in first.what
    if what.startswith("output"):
        assert (str(first.expected)[-1], str(first.actual)[-2:]) == (expected, actual)
    else:
        assert (first.expected, first.actual) == (expected, actual)


def test_errors_streams_and_facts_come_again() -> None:
    """A tool's exception is of its class, a refused request is the SDK's own error, and the clock stands still."""
    answers = iter([whole(says("no")), *[openai_error()] * 3])
    flaky = Chat(lambda _: next(answers))

    @recorded
    def troubled() -> list[str]:
        said = [str(facts.now()), str(facts.random()), str(facts.uuid4())]
        try:
            lookup("nothing")
        except KeyError as error:
            said.append(repr(error))
        chunks = ECHO.create([{"role": "user", "content": "one two"}], stream=True)
        said.extend(chunk.choices[0].delta.content or "" for chunk in chunks)
        said.append(flaky.create([PROMPT]).choices[0].message.content)
        try:
            flaky.create([PROMPT])
        except openai.BadRequestError as error:
            said.append(str(error))
        return said

    said = troubled()
    assert len(said) == 10
    assert reproduced(troubled).divergences == ()
    assert len(flaky.asked) == 2


def openai_error() -> Any:
    """Return a refusal."""
    import httpx2

    return httpx2.Response(400, headers={"content-type": "application/json"}, text='{"error": {"message": "bad"}}')


async def test_equal_calls_beside_each_other_with_other_answers_are_inconclusive() -> None:
    """Nothing says which answer is whose, so it is said; calls in order, and equal answers of tasks that change places, are known."""
    numbers, order = iter(range(100)), ["a", "b"]
    counting, inner = Chat(lambda _: says(str(next(numbers)))), recorded(name="inner")(lambda key: lookup(key) + "!")

    async def ask() -> Any:
        return (await counting.acreate([PROMPT])).choices[0].message.content

    async def part(last: str, done: asyncio.Event) -> None:
        lookup("x")
        await asyncio.sleep(0)
        if last == order[1]:
            await done.wait()
        _ = inner("y"), lookup(last)
        done.set()

    @recorded
    async def beside() -> Any:
        return await asyncio.gather(ask(), ask())

    @recorded
    async def in_order() -> Any:
        return [await ask(), await ask()]

    @recorded
    async def changing_places() -> None:
        order.reverse()
        done = asyncio.Event()
        await asyncio.gather(*(part(each, done) for each in order))

    for program, expected in ((beside, (False, 1)), (in_order, (True, 0)), (changing_places, (True, 0))):
        await program()
        outcome = await playhead.load_recording("latest").reproduce(program=program)
        assert (outcome.identical, len(outcome.ambiguous)) == expected


def test_a_run_that_a_budget_ended_reproduces() -> None:
    """The killswitch fires at the same request."""

    @recorded(compose=[budget_limit(max_tokens=1500, prompt_bound="bytes")])
    def endless() -> None:
        while True:
            loop("x")

    with pytest.raises(RunEndedError):
        endless()
    outcome = reproduced(endless)
    assert (outcome.identical, outcome.divergences) == (True, ())


def test_arguments_that_are_no_json_have_to_be_given() -> None:
    """A client is named; a model of pydantic's comes back as its annotation has it."""

    @recorded
    def asking(chat: Chat, task: str) -> str:
        return str(chat.create([{"role": "user", "content": task}]).choices[0].message.content)

    assert asking(ECHO, task="x") == "echo x"
    with pytest.raises(UsageError, match=r"chat of .*asking was no JSON"):
        reproduced(asking)
    assert reproduced(asking, chat=ECHO).identical
    assert "differs" in reproduced(asking, chat=ECHO, task="y").divergences[0].what


def test_a_recording_of_a_program_needs_the_program() -> None:
    """Without it there is nothing that could do again what it did; a plain function is refused, and another program."""
    assert billing("x") == "So a is 42.2"
    recording = playhead.load_recording("latest")
    with pytest.raises(NotReplayableError, match=r"--program .*billing"):
        recording.reproduce_sync()
    with pytest.raises(NotReplayableError, match="program="):
        recording.replay_sync(system_prompt="x")
    with pytest.raises(UsageError, match=r"@playhead\.recorded"):
        recording.reproduce_sync(program=loop)
    for again in (recording.reproduce_sync, recording.replay_sync):
        with pytest.raises(UsageError, match=r"is a run of .*:billing, and program= .* is .*:loop; if it was renamed"):
            again(program=recorded(loop))
    assert reproduced(recorded(name="other")(vars(billing)["recorded"].function)).identical


# --- with something changed -------------------------------------------------------------------------------------------


def test_a_replay_asks_the_model_another_prompt_and_runs_no_tool() -> None:
    """The override is on the wire, every call has its recorded answer, and the replay is a recording of its own."""
    billing("x")
    recording, ran, asked = playhead.load_recording("latest"), len(RAN), len(CHAT.asked)
    outcome = recording.replay_sync(system_prompt="Be long.", parameters={"temperature": 0.5}, program=billing)
    assert len(RAN) == ran
    assert [body["messages"][0]["content"] for body in CHAT.asked[asked:]] == ["Be long.", "Be long."]
    assert [body["temperature"] for body in CHAT.asked[asked:]] == [0.5, 0.5]
    assert outcome.run.output == "So a is 42.2"
    assert outcome.recording.header.replay_of == recording.run_id
    assert outcome.run.trace_path is not None
    assert outcome.run.trace_path.parent.name == "replays"
    assert repr(outcome).endswith(", verdict='same', grounded=1.0, stopped=None, tool_edits=0)")


def test_a_replay_changes_the_tools_of_its_requests() -> None:
    """A tool is described otherwise on the wire; one that no request offers is named, and nothing is concluded."""

    @recorded
    def asking(task: str) -> str:
        tools = [{"type": "function", "function": {"name": "lookup", "description": "Look up.", "parameters": {}}}]
        return str(CHAT.create([{"role": "user", "content": task}], tools=tools).choices[0].message.content)

    asking("x")
    asked, told = len(CHAT.asked), {"lookup": {"description": "Other words."}, "nothing": None}
    outcome = playhead.load_recording("latest").replay_sync(tools=told, program=asking)
    assert [body["tools"][0]["function"]["description"] for body in CHAT.asked[asked:]] == ["Other words."]
    why = "tools: no request offered nothing, so nothing of it was changed"
    assert (outcome.verdict, why in outcome.notes) == ("inconclusive", True)


def test_a_call_that_was_not_recorded_stops_a_replay_or_is_answered_as_said() -> None:
    """The default stops before the body runs; `live` runs only what is read-only."""

    @recorded
    def asking(key: str) -> str:
        try:
            return lookup(key)
        except Exception as error:  # noqa: BLE001 - what a program may do
            return repr(error)

    asking("a")
    recording = playhead.load_recording("latest")
    RAN.clear()
    outcome = recording.replay_sync(program=asking, args={"key": "b"})
    assert (outcome.verdict, outcome.rungs, RAN) == ("inconclusive", {}, [])
    assert "lookup" in str(outcome.stopped)
    lenient = recording.replay_sync(program=asking, args={"key": "b"}, on_missing="lenient")
    assert (lenient.verdict, "no recording" in str(lenient.run.output), RAN) == ("inconclusive", True, [])
    made_up = recording.replay_sync(program=asking, args={"key": "b"}, on_missing=lambda call: call.tool.upper())
    assert (made_up.run.output, made_up.rungs, RAN) == ("LOOKUP", {"simulated": 1}, [])
    live = recording.replay_sync(program=asking, args={"key": "b"}, on_missing="live")
    assert (live.run.output, live.rungs, RAN) == ("b is 42", {"live": 1}, ["b"])
    given = recording.replay_sync(program=asking, tool_results={"lookup": "other"})
    assert (given.run.output, given.verdict, RAN) == ("other", "changed", ["b"])


def test_a_result_from_another_state_of_the_world_is_stale() -> None:
    """A lookup after a side effect that did not happen when it was recorded is not grounded."""
    first = [False]

    @recorded
    def acting() -> str:
        if first[0]:
            send(text="x")
            return lookup("a")
        found = lookup("a")
        send(text="x")
        return found

    acting()
    first[0] = True
    outcome = playhead.load_recording("latest").replay_sync(program=acting)
    assert (outcome.verdict, "another state of the world" in str(outcome.stopped)) == ("inconclusive", True)


def test_overrides_that_do_not_reach_a_program_are_refused() -> None:
    """Nothing is asked before."""
    billing("x")
    recording, asked = playhead.load_recording("latest"), len(CHAT.asked)
    for changes in (
        {"max_iterations": 3},
        {"model": "anthropic/claude"},
        {"agent": object()},
        {"task": "y", "args": {"a": 1}},
    ):
        with pytest.raises(UsageError):
            recording.replay_sync(program=billing, **changes)
    assert len(CHAT.asked) == asked
    other = recording.replay_sync(program=billing, task="y", model="gpt-5", on_missing="lenient")
    assert (CHAT.asked[-1]["model"], CHAT.asked[-1]["messages"][1]["content"], other.verdict) == (
        "gpt-5",
        "y",
        "inconclusive",
    )


async def test_nested_programs_keep_their_own_prompts_and_answers() -> None:
    """An override of the root's prompt stays the root's; `agents=` names a nested function."""

    @recorded
    async def part(key: str) -> str:
        answer = await ECHO.acreate([PROMPT, {"role": "user", "content": key}])
        return str(answer.choices[0].message.content) + lookup(key)

    @recorded
    async def root() -> Any:
        await ECHO.acreate([PROMPT, {"role": "user", "content": "root"}])
        return await asyncio.gather(part("x"), part("y"))

    await root()
    recording, asked = playhead.load_recording("latest"), len(ECHO.asked)
    RAN.clear()
    outcome = await recording.replay(system_prompt="R", agents={"part": {"system_prompt": "P"}}, program=root)
    assert [body["messages"][0]["content"] for body in ECHO.asked[asked:]] == ["R", "P", "P"]
    assert (outcome.verdict, outcome.grounded, RAN) == ("same", 1.0, [])


def test_the_command_line_runs_a_program_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--program` names the function, `--arg` another argument; exit codes are those of other recordings."""
    folder = tmp_path / "app"
    folder.mkdir()
    stops = "@recorded\ndef stops() -> None:\n    raise KeyboardInterrupt\n"
    (folder / "ourapp.py").write_text(f"from tests.instrument.test_programs_again import billing, recorded\n{stops}")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    billing("x")

    def command(*arguments: str) -> tuple[int, str]:
        result = command_line(*arguments)
        return result.exit_code, result.output

    ours = ("latest", "--program", "ourapp:billing")
    assert command("reproduce", *ours) == (0, "identical: 5 events came out as recorded\n")
    code, said = command("reproduce", *ours, "--arg", "task=y")
    assert (code, "[1].content of the request to the model differs" in said) == (1, True)
    assert "its clock or chance (ask playhead.facts for them), files, which of its tasks comes first" in said
    code, said = command("replay", *ours, "--system-prompt", "Be long.")
    assert (code, "verdict   same" in said) == (0, True)
    code, said = command("replay", *ours, "--tool-result", "lokup=1")
    assert (code, "Did you mean 'lookup'?" in said, "verdict   inconclusive" in said) == (4, True, True)
    with pytest.raises(KeyboardInterrupt):
        importlib.import_module("ourapp").stops()
    code, said = command("reproduce", "latest", "--program", "ourapp:stops")
    assert (code, said.startswith("so far: "), "the run was cut off: what would have come" in said) == (4, True, True)


def test_what_no_run_owns_is_said_when_recorded_and_refused_in_a_replay(caplog: pytest.LogCaptureFixture) -> None:
    """A thread without the run's context is nobody's: the recording warns once, and a replay runs nothing of it."""

    @recorded
    def spread() -> list[str]:
        with ThreadPoolExecutor(1) as pool:
            return [pool.submit(lookup, key).result() for key in "ab"]

    assert spread() == ["a is 42", "b is 42"]
    assert [each.message for each in caplog.records if "copy_context" in each.message] == [caplog.records[0].message]
    outcome = reproduced(spread)
    assert not outcome.identical
    assert "the tool lookup is called outside of the program" in outcome.divergences[0].what
    replay = playhead.load_recording("latest").replay_sync(program=spread)
    assert (replay.verdict, RAN) == ("inconclusive", ["a", "b"])


def test_a_sealed_replay_connects_nothing_but_the_model() -> None:
    """A socket that the recording knows nothing of ends the replay; the model's own goes through."""
    from tests.answering import answering

    def answer(path: str, _headers: Any, _body: bytes) -> Any:
        reached.append(path)
        return 200, {}, [whole(says("yes")).content]

    reached: list[str] = []
    with answering(answer) as url:
        client: Any = playhead.wrap(openai.OpenAI(api_key="sk-secret-123456", base_url=f"{url}/v1"))

        @recorded
        def asking() -> str:
            said = client.chat.completions.create(model="m", messages=[PROMPT]).choices[0].message.content
            if not is_clean:
                with socket.socket() as other:
                    other.connect(("127.0.0.1", int(url.rpartition(":")[2])))
            return str(said)

        is_clean = True
        asking()
        recording = playhead.load_recording("latest")
        assert recording.reproduce_sync(program=asking, sealed=True).identical
        assert recording.replay_sync(program=asking, sealed=True).verdict == "same"
        assert len(reached) == 2
        is_clean = False
        assert recording.reproduce_sync(program=asking).identical
        outcome = recording.reproduce_sync(program=asking, sealed=True)
        assert "the replay is sealed" in outcome.divergences[0].what
        replay = recording.replay_sync(program=asking, sealed=True)
        assert (replay.verdict, "sealed" in str(replay.stopped)) == ("inconclusive", True)


def test_a_connection_ends_the_sealed_replay_that_makes_it() -> None:
    """Of several at a time, as a corpus has them, no other one is ended."""
    ended: list[str] = []
    with no_sockets(lambda _: ended.append("one"), sealed=True):
        of_one = contextvars.copy_context()
        with no_sockets(lambda _: ended.append("two"), sealed=True), socket.socket() as other:
            of_one.run(other.connect_ex, ("127.0.0.1", 1))
            contextvars.Context().run(other.connect_ex, ("127.0.0.1", 1))
    assert ended == ["one", "two"]


def test_what_redaction_replaces_is_still_equal_or_not() -> None:
    """A result with a credential is served with its keyed mark; a rule of the user's makes unequal texts equal, and that is said."""
    secret = "ghp_" + "Ab1" * 12

    @tool(read_only=True)
    def token(name: str) -> str:
        return f"the token is {secret}"

    @recorded
    def asking(name: str) -> str:
        ECHO.create([{"role": "user", "content": token(name=name)}])
        return "done"

    asking("x")
    recording = playhead.load_recording("latest")
    assert secret not in recording.path.read_text()
    outcome = recording.reproduce_sync(program=asking)
    assert (outcome.identical, outcome.divergences, outcome.ambiguous) == (True, (), ())
    asking(f"my {secret}")
    with pytest.raises(UsageError, match=r"name of .*asking was redacted"):
        playhead.load_recording("latest").reproduce_sync(program=asking)


def test_replays_of_blocking_callers_share_an_event_loop() -> None:
    """Async clients and locks cannot be used in several loops; a task that is left at work does not outlive its replay."""

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)  # while others come to their ends

    @recorded
    async def program() -> None:
        left.append(asyncio.ensure_future(work()))
        await asyncio.sleep(0)

    left = list[Any]()
    asyncio.run(program())
    recording = playhead.load_recording("latest")
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(recording.replay_sync, program=program) for _ in range(6)]
        assert {each.result().verdict for each in found} == {"same"}
    assert recording.reproduce_sync(program=program).identical
    assert (len({id(each.get_loop()) for each in left[1:]}), {each.done() for each in left}) == (1, {True})


async def test_what_was_cancelled_is_cancelled_again() -> None:
    """A cancelled call waits for that, one that is not cancelled any more has no answer, and one that is new proves nothing."""

    @tool
    async def hang() -> None:
        await asyncio.Event().wait()

    @recorded
    async def impatient() -> str:
        task = asyncio.ensure_future(asyncio.sleep(9) if is_calm else hang())
        await asyncio.sleep(0)
        if is_patient:
            await task
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return "cancelled"

    is_patient = is_calm = False
    assert await impatient() == "cancelled"
    recording = playhead.load_recording("latest")
    assert [each.ended for each in recording.root.results.values()] == ["cancelled"]
    outcome = await recording.reproduce(program=impatient)
    assert (outcome.identical, outcome.divergences, outcome.ambiguous) == (True, (), ())
    is_patient = True
    outcome = await recording.reproduce(program=impatient)
    assert (outcome.identical, outcome.divergences, len(outcome.ambiguous)) == (False, (), 1)
    assert "was cancelled, and is not now" in outcome.ambiguous[0]
    is_patient, is_calm = False, True
    await impatient()
    recording, is_calm = playhead.load_recording("latest"), False
    outcome = await recording.reproduce(program=impatient)
    assert [each.partition(": ")[2] for each in outcome.ambiguous] == ["only the program now has the call of hang here"]


async def test_what_a_cancelled_task_does_beyond_its_recording_has_no_answer_and_is_said() -> None:
    """What it had done comes again; how far it comes then is a race of the program's own."""
    done = list[str]()

    async def work() -> None:
        await ECHO.acreate([PROMPT])
        done.append(lookup("a"))
        if is_recorded:
            await asyncio.Event().wait()
        done.append(lookup("beyond"))

    @recorded
    async def cancelling() -> None:
        task = asyncio.ensure_future(work())
        for word in ("one", "two"):
            await ECHO.acreate([{"role": "user", "content": word}])
        task.cancel()
        await asyncio.wait([task])

    is_recorded = True
    await cancelling()
    recording, is_recorded = playhead.load_recording("latest"), False
    assert [each.name for each in recording.root.facts] == ["task-cancelled"]
    outcome = await recording.reproduce(program=cancelling)
    assert (outcome.identical, outcome.divergences, outcome.ambiguous) == (True, (), ())
    assert [each.partition(": ")[2] for each in outcome.notes] == ["only the program now has the call of lookup here"]
    assert done == ["a is 42", "a is 42"]


async def test_a_task_that_its_function_left_at_work_comes_as_far_as_in_the_recording() -> None:
    """The function ends when the task has done what it had done, and not before; what the task does then does not count."""
    ready, free, is_recorded = asyncio.Event(), asyncio.Event(), True

    async def work() -> None:
        if not is_recorded:
            await asyncio.sleep(0.01)
        lookup("a")
        ready.set()
        await free.wait()

    @recorded
    async def leaving_work(task: str) -> str:
        LEFT.append(asyncio.ensure_future(work()))
        if is_recorded:
            await ready.wait()
        return task

    assert await leaving_work("x") == "x"
    recording, is_recorded = playhead.load_recording("latest"), False
    outcome = await recording.reproduce(program=leaving_work)
    free.set()
    assert (outcome.identical, outcome.divergences, outcome.ambiguous) == (True, (), ())


def test_requests_in_unknown_formats_are_reproduced_by_their_bytes() -> None:
    """Any client of httpx or httpx2 is recorded; a replay sends none of it, and a budget refuses what it cannot bound."""
    import httpx2

    def handle(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return httpx2.Response(200, content=b"\xff\x00" + request.content)

    asked: list[str] = []
    client = playhead.wrap(httpx2.Client(transport=httpx2.MockTransport(handle)))

    def other() -> str:
        first = client.post("https://other.example/v9?key=sk-secret-123456", content=b"one").content
        return f"{first!r} {client.get('https://other.example/v9').content!r}"

    program = recorded(other)
    said = program()
    recording = playhead.load_recording("latest")
    assert "sk-secret-123456" not in recording.path.read_text()
    assert [each.requested.model for each in recording.root.exchanges] == ["http/other.example"] * 2
    assert recording.reproduce_sync(program=program).identical
    assert (len(asked), said) == (2, "b'\\xff\\x00one' b'\\xff\\x00'")
    replays = [recording.replay_sync(program=program, on_missing=each) for each in ("strict", {"http": "live"})]
    assert ([each.verdict for each in replays], len(asked)) == (["same", "same"], 4)
    assert "2 requests that are in no known model's format got their recorded answers" in replays[0].notes[0]
    changed = recorded(name="other")(lambda: str(client.post("https://other.example/v9", content=b"two").content))
    assert (recording.replay_sync(program=changed, on_missing="lenient").verdict, len(asked)) == ("inconclusive", 4)
    limited = recorded(compose=[budget_limit(max_tokens=100_000)])(other)
    with pytest.raises(RunEndedError, match="wire format"):
        limited()
    assert len(asked) == 4


def test_what_outlives_its_program_goes_on_unrecorded(caplog: pytest.LogCaptureFixture) -> None:
    """A thread that the function does not wait for does what it did before; after a killswitch it does not."""

    def work() -> None:
        returned.wait(10)
        done.append(ECHO.create([PROMPT]).choices[0].message.content)
        done.append(lookup("late"))

    def leave() -> str:
        threads.append(threading.Thread(target=contextvars.copy_context().run, args=(work,)))
        threads[-1].start()
        return ECHO.create([PROMPT]).choices[0].message.content

    returned, threads, done = threading.Event(), list[threading.Thread](), list[Any]()
    program = recorded(leave)
    program()
    returned.set()
    threads[0].join()
    assert done == ["echo Be brief.", "late is 42"]
    assert len([each for each in caplog.records if "comes after it" in each.message]) == 2
    recording = playhead.load_recording("latest")
    assert (recording.status, len(recording.root.exchanges), len(recording.root.calls)) == ("closed", 1, 0)


def test_a_request_that_is_open_when_its_program_returns_has_no_answer() -> None:
    """It is recorded as abandoned; its own caller gets the answer."""
    free, sent = threading.Event(), threading.Event()

    def answer(_body: dict[str, Any]) -> Any:
        sent.set()
        free.wait(10)
        return says("late")

    slow, done = Chat(answer), list[str]()

    @recorded
    def leaving() -> None:
        def work() -> None:
            done.append(slow.create([PROMPT]).choices[0].message.content)

        threads.append(threading.Thread(target=contextvars.copy_context().run, args=(work,)))
        threads[-1].start()
        sent.wait(10)

    threads: list[threading.Thread] = []
    leaving()
    free.set()
    threads[0].join()
    recording = playhead.load_recording("latest")
    (exchange,) = recording.root.exchanges
    assert (recording.status, done, type(exchange.outcome).__name__) == ("closed", ["late"], "LlmFailed")


def test_objects_that_are_no_json_are_the_same_in_each_process() -> None:
    """An argument or an output that is shown by its `repr` is compared without its place in memory; of a method its object is none."""

    @tool(read_only=True)
    def about(thing: Any) -> str:
        return type(thing).__name__

    class Shop:
        def pay(self, order: int) -> str:
            return f"paid {order}"

    @recorded
    def making() -> Any:
        things.append(Chat(one_call))
        about(things[-1])
        assert tool(Shop().pay)(7) == "paid 7"
        return things[-1]

    things: list[Chat] = []
    making()
    assert reproduced(making).identical
    assert [each.started.args for each in playhead.load_recording("latest").root.calls.values()][1] == {"order": 7}


def test_an_exit_of_the_program_is_its_ending_and_not_that_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """`sys.exit` ends the run with an error, also of a function inside; a replay compares it, and goes on to its report."""
    code = [0]

    @recorded
    def leave(task: str) -> None:
        send(text=task)
        sys.exit(code[0])

    @recorded
    def above(task: str) -> str:
        with pytest.raises(SystemExit):
            leave(task)
        return "went on"

    assert above("x") == "went on"
    assert reproduced(above).identical
    with pytest.raises(SystemExit):
        leave("x")
    recording = playhead.load_recording("latest")
    assert recording.ending is not None
    assert (recording.ending.terminated_by, recording.ending.error) == ("error", "SystemExit: 0")
    assert reproduced(leave, recording).identical
    assert recording.replay_sync(program=leave).verdict == "same"
    monkeypatch.setattr(f"{__name__}.leave", leave, raising=False)
    code[0] = 3
    done = command_line("reproduce", recording.path, "--program", f"{__name__}:leave")
    assert (done.exit_code, "SystemExit: 3" in done.stdout) == (1, True)


@recorded
async def leaving(task: str) -> str:
    """Exit in a task, which ends the event loop."""

    async def leave() -> None:
        lookup(task)
        sys.exit(3)

    return str(await asyncio.gather(leave()))


def test_an_exit_of_a_task_is_the_ending_of_its_program_and_not_of_the_command() -> None:
    """It ends the program's event loop, in a replay one of its own: the command goes on to its report."""
    with pytest.raises(SystemExit):
        asyncio.run(leaving("x"))
    recording = playhead.load_recording("latest")
    assert recording.ending is not None
    assert (recording.ending.terminated_by, recording.ending.error) == ("error", "SystemExit: 3")
    assert reproduced(leaving, recording).identical
    done = command_line("replay", recording.path, "--program", f"{__name__}:leaving")
    assert (done.exit_code, "verdict   same" in done.stdout) == (1, True), done.output


def test_a_program_that_changed_since_its_recording_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it does the same: a function of the module that it calls is another one now; a value is no code."""
    text = "import playhead\nSEEN = []\ndef helped(): return {}\n@playhead.recorded\ndef telling(task): SEEN.append(task); return helped()\n"
    monkeypatch.syspath_prepend(str(tmp_path))
    programs = []
    for name, body in (("telling_one", "1 + 1"), ("telling_two", "2")):
        (tmp_path / f"{name}.py").write_text(text.format(body))
        os.utime(tmp_path / f"{name}.py", (0, 0))  # a file that is newer than the process may be another than what runs
        programs.append(importlib.import_module(name).telling)
    programs[0]("x")
    recording, why = playhead.load_recording("latest"), "the code of program telling differs"
    for program, said in zip(programs, ([], [why]), strict=True):
        outcome, replay = reproduced(program, recording), recording.replay_sync(program=program)
        assert (outcome.identical, [*map(str, outcome.changed_sources)]) == (True, said)
        assert [*replay.notes] == [f"the program changed since the recording: {each}" for each in said]


def test_a_live_model_that_does_not_answer_leaves_a_replay_inconclusive() -> None:
    """A function may catch its client's error and go on: what the model would have said is not known."""

    def answer(_body: dict[str, Any]) -> Any:
        if is_down:
            raise ConnectionResetError("it is down")
        return says("yes")

    server, is_down = Chat(answer), False

    @recorded
    def careful(task: str) -> str:
        try:
            return str(server.create([{"role": "user", "content": task}]).choices[0].message.content)
        except ConnectionResetError as error:  # no error of httpx, so the SDK lets it through
            return repr(error)

    assert careful("x") == "yes"
    recording, is_down = playhead.load_recording("latest"), True
    replay = recording.replay_sync(program=careful)
    assert (replay.verdict, replay.run.output) == ("inconclusive", "ConnectionResetError('it is down')")
    assert replay.notes == ("1 live requests failed, the first with ConnectionResetError: it is down",)
    careful("x")
    assert reproduced(careful).identical  # the error comes again as it was


def test_a_request_that_fails_now_in_place_of_another_one_is_not_known() -> None:
    """As many requests fail as in the recording, but another one: nothing is concluded from its answer."""

    def answer(body: dict[str, Any]) -> Any:
        if body["messages"][-1]["content"] == down:
            raise ConnectionResetError("it is down")
        return says("yes")

    server, down = Chat(answer), "a"

    @recorded
    def careful() -> list[str]:
        said = []
        for each in "ab":
            try:
                said.append(str(server.create([{"role": "user", "content": each}]).choices[0].message.content))
            except ConnectionResetError:
                said.append("none")
        return said

    assert careful() == ["none", "yes"]
    recording, down = playhead.load_recording("latest"), "b"
    assert recording.replay_sync(program=careful).verdict == "inconclusive"


def test_the_paragraph_of_a_program_that_changed_its_answer_is_blamed() -> None:
    """The prompt of a program is what its requests say: no other paragraph is a part of the change."""
    server = Chat(lambda body: says("wrong" if "Guess." in body["messages"][0]["content"] else "right"))

    @recorded
    def clerk(task: str) -> str:
        prompt = {"role": "system", "content": "Be brief.\n\nNever guess."}
        return str(server.create([prompt, {"role": "user", "content": task}]).choices[0].message.content)

    assert clerk("x") == "right"
    found = find_cause("latest", program=clerk, system_prompt="Be kind.\n\nGuess.")
    edits = "system_prompt[0]: - 'Be brief.' + 'Be kind.'", "system_prompt[1]: - 'Never guess.' + 'Guess.'"
    assert (found.verdict, (*map(str, found.parts),), found.causes) == ("cause", edits, (found.parts[1:],))


def test_a_credential_of_the_program_is_not_shown_where_it_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the program asks now is redacted like what was recorded, in divergences and in why a replay stopped."""
    secret, given = "ghp_" + "Ab1" * 12, ["x"]

    @recorded
    def telling(task: str) -> str:
        return lookup(given[0])

    telling("x")
    recording = playhead.load_recording("latest")
    monkeypatch.setattr(f"{__name__}.telling", telling, raising=False)
    given[0] = f"my {secret}"
    for command in ("reproduce", "replay"):
        done = command_line(command, recording.path, "--program", f"{__name__}:telling")
        assert (secret in done.output, "my [redacted:github-token" in done.output) == (False, True), done.output


def test_blocks_that_cannot_guard_a_program_are_refused_before_it_is_run_again() -> None:
    """The error of `compose=` reaches the caller of `reproduce` and `replay`: it is no ending of the program."""
    billing("x")
    recording = playhead.load_recording("latest")
    for block, why in ((budget_limit(max_cost_usd=1), "price"), (max_iterations(3), "killswitch")):
        limited = recorded(name="billing", compose=[block])(billing)
        for again in (recording.reproduce_sync, recording.replay_sync):
            with pytest.raises(UsageError, match=why):
                again(program=limited)


@recorded
def forgotten(task: str) -> str:
    """Carry out the model's call with a function that is no tool of Playhead's."""
    messages: list[Any] = [{"role": "user", "content": task}]
    answer = CHAT.create(messages).choices[0].message
    messages += [answer.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": "call_00", "content": "42"}]
    return str(CHAT.create(messages).choices[0].message.content)


def test_a_tool_that_is_not_called_through_playhead_is_named_wherever_the_run_is_judged() -> None:
    """Its body runs in a replay, too, so `reproduce`, `replay` and `debrief` say that it is not recorded."""
    forgotten("x")
    recording = playhead.load_recording("latest")
    why = "the model asked for lookup, and the program does not call lookup through Playhead"
    outcome, replay = reproduced(forgotten, recording), recording.replay_sync(program=forgotten)
    assert (outcome.identical, [why in each for each in outcome.notes]) == (True, [True])
    assert (replay.verdict, [why in each for each in replay.notes]) == ("same", [True])
    assert why in " ".join(
        command_line("reproduce", recording.path, "--program", f"{__name__}:forgotten").stdout.split()
    )
    assert why in " ".join(command_line("debrief", recording.path).stdout.split())
    billing("x")
    called = playhead.load_recording("latest")
    assert (reproduced(billing, called).notes, called.replay_sync(program=billing).notes) == ((), ())
    assert not [each for each in build_debrief(called).caveats if "through Playhead" in each]


def test_an_override_that_no_request_gets_is_named_and_nothing_is_concluded() -> None:
    """A program whose client is not wrapped makes no request that a replay could change."""

    @recorded
    def unwrapped(task: str) -> str:
        return lookup(key=task)

    unwrapped("a")
    recording = playhead.load_recording("latest")
    replay = recording.replay_sync(
        program=unwrapped, system_prompt="No.", model="gpt-4o", parameters={"temperature": 1}
    )
    assert replay.verdict == "inconclusive"
    used = [each.split(" was not used: the replay made 0 requests")[0] for each in replay.notes]
    assert used == [f"the override of {each}" for each in ("system_prompt", "model", "parameters")]
    plain = recording.replay_sync(program=unwrapped)
    assert (plain.verdict, plain.notes) == ("same", ())


def test_equal_recorded_functions_in_threads_that_were_answered_differently_are_inconclusive() -> None:
    """Nothing says which of them is which, as for plain tools: a result may be served to the wrong one."""

    @recorded
    def child(text: str) -> int:
        return int(send(text=text)["sent"])

    @recorded
    def parent(task: str) -> list[int]:
        with ThreadPoolExecutor(3) as pool:
            made = [pool.submit(contextvars.copy_context().run, child, task) for _ in range(3)]
            return [each.result() for each in made]

    parent("x")
    replay = playhead.load_recording("latest").replay_sync(program=parent)
    assert replay.verdict == "inconclusive"
    assert ["child was called with equal arguments" in each for each in replay.notes] == [True]


def test_other_arguments_are_a_change_and_tools_that_are_not_called_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay with `--arg` is no A/A run; the tools of a program are those that it offers, called or not."""
    offers = [{"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}}]

    @recorded
    def sometimes(task: str) -> str:
        text = str(ECHO.create([{"role": "user", "content": task}], tools=offers).choices[0].message.content)
        return lookup(key=text) if task == "x" else text

    sometimes("x")
    monkeypatch.setattr(f"{__name__}.sometimes", sometimes, raising=False)
    recording = playhead.load_recording("latest")
    program: list[Any] = ["replay", recording.path, "--program", f"{__name__}:sometimes"]
    done = command_line(*program, "--arg", "task=hello")
    assert 'changed   args: {"task": "hello"}' in done.stdout
    assert "tools." not in done.stdout
    assert ("A/A run" in done.stdout, "A/A run" in command_line(*program).stdout) == (False, True)


def test_arguments_are_recorded_as_the_body_gets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text for a number stays a text, so unchanged code reproduces, and code that gives a number is another one."""

    @tool
    def pay(order: int) -> str:
        return f"paid {order!r}"

    given: list[Any] = ["7"]

    @recorded
    def paying(task: str) -> str:
        return pay(given[0]) + pay(order=given[0])

    assert paying("x") == "paid '7'paid '7'"
    recording = playhead.load_recording("latest")
    assert [each.started.args for each in recording.root.calls.values()] == [{"order": "7"}] * 2
    assert reproduced(paying, recording).identical
    assert recording.replay_sync(program=paying).grounded == 1
    given[0] = 7
    first = reproduced(paying, recording).divergences[0]
    assert (first.what, first.expected, first.actual) == ("order of the call of pay differs", "7", 7)
    monkeypatch.setattr(f"{__name__}.paying", paying, raising=False)
    done = command_line("reproduce", recording.path, "--program", f"{__name__}:paying")
    assert "recorded  '7'\n   now       7\n" in done.stdout
