"""Put the tenant of a run before its system prompt: one agent serves many tenants, also at the same time.

The tenant is a context variable, which each task has its own value of. Sub-agents get the header too. The hook is
required: a run without a tenant ends as failed before the model is asked anything.

Limit: a header is a word to the model, not a wall. What a tenant may read, its tools have to check.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

import anyio

from playhead import Agent
from playhead.testing import ScriptedModel, Turn, text

if TYPE_CHECKING:
    from playhead.compose import Harness, HookContext
    from playhead.trace.types import Request

TENANT: Final[ContextVar[str | None]] = ContextVar("tenant", default=None)
"""Set it in the task that runs the agent."""


def tenant_header(harness: Harness) -> None:
    """Put the tenant before the system prompt."""
    harness.on("prompt.system", _with_tenant, name="tenant-header", required=True)


def _with_tenant(prompt: str, _: HookContext) -> str:
    tenant = TENANT.get()
    if tenant is None:
        raise LookupError("this run has no tenant; set TENANT in the task that runs the agent")
    return f"Tenant: {tenant}\n\n{prompt}"


def first_line(request: Request) -> Turn:
    """Answer with the first line of the system prompt."""
    return text(str(request.messages[0].content).splitlines()[0])


def main() -> None:
    """Print what two runs at the same time were told, and how a run without a tenant ends."""
    agent = Agent(ScriptedModel([first_line] * 2), compose=[tenant_header], trace=None)
    told: dict[str, object] = {}

    async def serve(tenant: str) -> None:
        TENANT.set(tenant)
        told[tenant] = (await agent.run("Who am I?")).output

    async def serve_both() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve, "Acme")
            tasks.start_soon(serve, "Umbrella")

    anyio.run(serve_both)
    for tenant in sorted(told):
        print(f"{tenant}: {told[tenant]}")
    result = agent.run_sync("Who am I?", run_id="nobody")
    print(f"no tenant: {result.status}, {result.error}")


if __name__ == "__main__":
    main()
