"""Real servers, over stdio and over streamable HTTP: their tools are tools like all others."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from playhead import Agent, load_recording
from playhead.kernel.approval import Approval
from playhead.mcp import mcp_tools
from playhead.replay import Overrides
from playhead.testing import ScriptedModel, call, calls, text
from tests.again import replay_sync, reproduce_sync
from tests.mcp.serving import RICH, http_server, one, told

pytestmark = pytest.mark.slow

TIME = [str(Path(sys.executable).with_name("mcp-server-time")), "--local-timezone", "UTC"]


@pytest.fixture(scope="module")
def served() -> Any:
    """A real HTTP server."""
    with http_server() as url:
        yield url


@pytest.fixture(scope="module", params=["stdio", "http"])
def rich(request: pytest.FixtureRequest) -> Any:
    """The tools of a server with every kind of result, over both transports."""
    way = {"command": RICH} if request.param == "stdio" else {"url": request.getfixturevalue("served")}
    with mcp_tools(**way, headers={"X-Who": "me"} if "url" in way else None) as tools:
        yield tools


@pytest.fixture
def model() -> Any:
    """Make a model that says these turns, and then that it is done."""
    return lambda *turns: ScriptedModel([*turns, text("done")])


def test_a_server_from_pypi_is_used_and_its_recording_is_reproduced_without_it(tmp_path: Path, model: Any):
    """`mcp-server-time` converts a time; the schema reaches the model, and the file alone gives the run back."""
    asked = call("convert_time", source_timezone="Europe/Oslo", time="12:00", target_timezone="Asia/Tokyo")
    with mcp_tools(command=TIME) as tools:
        result = Agent(model(asked), tools=tools, trace=tmp_path).run_sync("When is noon in Oslo?")
    recording = load_recording(result.run_id, tmp_path)
    offered = {spec.name: spec for spec in recording.root.tools.values()}
    assert set(offered) >= {"get_current_time", "convert_time"}
    assert offered["convert_time"].parameters["required"] == ["source_timezone", "time", "target_timezone"]
    (called,) = recording.root.calls.values()
    assert called.completed is not None
    assert called.completed.result["time_difference"] in ("+8.0h", "+7.0h")
    assert reproduce_sync(recording).divergences == ()
    again = Agent(model(asked), tools=tools)  # the connection is closed: nothing of it is used
    replayed = replay_sync(recording, Overrides(system_prompt="Be brief."), agent=again, trace=None)
    assert (replayed.grounded, replayed.run.status) == (1.0, "done")


DOCUMENT = {"uri": "memo://zed", "mimeType": "text/plain", "text": "Zed is high."}
RESULTS = {
    "structured": ("height", {"name": "Zed"}, {"feet": 4180, "name": "Zed"}),
    "number": ("add", {"a": 1, "b": 2}, 3),
    "list": ("names", {}, ["Zed", "Ypsilon"]),
    "image": ("picture", {}, {"content": [{"type": "image", "data": "iVBORwD/", "mimeType": "image/png"}]}),
    "resource": (
        "document",
        {},
        {"content": [{"type": "text", "text": "see"}, {"type": "resource", "resource": DOCUMENT}]},
    ),
}


@pytest.mark.parametrize(("tool", "arguments", "expected"), RESULTS.values(), ids=RESULTS)
def test_results_come_back_whole(rich: Any, tool: str, arguments: dict[str, Any], expected: Any):
    """Text, structured content, images and resources lose nothing, over both transports."""
    ok, observed = told(rich, tool, **arguments)
    assert (ok, json.loads(observed)) == (True, expected)


def test_a_failing_tool_is_a_failed_call(rich: Any):
    """`isError` is our failure, and the server's words reach the model."""
    assert told(rich, "fail", why="no") == (False, "error: Error executing tool fail")


def test_wrong_arguments_never_reach_the_server(rich: Any):
    """The server's schema is applied here, and the model is told what it takes."""
    ok, observed = told(rich, "add", a=1, c="x")
    assert not ok
    assert observed.startswith("error: the arguments of add cannot be read:")
    assert "b: is missing; it has to be integer" in observed
    assert "add takes {a: integer, b: integer}" in observed


def test_a_large_result_is_kept(rich: Any):
    """Two megabytes pass, whole."""
    assert told(rich, "big", size=2_000_000) == (True, "x" * 2_000_000)


