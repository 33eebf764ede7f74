"""The agent of one tenant, with five killswitches around every run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic_settings import BaseSettings, SettingsConfigDict

from examples.service.shop import look_up_order, refund
from playhead import Agent, Approval, ApprovalRequest, RunError, RunResult
from playhead.agent.streaming import to_sse
from playhead.compose.killswitches import (
    Budget,
    budget_limit,
    kill_file,
    require_approval_for,
    timeout_after,
    tool_limit,
)
from playhead.trace.control import Control
from playhead.trace.format import new_run_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playhead.kernel.models.base import Model

HEARTBEAT_S: Final = 15
"""Seconds of silence after which a listener is told that the line is alive."""
KEPT: Final = 1000
"""Runs of a tenant that are remembered; the traces keep all."""


class Limits(BaseSettings):
    """What a tenant and each of its runs may do; read from variables such as `SERVICE_TENANT_TOKENS`."""

    model_config = SettingsConfigDict(env_prefix="SERVICE_")

    tenant_tokens: int = 200_000
    """Tokens of all runs together, for as long as the process lives."""
    run_s: float = 900
    """Seconds of a run, those in which it waits for a yes included."""
    tool_calls: dict[str, int] = {"look_up_order": 10, "refund": 1}
    """Calls of each tool in a run."""
    approval_s: float = 600
    """Seconds that somebody has to answer; then it is a no."""
    kill_file: Path = Path("STOP")
    """While this file exists no run goes on, of any tenant: `echo "the shop pays twice" > STOP`."""
    traces: Path = Path("service-traces")
    """Folder of the traces."""


@dataclass
class Question:
    """A call that waits for somebody's yes."""

    request: ApprovalRequest
    answer: asyncio.Future[Approval]


class Tenant:
    """What belongs to one tenant: its budget, its runs and what they ask."""

    def __init__(self, model: str | Model, limits: Limits) -> None:
        self.runs: dict[str, asyncio.Task[RunResult]] = {}
        self.questions: dict[str, Question] = {}
        self._traces = limits.traces
        self._numbers = count(1)
        self._agent = Agent(
            model,
            tools=[look_up_order, refund],
            trace=limits.traces,
            compose=[
                budget_limit(Budget(max_tokens=limits.tenant_tokens)),
                timeout_after(limits.run_s),
                tool_limit(limits.tool_calls),
                require_approval_for("refund", self._ask, timeout=limits.approval_s),
                kill_file(limits.kill_file),
            ],
        )

    def start(self, task: str) -> str:
        """Begin a run and return its id; it goes on whether or not anybody waits for it."""
        over = [run_id for run_id, run in self.runs.items() if run.done()]
        for run_id in over[: max(0, len(self.runs) - KEPT)]:
            del self.runs[run_id]
        run_id = new_run_id()
        self.runs[run_id] = asyncio.create_task(self._run(task, run_id))
        return run_id

    async def stream(self, task: str) -> AsyncIterator[bytes]:
        """Begin a run and yield what it tells as server-sent events; whoever stops listening ends it."""
        async with self._agent.start(task) as handle:
            async for frame in to_sse(handle, heartbeat_s=HEARTBEAT_S):
                yield frame

    def stop(self, run_id: str, why: str) -> bool:
        """Ask a run to end, as `playhead kill` does; False when it does not go on."""
        control = Control.of(self._traces / f"{run_id}.jsonl")
        if control is None or self.runs[run_id].done():
            return False
        control.request_kill(why)
        return True

    async def _run(self, task: str, run_id: str) -> RunResult:
        try:
            return await self._agent.run(task, run_id=run_id)
        except RunError as error:  # the model did not answer, say; the error has what was reached until then
            if not isinstance(error.result, RunResult):
                raise
            return error.result

    async def _ask(self, request: ApprovalRequest) -> Approval:
        number = str(next(self._numbers))
        self.questions[number] = question = Question(request, asyncio.get_running_loop().create_future())
        try:
            return await question.answer
        finally:  # answered, too late, or the run has ended
            del self.questions[number]
