"""Recorded functions: each call is a run in the same format, and the function behaves as it did."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import pytest

import playhead
from playhead import tool
from playhead.compose.killswitches import budget_limit
from playhead.errors import RunEndedError, UsageError
from playhead.instrument import facts
from playhead.instrument.programs import recorded
from tests.instrument.chatting import Chat, calls, says
from tests.kernel.test_run_faults import FullDisk
from tests.proving import sample

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator
    from pathlib import Path

    from playhead import Recording

TOOLS = [{"type": "function", "function": {"name": "lookup", "parameters": {"type": "object", "properties": {}}}}]


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look a fact up."""
    if key == "nothing":
        raise KeyError(key)
    return f"{key} is 42"


def one_call(body: dict[str, Any]) -> dict[str, Any]:
    """Ask for one lookup, then answer with its result."""
    last = body["messages"][-1]
    return says(f"So {last['content']}.") if last["role"] == "tool" else calls(("lookup", {"key": "a"}))


CHAT = Chat(one_call)


def loop(chat: Chat, task: str) -> str:
    """The loop that most people have."""
    messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": task}]
    while True:
        message = chat.create(messages, tools=TOOLS).choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content or ""
        for each in message.tool_calls:
            result = lookup(**json.loads(each.function.arguments))
            messages.append({"role": "tool", "tool_call_id": each.id, "content": result})


@recorded
def billing(task: str) -> str:
    """Answer a question."""
    return loop(CHAT, task)


@pytest.fixture(autouse=True)
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Record into a folder of the test."""
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path))
    return tmp_path


def latest() -> Recording:
    """Return the newest recording, which has to be whole."""
    recording = playhead.load_recording("latest")
    assert recording.status == "closed"
    assert not recording.problems
    return recording


def test_a_loop_is_recorded_as_a_run_with_its_requests_and_its_calls() -> None:
    """The thread is written once, the model's call is the program's call, and no secret is in the file."""
    assert billing("How high?") == "So a is 42."
    recording = latest()
    root = recording.root
    assert recording.header.task == "How high?"
    assert recording.header.agent.strategy_settings["arguments"] == {"task": "How high?"}
    first, second = (root.request(each.requested) for each in root.exchanges)
    assert [each.role for each in first.messages] == ["system", "user"]
    assert [each.role for each in second.messages] == ["system", "user", "assistant", "tool"]
    assert [message.content for message in second.messages][-1] == "a is 42"
    (call,) = root.calls.values()
    assert (call.started.tool, call.started.args, call.started.source, call.started.request) == (
        "lookup",
        {"key": "a"},
        "native",
        0,
    )
    assert recording.ending is not None
    assert (recording.ending.output, recording.ending.usage.input_tokens) == ("So a is 42.", 20)
    assert "sk-secret-123456" not in recording.path.read_text()


def test_nothing_is_recorded_outside_a_recorded_function(traces: Path) -> None:
    """A wrapped client and a tool are what they were."""
    assert loop(CHAT, "x") == "So a is 42."
    assert facts.ask("anything", lambda: 3) == 3
    assert list(traces.glob("*.jsonl")) == []


def test_an_error_of_the_program_is_its_own_and_is_recorded() -> None:
    """A tool's exception reaches the caller as it is; the call and the run say that they failed."""

    @recorded
    def failing(key: str) -> str:
        return lookup(key)

    with pytest.raises(KeyError, match="nothing"):
        failing("nothing")
    recording: Any = latest()
    (call,) = recording.root.results.values()
    assert (call.ok, call.error.type) == (False, "KeyError")
    assert (recording.ending.status, recording.ending.terminated_by) == ("failed", "error")


