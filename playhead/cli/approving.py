"""Who decides on the calls of `playhead run` that require approval."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from playhead.cli.output import note
from playhead.compose.approvers import ask_in_terminal, file_inbox, nobody_at_the_terminal
from playhead.errors import UsageError
from playhead.kernel.approval import Approval

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.compose.approvers import Show
    from playhead.kernel.approval import ApprovalRequest, Approver

WAYS: Final = ("ask", "inbox", "deny")


def approver_for(way: str | None, trace_dir: Path | None, show: Show) -> Approver:
    """Return the approver of a way; None is `ask` where somebody can be asked, else `deny`.

    Raises:
        UsageError: nobody can be asked that way.
    """
    nobody = nobody_at_the_terminal()
    if way == "ask" and nobody is not None:
        raise UsageError(f"--approve ask has nobody to ask: {nobody}; --approve inbox lets another process decide")
    if way == "inbox":
        return told_inbox(trace_dir)
    return nobody_to_ask if way == "deny" or nobody is not None else ask_in_terminal(show=show)


def nobody_to_ask(request: ApprovalRequest) -> Approval:
    """Deny: there is nobody, so a tool that needs a yes does not run."""
    why = f"playhead run asks nobody about {request.tool}; --approve ask does on a terminal, --approve inbox anywhere"
    return Approval(approved=False, why=why)


def told_inbox(trace_dir: Path | None) -> Approver:
    """Return the inbox for another process, which says what to type there."""
    wait = file_inbox()
    where = "" if trace_dir is None else f" --trace-dir {shlex.quote(str(trace_dir))}"

    async def approve(request: ApprovalRequest) -> object:
        if request.control is not None:
            call = shlex.quote(reference(request.owner, request.call_id))
            note(
                f"{request.tool} waits for a yes: playhead approve {request.run_id} {call}{where}  (or deny … --why TEXT)"
            )
        return await wait(request)  # type: ignore[misc]  # it is async

    return approve  # type: ignore[return-value]  # what the inbox answers


def reference(owner: str, call_id: str) -> str:
    """Return how a call is named on the command line: a sub-agent's may have the id of another agent's."""
    return call_id if owner == "root" else f"{owner}/{call_id}"
