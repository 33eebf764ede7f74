"""A killswitch that lets a tool run only after an approval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from playhead.compose.durations import seconds
from playhead.compose.killswitches.trigger import Switch, checked_trigger, guard_block, names_of
from playhead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.compose.durations import Duration
    from playhead.compose.harness import Block
    from playhead.kernel.approval import Approver
    from playhead.kernel.hooks import Stop, Terminate
    from playhead.kernel.session import Session
    from playhead.kernel.state import PlannedCall
    from playhead.trace.types import ToolSpec


def require_approval_for(
    tools: str | Sequence[str],
    approver: Approver | None = None,
    *,
    timeout: Duration | None = None,
    on_trigger: Literal["continue", "stop", "terminate"] = "continue",
) -> Block:
    """Let a tool run only after this exact call is approved, in this agent and its sub-agents.

    Anything but `True` or `Approval(True)` in time denies the call: the body does not run, and the model reads why.

    Args:
        tools: the name of a tool, or a list of names; `*` means every tool except the kernel's own.
        approver: a function that decides, sync or async; by default the agent's own `approver`.
        timeout: how long the approver has: seconds, or text such as `5m`; no limit by default.
        on_trigger: after a denial `continue` lets the run continue; `stop` ends it with the best output and status `done`;
            `terminate` ends it as failed.

    Raises:
        UsageError: an argument is not valid; or, when a run starts, none of its agents has a tool of this name.
    """
    names = names_of("require_approval_for", tools)
    if approver is not None and not callable(approver):
        raise UsageError(f"an approver is a function that takes the request; it is {approver!r}")
    timeout_s = None if timeout is None else seconds(timeout, "timeout")
    trigger = checked_trigger(on_trigger, "continue")
    return guard_block(
        "require_approval_for",
        lambda session: _Approval(session, trigger, names, approver or session.gate.approver, timeout_s),
        guarded=names,
        approver=approver,
        tools=names,
        timeout=timeout_s,
        on_trigger=trigger,
    )


@dataclass(eq=False)
class _Approval(Switch):
    name = "require_approval_for"
    names: tuple[str, ...]
    approver: Approver | None
    approval_timeout_s: float | None

    def wants_approval(self, session: Session, planned: PlannedCall, spec: ToolSpec) -> bool:  # noqa: ARG002
        return spec.name in self.names or ("*" in self.names and spec.kind != "meta")

    def denied(self, session: Session, planned: PlannedCall, why: str) -> Stop | Terminate | None:  # noqa: ARG002
        return None if self.on_trigger == "continue" else self.answer(why)
