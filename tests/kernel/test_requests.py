"""Requests as they are recorded and sent: their ids, retries, fallbacks and secrets; many runs beside each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from playhead import Agent, Context, PlayheadError, load_recording, tool
from playhead.diagnose.integrity import check_trace
from playhead.errors import ModelError
from playhead.kernel.agent_tool import AgentTool
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, Turn, call, calls, error, text
from playhead.trace.reader import scan
from playhead.trace.types import Completion, Prices, Request, ToolCall
from tests.kernel.runs import data, make_agent, record, record_agent
from tests.kernel.strategies.looking import lookup
from tests.options import grouped
from tests.proving import sample
from tests.replay.random_agents import Outside, random_agent

if TYPE_CHECKING:
    from pathlib import Path

    from playhead import RunResult
    from playhead.diagnose.recording import Recording
    from playhead.trace.types import Request

AGENTS = sample(240, 24)

GROUPS = sample(8, 1)


class Spy:
    """A model that keeps a copy of every request exactly as it was handed over, and then spoils what it was given."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.name: str = model.name
        self.secrets: dict[str, str] = {}
        self.requests: list[Request] = []

    async def prices(self) -> Prices | None:
        return Prices(input_usd=0.0, output_usd=0.0)

    async def complete(self, request: Request) -> Completion:
        self.requests.append(deepcopy(request))
        try:
            return await self.model.complete(request)
        finally:
            request.parameters.clear()
            request.parameters["spoilt"] = True


def spied(agent: Agent) -> dict[str, Spy]:
    """Put a spy before the model of an agent and of each agent below it, by model name."""
    spies = {agent.model.name: Spy(agent.model)}
    agent.model = spies[agent.model.name]
    below = list(agent.tools.values())
    while below:
        each = below.pop()
        if isinstance(each, AgentTool):
            spies[each.model.name] = each.model = Spy(each.model)
            below += each.tools.values()
    return spies


def recorded(recording: Recording) -> dict[str, list[Request]]:
    """Return the requests that a trace holds, by model, in the order in which they were made."""
    requests = defaultdict(list)
    for event in recording.records:
        if event.kind == "llm-requested":
            made: Any = event.event
            requests[made.model].append(recording.owners[event.owner].request(made))
    return requests


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
async def test_recorded_requests_are_the_ones_that_were_made(group: int, tmp_path: Path):
    """The traces of random agents hold exactly the requests that were sent, in their order."""
    made = 0
    for seed in range(group * AGENTS // GROUPS, (group + 1) * AGENTS // GROUPS):
        agent = random_agent(seed, Outside(), trace=tmp_path)
        spies = spied(agent)
        with suppress(PlayheadError):
            await agent.run("Do it.", run_id=f"run-{seed}")
        found = recorded(load_recording(tmp_path / f"run-{seed}.jsonl"))
        assert set(found) <= set(spies), seed
        for name, spy in spies.items():
            assert found[name] == spy.requests, seed
            made += len(spy.requests)
    assert made > AGENTS // GROUPS


async def test_a_tool_that_changes_its_arguments_changes_nothing_else(tmp_path: Path):
    """The body gets a copy: the thread, the trace and a retry keep what the model said."""

    @tool
    def spoil(items: Any, names: dict[str, Any]) -> int:
        items.append("spoilt")
        names["inner"]["spoilt"] = True
        return len(items)

    spy = Spy(ScriptedModel([call("spoil", items=[1], names={"inner": {}}), text("done")]))
    run = await record_agent(make_agent(tmp_path, spy, spoil), tmp_path)
    assert recorded(run.recording) == {"scripted/model": spy.requests}
    assert spy.requests[1].messages[2].tool_calls[0].arguments == {"items": [1], "names": {"inner": {}}}
    assert run.steps()[0] == ("action", "spoil", '{"items": [1], "names": {"inner": {}}}')


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["", ""], ["call_0_0", "call_0_1"]),
        (["same", "same"], ["same", "call_0_1"]),
        (["call_0_1", ""], ["call_0_1", "call_0_1_"]),
        (["a\ud800", "b"], ["a\ufffd", "b"]),
        (["text_1_1", "text"], ["call_0_0", "text"]),
    ],
)
async def test_every_call_has_an_id_of_its_own(tmp_path: Path, given: list[str], expected: list[str]):
    """Each call of an agent gets its own result, also from a server that gives no ids or the same one twice."""

    @tool(read_only=True)
    async def read(key: str) -> str:
        return f"read {key}"

    turn = Turn(calls=tuple(ToolCall(id=name, name="read", arguments={"key": name}) for name in given))
    written = text('{"name": "read", "arguments": {"key": "in text"}}')
    run = await record(tmp_path, [turn, written, turn, text("done")], read)
    started = [event.call_id for event in run.events("tool-call-started")]
    assert started[:2] == expected
    assert len(set(started)) == len(started) == 5
    root = run.recording.root
    assert [root.request(exchange.requested) for exchange in root.exchanges] == run.model.requests