def test_a_full_disk_costs_events_and_is_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recorded function has no result that could say so: a warning says how many events are missing."""
    monkeypatch.setattr("playhead.trace.blobs.os.write", FullDisk(4, lasting=True))
    assert billing("x") == "So a is 42."
    (said,) = caplog.messages
    assert said.endswith(": 13 events were not recorded: [Errno 28] No space left on device")


def test_an_interrupt_is_recorded() -> None:
    """Ctrl-C is raised as it is, and the trace is closed."""

    @recorded
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    recording: Any = latest()
    assert recording.ending.terminated_by == "cancelled"


async def test_an_async_program_with_tasks_is_one_run() -> None:
    """Each task is a strand of its own; a nested recorded function is a sub-agent under the call that entered it."""

    @recorded
    async def part(key: str) -> str:
        answer = await CHAT.acreate([{"role": "user", "content": key}], tools=TOOLS)
        return str(answer.choices[0].message.tool_calls[0].id) + await asyncio.to_thread(lookup, key)

    @recorded
    async def both() -> Any:
        return await asyncio.gather(part("x"), part("y"))

    assert list(await both()) == ["call_00x is 42", "call_00y is 42"]
    recording = latest()
    assert sorted(recording.owners) == ["root", "root/part@-.0", "root/part@-.1"]
    assert len({call.started.strand for call in recording.root.calls.values()}) == 2
    for owner in ("root/part@-.0", "root/part@-.1"):
        (call,) = recording.owners[owner].calls.values()
        assert call.started.tool == "lookup"
    assert recording.ending is not None
    assert recording.ending.usage.input_tokens == 20


def test_generators_are_runs_whoever_takes_their_steps() -> None:
    """A generator's output is the list of what it yielded; one that is closed early ends well."""
    chat = Chat(lambda _: says("one two"))

    @recorded
    def words() -> Generator[str]:
        for chunk in chat.create([{"role": "user", "content": "?"}], stream=True):
            yield chunk.choices[0].delta.content or ""

    assert list(words()) == ["one ", "two ", ""]
    recording = latest()
    assert recording.ending is not None
    assert recording.ending.output == ["one ", "two ", ""]
    (exchange,) = recording.root.exchanges
    assert exchange.outcome is not None
    assert getattr(exchange.outcome, "text", None) == "one two "

    steps, taken = words(), list[str]()
    for _ in range(2):
        thread = threading.Thread(target=lambda: taken.append(next(steps)))
        thread.start()
        thread.join()
    steps.close()
    recording = latest()
    assert recording.ending is not None
    assert (recording.ending.output, recording.ending.terminated_by) == (["one ", "two "], "end_turn")


async def test_async_generators_are_runs() -> None:
    """The same for an async generator."""
    chat = Chat(lambda _: says("one two"))

    @recorded
    async def words() -> AsyncIterator[str]:
        async for chunk in await chat.acreate([{"role": "user", "content": "?"}], stream=True):
            yield chunk.choices[0].delta.content or ""

    assert [each async for each in words()] == ["one ", "two ", ""]
    ending = latest().ending
    assert ending is not None
    assert (ending.output, ending.usage.output_tokens) == (["one ", "two ", ""], 0)


def test_a_budget_ends_a_program_whatever_it_catches() -> None:
    """The request that does not fit is not sent, and neither the SDK's retries nor `except Exception` go on."""
    chat = Chat(one_call)

    @recorded(compose=[budget_limit(max_tokens=1500, prompt_bound="bytes")])
    def stubborn(task: str) -> str:
        for _ in range(50):
            with suppress(Exception):  # what a program may do
                loop(chat, task)
        return "unreached"

    with pytest.raises(RunEndedError, match="budget_limit"):
        stubborn("x")
    recording = latest()
    assert recording.ending is not None
    assert recording.ending.terminated_by == "budget_limit"
    assert 0 < len(chat.asked) < 50
    assert all(body["max_tokens"] <= 1500 for body in chat.asked)
    assert recording.ending.usage.input_tokens + recording.ending.usage.output_tokens <= 1500


