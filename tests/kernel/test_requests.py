from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, PlayheadError, load_recording, tool
from playhead.kernel.agent_tool import AgentTool
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, Turn, call, text
from playhead.trace.types import Completion, Prices, Request, ToolCall
from tests.kernel.runs import data, make_agent, record, record_agent
from tests.proving import sample
from tests.replay.random_agents import Canary, random_agent

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.recording import Recording

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
        agent = random_agent(seed, Canary(), trace=tmp_path)
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


async def test_lone_surrogates_are_replaced(tmp_path: Path):
    """An answer loses its lone surrogates before anything uses it, and the recording is reproduced."""
    torn = (
        ToolCall(id="1", name="no\ud800", raw_arguments="{\ud800"),
        ToolCall(id="2", name="no", arguments={"\ud800": ["\ud800", 2**60]}),
    )
    run = await record(tmp_path, [Turn(text="so \ud83d", thinking="hm \udc00", calls=torn), text("\ud83d end")])
    first, second = run.events("llm-responded")
    assert (first.text, first.thinking, second.text, run.result.output) == (
        "so \ufffd",
        "hm \ufffd",
        *["\ufffd end"] * 2,
    )
    assert [data(call) for call in first.tool_calls] == [
        {"id": "1", "name": "no\ufffd", "raw_arguments": "{\ufffd"},
        {"id": "2", "name": "no", "arguments": {"\ufffd": ["\ufffd", {"$type": "int", "value": str(2**60)}]}},
    ]
    assert (await reproduce(run.recording)).identical
