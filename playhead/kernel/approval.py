"""Approval of calls. Anything but an explicit approval in time is a denial."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from playhead.errors import ReplayError, TraceWriteError
from playhead.kernel.lifecycle.bodies import run_body
from playhead.trace.values import scrub

if TYPE_CHECKING:
    from playhead.trace.control import Control
    from playhead.trace.types import Rationale
    from playhead.trace.values import JsonValue


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A tool call awaiting approval."""

    tool: str
    """The tool."""
    arguments: JsonValue
    """A copy of exactly the arguments that the body would get; changing it has no effect."""
    risk: str
    """How harmful a wrong call is, as the tool declares."""
    run_id: str
    """The run."""
    owner: str
    """The agent that makes the call."""
    rationale: Rationale | None
    """The model's own reason."""
    call_id: str = ""
    """The call's id, unique in its agent."""
    args_hash: str = ""
    """Hash of the arguments, as in the trace."""
    control: Control | None = field(default=None, compare=False, repr=False)
    """The run's control folder, through which another process can answer; None if the run has none."""
    redact: Callable[[JsonValue], JsonValue] = field(default=lambda value: value, compare=False, repr=False)
    """Returns a value without the secrets that the run knows, for approvers that write the arguments somewhere."""


@dataclass(frozen=True, slots=True)
class Approval:
    """A decision on one call. A call runs only if this is exactly this type, no subclass, and `approved` is True."""

    approved: bool
    """Whether the call may run."""
    why: str | None = None
    """The reason, which the model reads after a denial."""
    by: str | None = None
    """Who decided."""


Approver = Callable[[ApprovalRequest], "bool | Approval | Awaitable[bool | Approval]"]
"""Decides on a call. A function that is not async runs in a thread, so it may block."""


async def decide(request: ApprovalRequest, approver: Approver | None, timeout_s: float | None = None) -> dict[str, Any]:
    """Return the decision on exactly this call as the fields of `approval-decided`; an approver's error is a denial.

    An answer after `timeout_s` seconds is never used. The call does not wait for an approver that is still running
    after that, or after the run was cancelled.
    """
    if approver is None:
        return {"approved": False, "why": "nobody could be asked: the agent has no approver"}
    late_at = None if timeout_s is None else anyio.current_time() + timeout_s
    ended = await run_body(lambda: approver(request), is_async=_is_async(approver), timeout_s=timeout_s)
    # The loop may have been blocked since the answer came.
    if ended is None or (late_at is not None and anyio.current_time() >= late_at):
        return {"approved": False, "why": f"the approver did not answer within {timeout_s:g} s"}
    if isinstance(ended.error, (ReplayError, TraceWriteError)):
        raise ended.error
    if ended.error is not None:
        return {"approved": False, "why": f"the approver raised {type(ended.error).__name__}"}
    return _as_decision(ended.value)


def _is_async(approver: Approver) -> bool:
    """Return whether calling it only creates a coroutine for the event loop."""
    method = getattr(approver, "__call__", None)  # noqa: B004 - the method of a callable object
    return inspect.iscoroutinefunction(approver) or inspect.iscoroutinefunction(method)


def _as_decision(answer: object) -> dict[str, Any]:
    """Return the decision by the answer's exact type, because `isinstance` consults the answer's own code."""
    if answer is True or answer is False:
        return {"approved": True} if answer else {"approved": False, "why": "denied"}
    if type(answer) is not Approval:
        return {"approved": False, "why": f"the approver returned {type(answer).__name__}, not an approval"}
    texts = {name: value for name, value in (("why", answer.why), ("by", answer.by)) if value is not None}
    try:
        return {"approved": answer.approved is True, **{name: scrub(str(value)) for name, value in texts.items()}}
    except Exception as error:  # noqa: BLE001 - a reason that is not text may run any code
        return {"approved": False, "why": f"the approval raised {type(error).__name__} when it was read"}