def test_hooks_are_refused() -> None:
    """A block that needs Playhead's own loop says so before anything is recorded."""

    @recorded(compose=[lambda harness: harness.tap("**", lambda payload, context: None)])
    def hooked() -> None:
        """Do nothing."""

    with pytest.raises(UsageError, match="killswitches"):
        hooked()


def test_facts_are_recorded_and_arguments_that_are_no_json_are_named() -> None:
    """The clock, randomness and questions of one's own are facts."""

    @recorded
    def asking(chat: Chat, number: int) -> int:
        facts.now()
        facts.uuid4()
        return number + int(facts.random() * 0) + facts.ask("level", lambda: 4)

    assert asking(CHAT, number=1) == 5
    recording = latest()
    assert [each.name for each in recording.root.facts] == ["now", "uuid4", "random", "level"]
    settings = recording.header.agent.strategy_settings
    assert (settings["arguments"], settings["not_json"]) == ({"number": 1}, ["chat"])


async def test_many_runs_at_once_are_apart() -> None:
    """A server's requests, in threads or tasks, are runs of their own with their own events."""

    @recorded
    def plain(task: str) -> str:
        return loop(CHAT, task) + lookup(task)

    @recorded
    async def waiting(task: str) -> str:
        answer = await CHAT.acreate([{"role": "user", "content": task}])
        return str(answer.choices[0].message.tool_calls[0].id) + await asyncio.to_thread(lookup, task)

    names = [f"t{number}" for number in range(12)]
    with ThreadPoolExecutor(6) as pool:
        said = list(pool.map(plain, names))
    said += await asyncio.gather(*map(waiting, names))
    assert said == [f"So a is 42.{name} is 42" for name in names] + [f"call_00{name} is 42" for name in names]
    runs = [playhead.load_recording(f"latest~{number}") for number in range(24)]
    assert sorted(str(run.header.task) for run in runs) == sorted(names * 2)
    for run in runs:
        asked = {part.content for each in run.root.exchanges for part in run.root.request(each.requested).messages}
        assert asked & set(names) == {run.header.task}
        assert {"key": run.header.task} in [call.started.args for call in run.root.calls.values()]
        assert run.status == "closed"


async def test_a_recorded_function_is_a_function_of_its_kind() -> None:
    """Frameworks look at that; a method is bound to its object, and its other arguments are recorded."""

    class Desk:
        @recorded
        async def answer(self, task: str) -> str:
            """Answer."""
            return lookup(task)

        @recorded
        def plain(self, task: str) -> str:
            return lookup(task)

    assert inspect.iscoroutinefunction(Desk.answer)
    assert inspect.isfunction(Desk.plain)
    assert (Desk.answer.__name__, Desk.answer.__doc__) == ("answer", "Answer.")
    assert [await Desk().answer("a"), Desk().plain(task="b")] == ["a is 42", "b is 42"]
    settings = latest().header.agent.strategy_settings
    assert (settings["arguments"], settings["not_json"]) == ({"task": "b"}, ["self"])
    assert latest().reproduce_sync(program=Desk.plain, args={"self": Desk()}).identical


@pytest.mark.slow
def test_sub_agents_of_threads_have_owners_of_their_own() -> None:
    """A request of another thread begins a turn meanwhile: still no two calls have one place, and one's events are not the other's."""
    keys = [f"{number}" for number in sample(range(450), range(120))]

    @recorded
    def inner(key: str) -> str:
        return lookup(key)

    @recorded
    def program() -> None:
        with ThreadPoolExecutor(3) as pool:
            works: tuple[Callable[[str], str], ...] = inner, lambda key: loop(CHAT, key)
            _ = [pool.submit(copy_context().run, work, key) for key in keys for work in works]

    was = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    program()
    sys.setswitchinterval(was)
    inside = playhead.load_recording("latest").owners.values()
    made: list[Any] = [each.started.agent.strategy_settings["arguments"] for each in inside if each.started]
    assert sorted(each["key"] for each in made if each) == sorted(keys)
