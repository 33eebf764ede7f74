"""The example service: each of its switches fires, tenants are apart, and it ends with its server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import examples.service
from examples.service.app import make_app
from examples.service.shop import demo_model
from examples.service.tenant import Limits, Tenant
from playhead import load_recording
from playhead.compose.killswitches.output_cap import output_cap
from playhead.diagnose.integrity import check_trace
from playhead.testing import ScriptedModel, call
from playhead.trace.types import Usage
from tests.proving import bound, sample

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
TASK = "Please refund order 7."
KNOWN = "Order 7 is a lamp for 20 euros, came broken."
PAID = "Order 7 came broken, so I have paid 20 euros back."


@dataclass
class Client:
    """Somebody who asks the service."""

    http: httpx.AsyncClient
    tenant: str = "acme"

    async def send(self, method: str, path: str, code: int = 200, /, **body: Any) -> Any:
        """Send a request and return what came back; fail unless it came with this code."""
        answer = await self.http.request(method, path, headers={"X-Tenant": self.tenant}, json=body or None)
        assert answer.status_code == code, answer.text
        return answer.json()

    async def ask(self, **body: Any) -> Any:
        """Ask the agent."""
        return await self.send("POST", "/ask", **{"task": TASK, **body})

    async def question(self) -> Any:
        """Wait until one call waits for a yes, and return it."""
        async with asyncio.timeout(10):
            while not (found := await self.send("GET", "/approvals")):  # noqa: ASYNC110 - it may be another process
                await asyncio.sleep(0.01)
        assert len(found) == 1
        return found[0]

    async def answer(self, code: int = 200, **body: Any) -> Any:
        """Answer the call that waits."""
        return await self.send("POST", f"/approvals/{(await self.question())['id']}", code, **body)


def make_client(folder: Path, model: Any = None, **limits: Any) -> Client:
    """Return somebody who asks a service of this model and these limits, in this process."""
    made = Limits(**{"traces": folder / "traces", "kill_file": folder / "STOP", **limits})
    app = make_app(model or demo_model(), made)
    return Client(httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://service"))


def ended(run: dict[str, Any]) -> tuple[Any, ...]:
    """Return how a run ended, without what differs from run to run."""
    return run["status"], run["success"], run["terminated_by"], run["terminated_because"], run["output"]


def check(folder: Path, run: dict[str, Any]) -> None:
    """Fail unless the trace of a run is closed and whole, and says how it ended as the service does."""
    path = folder / "traces" / f"{run['run_id']}.jsonl"
    assert check_trace(path).ok
    completed: Any = load_recording(path).records[-1].event
    assert (completed.terminated_by, completed.output) == (run["terminated_by"], run["output"])


@dataclass
class Billed(ScriptedModel):
    """A model that uses every token that it is allowed, and looks the order up for ever."""

    turns: Any = field(default_factory=lambda: [call("look_up_order", order="7")] * 99)
    spent: int = 0

    async def complete(self, request: Any) -> Any:
        """Answer after a moment, so that requests are under way beside each other."""
        await asyncio.sleep(0.001)
        usage = Usage(input_tokens=100, output_tokens=output_cap(request.parameters) or 10**6)
        self.spent += usage.total_tokens
        return replace(await super().complete(request), usage=usage)


class TestStreaming:
    async def test_what_a_run_tells(self, tmp_path: Path) -> None:
        """Every event is a frame, the last one says how the run ended."""
        client = make_client(tmp_path)
        answer = await client.http.post("/stream", headers={"X-Tenant": "acme"}, json={"task": "What is order 7?"})
        assert answer.headers["content-type"].startswith("text/event-stream")
        frames = answer.text.split("\n\n")[:-1]
        assert (frames[0].split("\n")[0], frames[-1].split("\n")[0]) == (
            "event: IterationProgress",
            "event: StreamCompleted",
        )
        assert json.loads(frames[-1].split("data: ")[1])["output"] == "I can only refund order 7: I am a script."

    async def test_a_closed_connection_ends_the_run(self, tmp_path: Path) -> None:
        """A connection closed while a refund awaits approval: nothing is paid, and the trace says why."""
        tenant = Tenant(demo_model(), Limits(traces=tmp_path, kill_file=tmp_path / "STOP"))
        frames = tenant.stream(TASK)
        await anext(frames)
        while not tenant.questions:  # noqa: ASYNC110 - it may be asked at any time
            await asyncio.sleep(0.01)
        await frames.aclose()  # type: ignore[attr-defined]
        (path,) = tmp_path.glob("*.jsonl")  # noqa: ASYNC240 - a test
        completed: Any = load_recording(path).records[-1].event
        assert (completed.terminated_by, completed.output) == ("terminated", KNOWN)
        assert completed.terminated_because.startswith("its `async with` block was left by GeneratorExit")


class TestApprovals:
    async def test_approved(self, tmp_path: Path) -> None:
        """The caller gets the answer once exactly the call that was shown is approved."""
        client = make_client(tmp_path)
        asked = asyncio.create_task(client.ask())
        question = await client.question()
        run_id = question["run_id"]
        assert question == {
            "id": "1",
            "run_id": run_id,
            "tool": "refund",
            "arguments": {"order": "7", "euros": 20},
            "risk": "high",
        }
        assert (await client.send("GET", f"/runs/{run_id}"))["status"] == "running"
        await client.answer(approved=True)
        run = await asked
        assert ended(run) == ("done", True, "end_turn", None, PAID)
        assert run == await client.send("GET", f"/runs/{run_id}")
        check(tmp_path, run)

    @pytest.mark.parametrize("approved", ["yes", 1, "true", None])
    async def test_a_truthy_value_is_not_an_approval(self, tmp_path: Path, approved: Any) -> None:
        """It is refused, and the call still awaits approval."""
        client = make_client(tmp_path)
        await client.ask(wait_s=0)
        await client.answer(422, approved=approved)
        await client.answer(approved=False)


class TestSwitches:
    async def test_budget_limit(self, tmp_path: Path) -> None:
        """Runs one after the other share what their tenant has; the last says so, and another tenant has all of its own."""
        client = make_client(tmp_path, model := Billed(), tenant_tokens=9000, tool_calls={"*": 1})
        runs = [await client.ask() for _ in range(3)]
        assert {run["terminated_by"] for run in runs[:1]} == {"tool_limit"}
        assert runs[-1]["terminated_by"] == "budget_limit"
        assert re.fullmatch(r"[\d,]+ of 9,000 tokens are spent; .*", runs[-1]["terminated_because"])
        assert sum(run["tokens"] for run in runs) == model.spent <= 9000
        for run in runs:
            check(tmp_path, run)
        assert (await replace(client, tenant="other").ask())["terminated_by"] == "tool_limit"

    async def test_tenants_are_apart(self, tmp_path: Path) -> None:
        """A tenant neither sees nor ends nor answers for the runs of another."""
        acme = make_client(tmp_path)
        other = replace(acme, tenant="other")
        run_id = (await acme.ask(wait_s=0))["run_id"]
        question = await acme.question()
        assert await other.send("GET", "/approvals") == []
        await other.send("GET", f"/runs/{run_id}", 404)
        await other.send("POST", f"/runs/{run_id}/stop", 404, why="no")
        await other.send("POST", f"/approvals/{question['id']}", 404, approved=True)
        await acme.answer(approved=False)

    async def test_kill_file(self, tmp_path: Path) -> None:
        """One file ends every run, of all tenants, and none begins while it is there."""
        client = make_client(tmp_path)
        asked = asyncio.create_task(client.ask())
        await client.question()
        (tmp_path / "STOP").write_text("the shop pays twice\n", encoding="utf-8")
        because = f"{tmp_path / 'STOP'} exists: the shop pays twice"
        run = await asked
        assert ended(run) == ("done", False, "kill_file", because, KNOWN)
        check(tmp_path, run)
        assert ended(await replace(client, tenant="other").ask()) == ("done", False, "kill_file", because, None)
        (tmp_path / "STOP").unlink()
        await client.ask(wait_s=0)
        await client.answer(approved=True)


async def test_what_its_documentation_shows(tmp_path: Path) -> None:
    """The lines that it says to type bring what stands below them, but for the ids of runs."""
    line = r"^    \$ curl -s localhost:8000(\S+) -H X-Tenant:acme(?: --json '(.*)')?\n    (.*)$"
    shown = re.findall(line, str(examples.service.__doc__), re.MULTILINE)
    assert len(shown) == str(examples.service.__doc__).count("$ curl") == 6
    a_run = re.compile(r"01[0-9A-Z]{24}")
    ids: dict[str, str] = {}
    client, headers = make_client(tmp_path), {"X-Tenant": "acme", "Content-Type": "application/json"}

    async def answer(path: str, body: str, printed: str) -> str:
        path = a_run.sub(lambda found: ids[found[0]], path)
        method = "POST" if body else "GET"
        said = (await client.http.request(method, path, headers=headers, content=body or None)).text
        ids.update(zip(a_run.findall(printed), a_run.findall(said), strict=True))
        return said

    for path, body, printed in shown:
        said = await answer(path, body, printed)
        while not body and '"running"' in said:
            said = await answer(path, body, printed)
        if path == "/ask":
            await client.question()
        assert said == a_run.sub(lambda found: ids[found[0]], printed)


@contextmanager
def server(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Start the service as its documentation says, and yield it with its address; end it."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "--factory", "examples.service.app:make_app", "--port", str(port)]
    env = {name: value for name, value in os.environ.items() if name != "MODEL"} | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        try:
            said = next((line for line in process.stderr if b"running on" in line), b"")
            assert said, process.wait(5)
            yield process, f"http://127.0.0.1:{port}"
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", sample([signal.SIGTERM, signal.SIGINT], [signal.SIGTERM]))
async def test_a_server_that_is_told_to_end(tmp_path: Path, number: signal.Signals) -> None:
    """Runs that wait end first: their callers have partial answers, their traces are closed, the server is gone."""
    with server(tmp_path) as (process, address):
        async with httpx.AsyncClient(base_url=address, timeout=10) as http:
            client = Client(http)
            asked = asyncio.create_task(client.ask())
            await client.question()
            began = time.monotonic()
            process.send_signal(number)
            run = await asked
            assert ended(run) == ("done", False, "kill", "the server shuts down", KNOWN)
        process.wait(5)
        assert time.monotonic() - began < bound(2)
    path = tmp_path / "service-traces" / f"{run['run_id']}.jsonl"
    assert check_trace(path).ok
    assert not (tmp_path / "service-traces" / ".control").exists()
