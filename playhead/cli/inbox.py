"""What `approvals`, `approve` and `deny` share: the calls that wait, and the answer to one of them."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from playhead.cli import exits, options
from playhead.cli.approving import reference
from playhead.cli.output import note, text_console, write_json
from playhead.cli.reaching import reach, user
from playhead.diagnose.approvals import call_lines, short
from playhead.errors import PlayheadError, nearest
from playhead.trace.control import Control

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playhead.trace.asked import PendingApproval
    from playhead.trace.store import TraceStore


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that waits, and where."""

    control: Control
    pending: PendingApproval

    @property
    def reference(self) -> str:
        """How the call is named on the command line."""
        return reference(self.pending.owner, self.pending.call_id)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"run_id": self.control.run_id, "call": self.reference, **self.pending.as_json()}

    def lines(self) -> Iterator[str]:
        """Yield what is shown of it, each line safe."""
        seconds = max(time.time_ns() // 1000 - self.pending.asked_us, 0) / 1e6
        yield f"run {self.control.run_id}  call {short(self.reference)}  asked {seconds:.0f} s ago"
        yield from call_lines(self.pending)


def waiting_calls(store: TraceStore, run: str | None) -> list[Waiting]:
    """Return the calls of a run that wait, or of all runs that go on; says what is left out. Raises like `reach`."""
    if run is not None:
        controls = [reach(store.resolve(run), "nothing waits")]
    else:
        controls = [control for control in Control.all_in(store.folder) if control.held]
    for control in controls:
        for name in control.left_out():
            note(f"run {control.run_id}: {name} holds no request for an approval and is left out")
    return [Waiting(control, pending) for control in controls for pending in control.pending()]


def answer_one(  # noqa: PLR0913 - the options of two commands
    run: str, call: str | None, *, approved: bool, why: str | None, trace_dir: Path | None, as_json: bool
) -> int:
    """Answer one call that waits, and show exactly what was answered."""
    calls = waiting_calls(options.open_store(trace_dir), run)
    waiting = _named(calls, call) if call is not None else _only(calls, run)
    if approved and call is None:
        _confirm(waiting)
    if not waiting.control.answer(waiting.pending, approved=approved, why=why, by=user()):
        raise PlayheadError(f"the call {waiting.reference} waits no more: it has been answered, or given up")
    if as_json:
        write_json([{**waiting.as_json(), "approved": approved, "answer": why}])
    else:
        said = "approved" if approved else "denied"
        lines = [*waiting.lines(), f"{said}; the run goes on as soon as it has read this"]
        text_console().out("\n".join(lines), highlight=False)
    return exits.OK


def _confirm(waiting: Waiting) -> None:
    """Let nobody approve what he has not seen: another call may wait than the one that was listed."""
    if not sys.stdin.isatty():
        raise PlayheadError(
            f"name the call that you have seen: playhead approve {waiting.control.run_id} {waiting.reference}"
        )
    click.echo("\n".join(waiting.lines()), err=True)
    click.confirm("Approve it?", abort=True, err=True)


def _only(calls: list[Waiting], run: str) -> Waiting:
    if not calls:
        raise PlayheadError(f"no call of the run {run} waits for an answer")
    if len(calls) > 1:
        raise PlayheadError(f"{len(calls)} calls wait; name one: {', '.join(each.reference for each in calls)}")
    return calls[0]


def _named(calls: list[Waiting], name: str) -> Waiting:
    exact = [each for each in calls if name in (each.reference, f"{each.pending.owner}/{each.pending.call_id}")]
    alike = [each for each in calls if each.pending.call_id.startswith(name) or each.reference.startswith(name)]
    found = exact or [each for each in calls if each.pending.call_id == name] or alike
    if not name or not found:
        why = "it has been answered, given up, or never asked"
        raise PlayheadError(f"no call {name!r} waits: {why}.{nearest(name, [each.reference for each in calls])}")
    if len(found) > 1:
        raise PlayheadError(f"{name!r} may mean {len(found)} calls: {', '.join(each.reference for each in found)}")
    return found[0]
