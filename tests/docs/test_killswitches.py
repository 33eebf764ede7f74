"""The killswitch pages: one for each switch, and the claims that they make beside their examples."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, RunResult, tool
from playhead.compose import killswitches
from playhead.compose.killswitches import (
    circuit_breaker,
    kill_file,
    max_iterations,
    require_approval_for,
    timeout_after,
    tool_limit,
    watchdog,
)
from playhead.testing import ScriptedModel, call, calls, error, text
from tests.docs.pages import DOCS, read
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path

SWITCHES = {name for name in vars(killswitches)["__all__"] if name.islower()} | {"kill"}


def test_every_switch_has_a_page() -> None:
    """Each switch that can be imported, and `playhead kill`, has a page; the index links them all."""
    pages = {path.stem for path in (DOCS / "killswitches").glob("*.md")}
    shared = {"index", "approvals", "cancellation", "isolate"}
    assert pages == {name.replace("_", "-") for name in SWITCHES} | shared
    assert set(re.findall(r"\]\(([a-z-]+)\.md\)", read("killswitches/index"))) == pages - {"index"}


@pytest.mark.parametrize("name", sorted(SWITCHES))
def test_its_page_is_complete(name: str) -> None:
    """A page has an example, the guarantee, its bound, and what the switch cannot do."""
    page = read(f"killswitches/{name.replace('_', '-')}")
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == ["Guarantee", "Bound", "What it cannot do"]
    assert "```python" in page
    assert f"`{'playhead kill' if name == 'kill' else name}`" in page.splitlines()[0]


# --- what the pages say ------------------------------------------------------------------------------------------------


@tool(read_only=True)
def look(key: str = "a") -> str:
    """Look."""
    return f"found {key}"


@tool(read_only=True)
def fail() -> str:
    """Fail."""
    raise OSError("broken")


@tool(read_only=True)
async def wait(seconds: float = 60) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "waited"


LOOKS = [call("look")] * 9


def run(turns: Any, *blocks: Any, **options: Any) -> RunResult:
    """Run an agent on a script."""
    tools = {"tools": [look, fail, wait], "retry_delay_s": 0, **options}
    return Agent(ScriptedModel(turns), **grouped(compose=blocks, trace=None, **tools)).run_sync("Go.")


def results(of: RunResult) -> list[str]:
    """Return what the calls brought."""
    return [step.content for step in of.steps if step.type == "observation"]


def test_each_agent_has_its_own_turns() -> None:
    """The limit of turns is not for agents below; the agent's own limit stands beside it."""
    worker = Agent(ScriptedModel([*LOOKS[:4], text("four times")]), name="worker", tools=[look])
    boss = run([call("worker", task="Look."), text("Thanks.")], max_iterations(2), tools=[worker])
    assert (boss.terminated_by, results(boss)) == ("end_turn", ["four times"])
    own = run(LOOKS, max_iterations(5), max_iterations=3)
    assert (own.terminated_by, own.terminated_source, own.iterations) == ("max_iterations", "kernel", 3)


@pytest.mark.slow
def test_what_is_progress() -> None:
    """Answers and results are, failures and waiting are not."""
    steady = run([call("wait", seconds=0.1)] * 5 + [text("done")], watchdog(0.4))
    assert (steady.terminated_by, steady.duration_ms > 400) == ("end_turn", True)
    failing = run([error("busy", retryable=True)] * 99, watchdog(0.1), retries=99, retry_delay_s=0.04)
    refused = run([call("look"), text("…", delay_s=60)], watchdog(0.15), require_approval_for("look", lambda _: False))
    assert (failing.terminated_by, refused.terminated_by, refused.iterations) == ("watchdog", "watchdog", 2)


def test_approval_is_for_agents_below() -> None:
    """A switch on the agent above holds for tools that only an agent below has."""
    asked: list[tuple[str, Any]] = []

    def approver(request: Any) -> bool:
        asked.append((request.owner, request.arguments))
        return request.arguments["key"] == "a"

    script = [call("look", key="a"), call("look", key="b"), text("looked")]
    worker = Agent(ScriptedModel(script), name="worker", tools=[look])
    boss = run([call("worker", task="Look."), text("Thanks.")], require_approval_for("look", approver), tools=[worker])
    assert asked == [("root/worker@0.0", {"key": "a"}), ("root/worker@0.0", {"key": "b"})]
    assert results(boss) == ["looked"]


def test_where_a_kill_file_cannot_be_looked_for(tmp_path: Path) -> None:
    """A file where a folder should be: nobody can tell, so nothing runs."""
    (tmp_path / "file").touch()
    ended = run(LOOKS, kill_file(tmp_path / "file" / "STOP"))
    assert (ended.terminated_by, ended.iterations) == ("kill_file", 0)
    assert "nobody can tell whether" in str(ended.terminated_because)


def test_a_tool_limit_that_refuses() -> None:
    """The model is told, and the run goes on."""
    limited = run([*LOOKS[:2], text("done")], tool_limit("look", 1, on_trigger="refuse"))
    assert (limited.terminated_by, limited.output) == ("end_turn", "done")
    assert results(limited) == ["found a", "error: look was not called: 1 call of look is all it may have"]


def test_what_a_circuit_breaker_counts() -> None:
    """Failures in a row of one tool: a success begins anew, what never reached the tool does not count."""
    turns = [call("fail"), call("look"), call("fail"), call("fail"), call("look")]
    broken = run(turns, circuit_breaker(3))
    assert (broken.terminated_by, broken.iterations) == ("circuit_breaker", 4)
    unknown = run([call("lok")] * 4 + [text("done")], circuit_breaker(2))
    assert unknown.terminated_by == "end_turn"


@pytest.mark.slow
def test_calls_beside_it_are_waited_for() -> None:
    """A switch at the ports lets nothing start, and does not interrupt what runs."""
    ended = run([calls(call("wait", seconds=0.2), call("fail"))], circuit_breaker(1))
    assert (ended.terminated_by, results(ended)) == ("circuit_breaker", ["waited", "error: broken"])
    cut = run([calls(call("wait"), call("fail"))], circuit_breaker(1), timeout_after(0.2))
    assert (cut.terminated_by, cut.duration_ms < 500) == ("circuit_breaker", True)
