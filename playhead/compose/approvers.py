"""Approvers: a person at the terminal, or another process of the same user."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import anyio

from playhead.compose.durations import Duration, seconds
from playhead.compose.inbox import Inbox, PendingApproval
from playhead.kernel.approval import Approval
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playhead.kernel.approval import ApprovalRequest, Approver

POLL_S: Final = 0.05
"""Seconds between two checks for an answer."""
_LONGEST_LINE: Final = 4096
"""The longest line that is read from a terminal, in bytes."""
PROMPT: Final = "Allow it? [y]es / [n]o, and why: "

Show = Callable[[str], Callable[[bool], None]]
"""Shows a question that ends in a prompt, and returns a function to call afterwards with whether it was answered."""


def ask_in_terminal(*, show: Show | None = None) -> Approver:
    """Return an approver that asks whoever sits at the terminal.

    Only `y` or `yes` approves. Any other line denies the call and is recorded as the reason. Ctrl-D also denies it. If stdin
    or stderr is not a terminal, the call is denied. Questions about parallel calls come one after the other, and input typed
    before a question is discarded.

    Args:
        show: shows a question, for example beside a status line; by default it is written to stderr.
    """

    async def approve(request: ApprovalRequest) -> Approval:
        nobody = nobody_at_the_terminal(shown=show is not None)
        if nobody is not None:
            return Approval(approved=False, why=f"nobody could be asked: {nobody}", by="terminal")
        question = "\n".join([*pending_of(request).lines(), PROMPT])
        async with _turn():
            typed = await _ask(sys.stdin.fileno(), question, show or _on_stderr)
        if typed is None:
            return Approval(approved=False, why="no answer: the input ended", by="terminal")
        return _read_answer(typed)

    return approve


def file_inbox(timeout: Duration = "10m") -> Approver:
    """Return an approver that waits for an answer from another process: `playhead approve RUN CALL`, or `deny`.

    The run must be traced, because the question is written to its control folder, beside the trace. If no answer comes
    within `timeout`, the call is denied.

    Raises:
        UsageError: `timeout` is not a valid duration.
    """
    limit_s = seconds(timeout, "timeout")

    async def approve(request: ApprovalRequest) -> Approval:
        if request.control is None:
            return Approval(approved=False, why="no other process can be asked: the run has no control folder")
        inbox = Inbox(request.control)
        try:
            pending = inbox.ask(pending_of(request))
        except (OSError, ValueError) as error:
            return Approval(approved=False, why=f"no other process can be asked: {error}")
        try:
            return await _answer_of(inbox, pending, limit_s)
        finally:
            inbox.withdraw(pending)

    return approve


def pending_of(request: ApprovalRequest) -> PendingApproval:
    """Return a request as it is shown, without the secrets that the run knows."""
    whole = to_json(request.arguments)
    arguments = request.redact(whole)
    reason = request.rationale.why if request.rationale is not None else None
    return PendingApproval(
        call_id=request.call_id,
        owner=request.owner,
        tool=request.tool,
        arguments=arguments,
        args_hash=request.args_hash,
        risk=request.risk,
        why=None if reason is None else str(request.redact(reason)),
        redacted=arguments != whole,
    )


async def _answer_of(inbox: Inbox, pending: PendingApproval, limit_s: float) -> Approval:
    late_at = anyio.current_time() + limit_s
    while anyio.current_time() < late_at:
        answer = inbox.take_answer(pending)
        if answer is not None:
            return Approval(answer.approved, answer.why, answer.by)
        await anyio.sleep(min(POLL_S, limit_s))
    return Approval(approved=False, why=f"nobody answered within {limit_s:g} s")


# --- the terminal -----------------------------------------------------------------------------------------------------

_queue: Final[deque[object]] = deque()
"""Questions waiting for the process's terminal; the first one has it."""


@asynccontextmanager
async def _turn() -> AsyncIterator[None]:
    """Wait until the terminal is free. A question whose event loop hangs keeps it."""
    ticket = object()
    _queue.append(ticket)
    try:
        while _queue[0] is not ticket:  # noqa: ASYNC110 - the first may be another loop's
            await anyio.sleep(POLL_S)
        yield
    finally:
        _queue.remove(ticket)


def nobody_at_the_terminal(*, shown: bool = False) -> str | None:
    """Return why the terminal cannot be used, or None if it can; `shown` means that the question appears elsewhere."""
    for name in ("stdin",) if shown else ("stdin", "stderr"):
        with suppress(AttributeError, ValueError):  # the stream is missing or closed
            if getattr(sys, name).isatty():
                continue
        return f"{name} is not a terminal"
    with suppress(OSError):  # a terminal that does not control this process has no foreground
        if os.tcgetpgrp(sys.stdin.fileno()) != os.getpgrp():
            return "the process runs in the background"
    return None


def _on_stderr(question: str) -> Callable[[bool], None]:
    stderr = sys.stderr
    print(question, end="", flush=True, file=stderr)

    def over(answered: bool) -> None:  # noqa: FBT001 - see `Show`
        if not answered:
            print(file=stderr)

    return over


async def _ask(terminal: int, question: str, show: Show) -> str | None:
    """Return the line typed in answer; None if the input ends first.

    No thread reads the terminal, because an abandoned one would consume the answer to the next question.
    """
    import termios  # noqa: PLC0415 - there is no terminal on most machines that run agents

    with suppress(termios.error):
        termios.tcflush(terminal, termios.TCIFLUSH)
    over, typed = show(question), b""
    try:
        with suppress(OSError, ValueError):  # the terminal has gone
            while not typed.endswith((b"\n", b"\r")):
                await anyio.wait_readable(terminal)
                piece = os.read(terminal, _LONGEST_LINE)
                if not piece:
                    return None
                typed += piece
            return typed.decode(errors="replace").strip()
        return None
    finally:
        over(typed.endswith((b"\n", b"\r")))


def _read_answer(typed: str) -> Approval:
    """Return what was typed as a decision."""
    word, _, rest = typed.partition(" ")
    if typed.lower() in ("y", "yes"):
        return Approval(approved=True, by="terminal")
    if word.lower().rstrip(",:;.") in ("n", "no"):
        return Approval(approved=False, why=rest.strip() or None, by="terminal")
    return Approval(approved=False, why=typed or None, by="terminal")
