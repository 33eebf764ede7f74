"""What a run took, and what of it a stop would have saved."""

from __future__ import annotations

from math import fsum, isfinite
from typing import TYPE_CHECKING

from playhead.replay.backtest_model import Figures
from playhead.trace.events import LlmRequested, LlmResponded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.replay.backtest_play import Play
    from playhead.trace.recording import RecordedCall

NOT_RUN = frozenset({"ApprovalDenied", "Refused", "Stopped"})
"""Types of the errors of calls that came as far as the guards, and no further."""


def figures_of(play: Play) -> tuple[Figures, Figures]:
    """Return what the run took, and what of that would not have been: what had not begun where it would have stopped."""
    requests: list[tuple[str, int, int]] = []
    answers: dict[tuple[str, int, int], LlmResponded] = {}
    for record in play.recording.records:
        match record.event:
            case LlmRequested() as event:
                requests.append((record.owner, event.request, event.attempt))
            case LlmResponded() as event:
                answers[record.owner, event.request, event.attempt] = event
    calls = [
        (owner, call.started.call_id)
        for owner, session in play.sessions.items()
        for call in session.recorded.calls.values()
        if (spec := session.guarded_spec(call)) is not None and spec.kind != "meta" and _ran(call)
    ]
    took = _figures(answers.values(), len(requests), len(calls), play.lasted_s)
    if play.stop is None:
        return took, Figures()
    left = [answer for key, answer in answers.items() if key not in play.sent]
    unsent = sum(key not in play.sent for key in requests)
    unrun = sum(key not in play.ran for key in calls)
    return took, _figures(left, unsent, unrun, max(0.0, play.lasted_s - play.stop.step.after_ms / 1000))


def _figures(answers: Iterable[LlmResponded], requests: int, calls: int, seconds: float) -> Figures:
    tokens, costs, unknown = 0, [], False
    for answer in answers:
        tokens += answer.usage.total_tokens
        if answer.cost_usd is None or not isfinite(answer.cost_usd):
            unknown = True
        else:
            costs.append(answer.cost_usd)
    cost = None if unknown and not costs else fsum(costs)
    return Figures(tokens=tokens, cost_usd=cost, cost_unknown=unknown, requests=requests, calls=calls, seconds=seconds)


def _ran(call: RecordedCall) -> bool:
    completed = call.completed
    return completed is None or completed.error is None or completed.error.type not in NOT_RUN
