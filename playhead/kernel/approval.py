"""Asking somebody whether a call may run. Anything but an explicit yes is a no."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playhead.kernel.describe import is_failure
from playhead.trace.values import from_json, scrub

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.kernel.state import PlannedCall
    from playhead.trace.types import Rationale, ToolSpec
    from playhead.trace.values import JsonValue


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call that waits for somebody's yes."""

    tool: str
    """The tool."""
    arguments: JsonValue
    """Exactly the arguments that the body would get."""
    risk: str
    """How bad a wrong call is, as the tool declares."""
    run_id: str
    """The run."""
    owner: str
    """The agent that asks."""
    rationale: Rationale | None
    """The model's own reason."""


@dataclass(frozen=True, slots=True)
class Approval:
    """A decision on one call. Only this type, with `approved` being True, lets a call run."""

    approved: bool
    why: str | None = None
    by: str | None = None


Approver = Callable[[ApprovalRequest], "bool | Approval | Awaitable[bool | Approval]"]


async def decide(session: Session, spec: ToolSpec, planned: PlannedCall) -> dict[str, Any]:
    """Return the decision on exactly this call as the fields of `approval-decided`; never raises for the approver."""
    approver = session.approver
    if approver is None:
        return {"approved": False, "why": "nobody was there to ask"}
    arguments = from_json(planned.call.arguments)  # a copy: what is shown can be written into, what runs cannot
    request = ApprovalRequest(spec.name, arguments, spec.risk, session.run.run_id, session.owner, planned.rationale)
    try:
        answer = approver(request)
        if inspect.isawaitable(answer):
            answer = await answer
    except BaseException as error:
        if not is_failure(error):
            raise
        return {"approved": False, "why": f"the approver raised {type(error).__name__}"}
    return _as_decision(answer)


def _as_decision(answer: object) -> dict[str, Any]:
    if isinstance(answer, Approval):
        said = {"why": answer.why, "by": answer.by}
        words = {name: scrub(str(value)) for name, value in said.items() if value is not None}
        return {"approved": answer.approved is True, **words}
    if answer is True:
        return {"approved": True}
    why = "denied" if answer is False else f"the approver returned {type(answer).__name__}, not an approval"
    return {"approved": False, "why": why}
