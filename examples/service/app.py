"""The HTTP of the service."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import defaultdict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Depends, FastAPI, Header, HTTPException, Request
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRouter
from pydantic import BaseModel, Field, StrictBool

from examples.service.shop import demo_model
from examples.service.tenant import Limits, Tenant
from playhead import Approval

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import FrameType

    from playhead.kernel.models.base import Model

api = APIRouter()


class Ask(BaseModel):
    """A task for the agent."""

    task: str
    wait_s: float = Field(default=30, ge=0, le=300)
    """Seconds to wait for the end; the run goes on after that, too."""


class Answer(BaseModel):
    """What somebody says about a call that waits."""

    approved: StrictBool
    """`true` or `false`, and nothing that only looks like it."""
    why: str | None = None


class Stop(BaseModel):
    """Why a run is to end."""

    why: str


class Run(BaseModel):
    """What became of a run."""

    run_id: str
    status: Literal["running", "done", "failed"] = "running"
    success: bool = False
    """Whether the model gave the output as its answer; else it is the best there was when the run ended."""
    output: Any = None
    terminated_by: str | None = None
    terminated_because: str | None = None
    tokens: int | None = None


async def tenant_of(request: Request, x_tenant: Annotated[str, Header(pattern=r"^[a-z]{1,30}$")]) -> Tenant:
    """Return the tenant that asks. In earnest your login says who that is, and not a header that anybody can send.

    Async, so that it runs in the loop: two threads would make a new tenant twice.
    """
    return request.app.state.tenants[x_tenant]  # type: ignore[no-any-return]


Asking = Annotated[Tenant, Depends(tenant_of)]


@api.post("/ask")
async def ask(body: Ask, tenant: Asking) -> Run:
    """Run the agent, and return what became of it by then."""
    run_id = tenant.start(body.task)
    await asyncio.wait([tenant.runs[run_id]], timeout=body.wait_s)
    return look(run_id, tenant)


@api.post("/stream")
async def stream(body: Ask, tenant: Asking) -> StreamingResponse:
    """Run the agent, and send what it tells while it goes on; whoever closes the connection ends the run."""
    return StreamingResponse(tenant.stream(body.task), media_type="text/event-stream")


@api.get("/runs/{run_id}")
def look(run_id: str, tenant: Asking) -> Run:
    """Say what became of a run."""
    run = tenant.runs.get(run_id)
    if run is None:
        raise HTTPException(404, f"you have no run {run_id}")
    if not run.done():
        return Run(run_id=run_id)
    fields = {name: getattr(run.result(), name) for name in Run.model_fields if name != "tokens"}
    return Run(**fields, tokens=run.result().usage.total_tokens)


@api.post("/runs/{run_id}/stop")
async def stop(run_id: str, body: Stop, tenant: Asking) -> Run:
    """End a run, whatever it does at the moment, and return what it had."""
    look(run_id, tenant)
    if tenant.stop(run_id, body.why):
        await asyncio.wait([tenant.runs[run_id]], timeout=2)
    return look(run_id, tenant)


@api.get("/approvals")
def waiting(tenant: Asking) -> list[dict[str, Any]]:
    """List the calls that wait for a yes."""
    asked = {number: question.request for number, question in tenant.questions.items()}
    return [
        {"id": number, "run_id": each.run_id, "tool": each.tool, "arguments": each.arguments, "risk": each.risk}
        for number, each in asked.items()
    ]


@api.post("/approvals/{number}")
async def answer(number: str, body: Answer, tenant: Asking) -> Run:
    """Answer one of them; its run goes on."""
    question = tenant.questions.get(number)
    if question is None or question.answer.done():
        raise HTTPException(404, f"no call {number} waits: it was answered, it was too late, or its run has ended")
    question.answer.set_result(Approval(body.approved, body.why, by="HTTP"))
    return look(question.request.run_id, tenant)


@asynccontextmanager
async def end_with_the_server(app: FastAPI) -> AsyncIterator[None]:
    """At SIGTERM and Ctrl-C end the runs first: the server waits for requests, and they wait for their runs."""
    tenants: dict[str, Tenant] = app.state.tenants
    of_the_server = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def end(number: int, frame: FrameType | None) -> None:
        for tenant in tenants.values():
            for run_id in tenant.runs:
                tenant.stop(run_id, "the server shuts down")
        handler = of_the_server[signal.Signals(number)]
        assert callable(handler)
        handler(number, frame)

    for number, handler in of_the_server.items():
        if callable(handler):  # else nobody listens, and Playhead itself ends the runs
            signal.signal(number, end)
    yield
    running = [run for tenant in tenants.values() for run in tenant.runs.values() if not run.done()]
    if running:
        await asyncio.wait(running, timeout=2)


def make_app(model: str | Model | None = None, limits: Limits | None = None) -> FastAPI:
    """Return the service, with this model, or that of the variable MODEL, or one that is a script."""
    model, limits = model or os.environ.get("MODEL") or demo_model(), limits or Limits()
    app = FastAPI(title="Playhead example", lifespan=end_with_the_server)
    app.state.tenants = defaultdict(lambda: Tenant(model, limits))
    app.include_router(api)
    return app