async def test_an_async_block_serves_runs_side_by_side(model: Any):
    """Several runs of one loop use one connection; the server ends with the block."""
    before = set(psutil.Process().children())
    async with one({"echo": 1}) as tools:
        results: list[Any] = []

        async def run(number: int) -> None:
            results.append(await Agent(model(call("act", n=number)), tools=tools, trace=None).run("Act."))

        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(run, number)
        assert sorted(result.steps[-1].content for result in results) == [f'{{"n": {n}}}' for n in range(5)]
    assert set(psutil.Process().children()) <= before


def test_a_call_that_takes_too_long_is_stopped_on_the_server(served: str, tmp_path: Path):
    """At the time limit the call fails, and the server is told so: its tool is cancelled."""
    with mcp_tools(url=served, timeout_s=0.2) as tools:
        ok, observed = told(tools, "slow", folder=str(tmp_path))
        assert not ok
        assert observed.startswith("error: slow did not finish within 0.2 s; ")
        anyio.run(_there, tmp_path / "stopped")
    assert {path.name for path in tmp_path.iterdir()} == {"began", "stopped"}


async def test_cancelling_the_run_stops_the_call_on_the_server(served: str, tmp_path: Path, model: Any):
    """Whoever cancels a run cancels the call on the server."""
    async with mcp_tools(url=served) as tools, anyio.create_task_group() as group:
        group.start_soon(Agent(model(call("slow", folder=str(tmp_path))), tools=tools, trace=None).run, "Wait.")
        await _there(tmp_path / "began")
        group.cancel_scope.cancel()
    await _there(tmp_path / "stopped")


async def _there(path: Path) -> None:
    """Wait until a server has made this file."""
    with anyio.fail_after(5):
        while not await anyio.Path(path).exists():  # noqa: ASYNC110 - made by another process
            await anyio.sleep(0.01)


def test_what_a_server_says_of_itself_is_not_believed(served: str):
    """`readOnlyHint` counts only when the user says so; the user's own word counts."""

    def read_only(**choices: Any) -> set[str]:
        with mcp_tools(url=served, **choices) as tools:
            return {tool.spec.name for tool in tools if tool.spec.read_only}

    assert read_only() == set()
    assert read_only(trust_annotations=True) == {"height"}
    assert read_only(read_only=["add"]) == {"add"}
    assert read_only(read_only=True, names=["add", "names"]) == {"add", "names"}


def test_approval_names_and_prefix(served: str):
    """A tool may need approval, be left out, and get a prefix."""
    asked: list[Any] = []

    def approver(request: Any) -> Approval:
        asked.append((request.tool, request.arguments))
        return Approval(approved=False, why="no sums")

    with mcp_tools(url=served, names=["add", "height"], prefix="rich_", requires_approval=["add"]) as tools:
        assert [(tool.spec.name, tool.spec.requires_approval, tool.listed_name) for tool in tools] == [
            ("rich_height", False, "height"),
            ("rich_add", True, "add"),
        ]
        model = ScriptedModel([calls(call("rich_add", a=1, b=2)), text("done")])
        result = Agent(model, tools=tools, approver=approver, trace=None).run_sync("Add.")
    assert asked == [("rich_add", {"a": 1, "b": 2})]
    assert result.steps[-1].content == "error: rich_add was not approved: no sums"


def test_a_server_that_goes_away_is_a_failed_call():
    """The address answers no more: a failure with a reason, then and afterwards, and nothing hangs."""
    with ExitStack() as stack:
        with http_server() as url:
            tools = stack.enter_context(mcp_tools(url=url))
            assert told(tools, "add", a=1, b=2) == (True, "3")
        for _ in range(2):
            ok, observed = told(tools, "add", a=1, b=2)
            assert not ok
            assert observed.startswith(f"error: the MCP server {url} is gone: ")
            assert "It is not started again" in observed


def test_what_a_server_was_given_is_not_recorded(served: str, tmp_path: Path):
    """A key among the headers, sent back by the server, is redacted in the trace; the model gets what the server said."""
    key = "sk-0123456789abcdef"
    with mcp_tools(url=served, headers={"Authorization": f"Bearer {key}", "X-Api-Key": key}) as tools:
        asked = calls(call("header", name="authorization"), call("header", name="x-api-key"))
        result = Agent(ScriptedModel([asked, text("done")]), tools=tools, trace=tmp_path).run_sync("Tell.")
    assert result.trace_path is not None
    written = result.trace_path.read_text()
    assert key not in written
    assert "[redacted:" in written
