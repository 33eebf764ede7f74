"""What a run took, and what of it a stop would have saved."""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

from playhead.replay.backtest_model import Figures
from playhead.trace.events import LlmRequested, LlmResponded
from playhead.trace.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.replay.backtest_play import Play
    from playhead.trace.recording import RecordedCall

Attempt = tuple[str, int, int]
"""An owner, the number of a request, and which attempt at it."""


def figures_of(play: Play) -> tuple[Figures, Figures]:
    """Return what the run took, and what of that would not have been: what had not begun where it would have stopped."""
    requests: list[Attempt] = []
    answers: dict[Attempt, LlmResponded] = {}
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
    took = _figures(play, answers, len(requests), len(calls), play.lasted_s)
    if play.stop is None:
        return took, Figures()
    left = {key: answer for key, answer in answers.items() if key not in play.sent}
    unsent = sum(key not in play.sent for key in requests)
    unrun = sum(key not in play.ran for key in calls)
    return took, _figures(play, left, unsent, unrun, max(0.0, play.lasted_s - play.stop.step.after_ms / 1000))


def _figures(play: Play, answers: Mapping[Attempt, LlmResponded], requests: int, calls: int, seconds: float) -> Figures:
    costs = [play.cost_of(owner, answer) for (owner, _, _), answer in answers.items()]
    known = [each for each in costs if each is not None]
    usage = sum((answer.usage.of_answer() for answer in answers.values()), start=Usage())
    return Figures(
        tokens=usage.known(usage.total_tokens),
        usage_unknown=usage.unknown or 0,
        cost_usd=fsum(known) if known or not costs else None,
        cost_unknown=len(known) < len(costs),
        requests=requests,
        calls=calls,
        seconds=seconds,
    )


def _ran(call: RecordedCall) -> bool:
    return call.completed is None or call.completed.end.body_ran