BUSY = error("busy", retryable=True)

MODEL_EVENTS = ("llm-requested", "llm-responded", "llm-failed", "llm-retried")


async def test_each_attempt_is_an_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Two retryable failures and an answer: three attempts of one request, with doubling waits."""
    slept: list[float] = []

    async def sleep(_self: Any, seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("playhead.kernel.session.World.sleep", sleep)
    run = await record(tmp_path, [BUSY, BUSY, text("42")], retries=2, retry_delay_s=0.5)
    asked = {"request": 0, "model": "scripted/model", "messages": ((0, 1),)}
    failed = {
        "request": 0,
        "error": {"type": "ModelUnavailableError", "message": "busy"},
        "retryable": True,
        "cost_usd": 0.0,
    }
    answered = {"text": "42", "finish_reason": "stop", "usage": {"input_tokens": 2, "output_tokens": 2}}
    assert [(event.kind, data(event)) for event in run.events(*MODEL_EVENTS)] == [
        ("llm-requested", asked),
        ("llm-failed", failed),
        ("llm-retried", {"request": 0, "attempt": 1, "delay_s": 0.5}),
        ("llm-requested", {**asked, "attempt": 1}),
        ("llm-failed", {**failed, "attempt": 1}),
        ("llm-retried", {"request": 0, "attempt": 2, "delay_s": 1.0}),
        ("llm-requested", {**asked, "attempt": 2}),
        ("llm-responded", {"request": 0, "attempt": 2, **answered, "cost_usd": 0.0, "model": "scripted/model"}),
    ]
    assert slept == [0.5, 1.0]
    assert (run.result.output, run.result.iterations) == ("42", 1)
    assert all(event.latency_ms == 1.0 for event in run.events("llm-responded", "llm-failed"))


def agent(folder: Path, *models: ScriptedModel, **options: Any) -> Agent:
    """Return an agent whose models take over from each other."""
    first, *others = models
    return Agent(
        first, **grouped(fallbacks=others, tools=[lookup], trace=folder, rationale=False, retry_delay_s=0.0, **options)
    )


def events_of(path: Path, *kinds: str) -> list[dict[str, Any]]:
    """Return these events of a run."""
    return [data(record.event) for record in load_recording(path).records if record.kind in kinds]


async def test_the_next_model_takes_over_for_good(tmp_path: Path):
    """The failed request and all later ones go to the next model, and attempts continue to count."""
    first = ScriptedModel([call("lookup", key="a"), *[error("busy", retryable=True)] * 2], name="x/first")
    second = ScriptedModel([call("lookup", key="b"), text("42")], name="x/second")
    result = await agent(tmp_path, first, second, retries=1).run("Do it.", run_id="run")
    assert result.output == "42"
    asked = events_of(tmp_path / "run.jsonl", "llm-requested")
    assert [(each["request"], each.get("attempt", 0), each["model"]) for each in asked] == [
        (0, 0, "x/first"),
        (1, 0, "x/first"),
        (1, 1, "x/first"),
        (1, 2, "x/second"),
        (2, 0, "x/second"),
    ]
    (event,) = events_of(tmp_path / "run.jsonl", "provider-fallback")
    assert event == {"from_model": "x/first", "to_model": "x/second", "reason": "busy", "attempt": 2}
    assert (await reproduce(tmp_path / "run.jsonl")).identical


async def test_fallback_after(tmp_path: Path):
    """`fallback_after` gives up a model before its retries are used up; the last model has all of them."""
    first = ScriptedModel([error("busy", retryable=True)] * 9, name="x/first")
    second = ScriptedModel([error("busy", retryable=True)] * 9, name="x/second")
    with pytest.raises(ModelError, match="busy"):
        await agent(tmp_path, first, second, retries=2, fallback_after=1).run("Do it.", run_id="run")
    assert (len(first.requests), len(second.requests)) == (1, 3)
    assert (await reproduce(tmp_path / "run.jsonl")).identical


KEY = "sk-very-secret-1234"

OTHER_KEY = "sk-of-the-other-one"


class Keyed(ScriptedModel):
    """A model with a key."""

    key = KEY

    @property
    def secrets(self) -> dict[str, str]:
        return {"OPENAI_API_KEY": self.key}


class OtherKeyed(Keyed):
    key = OTHER_KEY


async def test_no_key_is_in_an_event(tmp_path: Path):
    """Keys of the models of an agent and its sub-agents are in no event; the run itself has them."""

    @tool
    def leak(words: str) -> dict[str, str]:
        """Leak."""
        return {KEY: f"{words} {OTHER_KEY}"}

    child = Agent(OtherKeyed([text(f"I use {OTHER_KEY}")]), name="child", context=Context(rationale=False))
    turn = calls(call("leak", words=KEY), call("child", task=f"Say {KEY}."), text=f"{KEY} {OTHER_KEY}")
    model = Keyed([turn, text(f"done with {KEY}")])
    seen: list[str] = []
    agent = Agent(model, tools=[leak, child], trace=tmp_path, system_prompt=f"Key: {KEY}", parameters={"user": KEY})
    agent.subscribe(None, lambda record: seen.append(repr(record)))
    result = await agent.run(f"My key is {KEY}.", run_id="run")
    written = (tmp_path / "run.jsonl").read_text()
    assert not any(secret in place for secret in (KEY, OTHER_KEY) for place in (written, *seen))
    assert written.count("[redacted:OPENAI_API_KEY]") > 8
    assert result.output == f"done with {KEY}"
    assert model.requests[1].messages[-2].content == f'{{"{KEY}": "{KEY} {OTHER_KEY}"}}'
    assert (await reproduce(tmp_path / "run.jsonl")).identical


RUNS = sample(1000, 60)


def one_agent(folder: Path) -> Agent:
    """Return an agent for all runs: what it says tells which run it is in."""

    @tool(read_only=True)
    async def echo(words: str) -> str:
        """Echo."""
        await anyio.lowlevel.checkpoint()
        return f"echo of {words}"

    def answer(request: Request) -> Turn:
        task = next(message.content for message in request.messages if message.role == "user")
        if request.messages[-1].role == "user":
            return call("echo", words=task)
        return text(f"{request.messages[-1].content} in {task}")

    return make_agent(folder, ScriptedModel([answer] * RUNS * 2, keep_requests=False), echo)


def assert_apart(folder: Path, results: list[RunResult]) -> None:
    """Check that every run has its own answer and a whole trace with its own events and no others."""
    assert Counter(result.output for result in results) == {f"echo of #{n}. in #{n}.": 1 for n in range(RUNS)}
    assert len(list(folder.glob("*.jsonl"))) == RUNS
    for result in results:
        assert result.trace_complete
        assert result.trace_path is not None
        assert check_trace(result.trace_path).ok
        content = result.trace_path.read_text()
        task = str(result.output).rpartition(" ")[2]
        assert content.count("#") == content.count(task) > 5
        assert content.count("\n") == sum(1 for _ in scan(result.trace_path)) == 16


@pytest.mark.slow
@pytest.mark.parametrize("where", ["one loop", "threads"])
async def test_many_runs_at_once(tmp_path: Path, where: str):
    """Concurrent runs of one agent, in one loop or each in its thread, do not affect each other."""
    agent = one_agent(tmp_path)
    results: list[RunResult] = []

    threads = anyio.CapacityLimiter(RUNS)

    async def run(number: int) -> None:
        if where == "one loop":
            results.append(await agent.run(f"#{number}.", run_id=f"run-{number}"))
        else:
            run_sync = partial(agent.run_sync, f"#{number}.", run_id=f"run-{number}")
            results.append(await anyio.to_thread.run_sync(run_sync, limiter=threads))

    async with anyio.create_task_group() as group:
        for number in range(RUNS):
            group.start_soon(run, number)
    assert_apart(tmp_path, results)
