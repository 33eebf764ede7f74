"""In no mode and under no policy does a tool's body run, is anybody asked, or anything sent but to the overriding model."""

from __future__ import annotations

import random
import socket
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

from playhead import PlayheadError, load_recording
from playhead.errors import ModelRequestError, ModelUnavailableError, NotReplayableError
from playhead.replay import replay, reproduce
from playhead.replay.steered import code_in
from playhead.trace.events import AgentStarted
from playhead.trace.types import Completion, Request, ToolCall
from tests.proving import sample
from tests.replay.random_agents import KEYS, Outside, random_agent

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from playhead.diagnose.recording import Recording

SEEDS = range(sample(30, 18))
POLICIES: Final[dict[str, Any]] = {
    "strict": "strict",
    "lenient": "lenient",
    "simulate": lambda call: f"{call.tool}, simulated",
}


class Wild:
    """Does what was recorded or what it likes with what it is offered, fails now and then, and answers in the end."""

    name = "scripted/wild"
    secrets: Mapping[str, str] = {}

    def __init__(self, seed: int, recording: Recording) -> None:
        self._chance = random.Random(seed)
        self._recorded = recording.root.responses

    async def prices(self) -> None:
        """Not know."""

    async def complete(self, request: Request) -> Completion:
        """Do anything."""
        chance = self._chance
        if chance.random() < 0.05:
            raise chance.choice([ModelRequestError("no"), ModelUnavailableError("busy")])
        if request.number in self._recorded and chance.random() < 0.5:
            return Completion(tool_calls=self._recorded[request.number].tool_calls)
        if request.number > 4 or not request.tools or chance.random() < 0.1:
            return Completion(text="done")
        made = tuple(self._call(chance.choice(request.tools).name) for _ in range(chance.randint(1, 4)))
        return Completion(tool_calls=made)

    def _call(self, name: str) -> ToolCall:
        arguments: dict[str, Any] = {"key": self._chance.choice(KEYS)}
        if name.startswith("agent"):
            arguments = {"task": self._chance.choice([*KEYS, "new"])}
        elif name == "final-answer":
            arguments = {"output": "42"}
        return ToolCall(id="", name=name, arguments=arguments)


@pytest.fixture
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a connection was opened")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


def agents_below(recording: Recording, agent: Any) -> set[str]:
    """Return the names of the agents below the root, of the code if it is given."""
    if agent is None:
        return {each.started.agent.name for each in recording.owners.values() if isinstance(each.started, AgentStarted)}
    below = [each for each in agent.tools.values() if each.spec.kind == "agent"]
    return {each.header.name for each in below}.union(*(agents_below(recording, each) for each in below))


def needs_code(recording: Recording) -> bool:
    """Return whether hooks steered a run, so that a replay is refused without them."""
    return any(code_in(owner) for owner in recording.owners.values())


@pytest.mark.slow
@pytest.mark.usefixtures("_no_network")
@pytest.mark.parametrize("with_code", [False, True])
async def test_nothing_real_runs(with_code: bool, tmp_path: Path) -> None:
    """Every body and every approver is a canary, every socket is shut; a replay is whole, and reproduces in its turn."""
    rungs: dict[str, Counter[str]] = {policy: Counter() for policy in POLICIES}
    for seed in SEEDS:
        outside = Outside()
        agent = random_agent(seed, outside, trace=tmp_path)
        with suppress(PlayheadError):
            await agent.run("Do it.", run_id=f"run-{seed}")
        before = outside.copy()
        recording = load_recording(tmp_path / f"run-{seed}.jsonl")
        code = agent if with_code else None
        assert (await reproduce(recording, agent=code)).identical, seed
        if needs_code(recording) and not with_code:
            with pytest.raises(NotReplayableError, match="these hooks of"):
                await replay(recording, {"model": Wild(seed, recording)}, trace=None)
            continue
        below = agents_below(recording, code)
        for name, policy in POLICIES.items():
            wild = Wild(seed, recording)
            overrides = {"model": wild, "agents": {each: {"model": wild} for each in below}}
            result = await replay(recording, overrides, agent=code, on_missing=policy, trace=None)
            rungs[name] += Counter(result.rungs)
            assert result.recording.ending is not None
            again = await reproduce(result.recording)
            assert again.divergences == (), (seed, again.divergences[0])
        assert outside == before, seed
    assert min(rungs["lenient"][each] for each in ("exact", "reordered", "stale", "synthetic-error")) > 0, rungs
    assert rungs["simulate"]["simulated"] > 0
    assert not {"stale", "simulated", "synthetic-error"} & set(rungs["strict"])


@pytest.mark.slow
@pytest.mark.usefixtures("_no_network")
async def test_the_canaries_and_the_shut_network_can_be_noticed(tmp_path: Path) -> None:
    """The tests above say something: a body that runs sings, and a connection fails loudly."""
    outside = Outside()
    for seed in SEEDS:
        with suppress(PlayheadError):
            await random_agent(seed, outside, trace=tmp_path).run("Do it.")
    assert outside.ran.total() > 50
    assert "approver" in outside.ran
    with pytest.raises(AssertionError, match="a connection was opened"):
        socket.create_connection(("localhost", 9))
