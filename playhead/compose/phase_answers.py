"""The answers that a phase hook may return, and the errors of invalid ones."""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.describe import describe, described
from playhead.kernel.hooks import Answer, Nudge, Recover, Resume, Skip, Stop, SwitchTo, Terminate, Unmet
from playhead.kernel.phases import state_changes
from playhead.kernel.state import KernelState
from playhead.kernel.strategies.base import make_strategy

if TYPE_CHECKING:
    from playhead.kernel.session import Session

_SWITCHED: Final = "playhead.switched"
"""Key in a run's notes for the turn of the last switch of the strategy."""
_ONLY_BEFORE: Final[dict[type, tuple[str, ...]]] = {
    Nudge: ("think", "complete"),
    SwitchTo: ("think",),
    Answer: ("complete",),
    Resume: ("complete",),
}
"""The phases before which each answer may be returned."""


def problem_of(answer: Any, phase: str, timing: str) -> str | None:  # noqa: ANN401 - anything
    """Return the problem with a phase hook's answer, or None."""
    if not isinstance(answer, (Stop, Terminate, Skip, *_ONLY_BEFORE)):
        return (
            f"it returned {_shown(answer)}; a phase hook returns None, Stop(…), Terminate(…) or Skip(), before think also "
            "Nudge(…) or SwitchTo(…), and before complete Nudge(…), Answer(…) or Resume(…)"
        )
    name = type(answer).__name__
    places = next((places for each, places in _ONLY_BEFORE.items() if isinstance(answer, each)), None)
    if places is not None and (timing != "before" or phase not in places):
        return f"it returned {name}, which only a hook before {' or '.join(places)} may do"
    texts = ("reason", "switch", "terminated_by", "text", "name", "why")
    if not all(isinstance(getattr(answer, each, None), (str, NoneType)) for each in texts):
        return f"it returned {name} with a reason that is no text"
    if isinstance(answer, Nudge) and not isinstance(answer.otherwise, (Stop, Terminate, NoneType)):
        return "it returned Nudge with otherwise= that is neither Stop(…) nor Terminate(…)"
    if isinstance(answer, SwitchTo):
        try:
            make_strategy(answer.strategy)  # type: ignore[arg-type]  # it may be anything
        except Exception as error:  # noqa: BLE001 - it may be anything
            return f"it returned SwitchTo: {describe(error)}"
    return None


def problem_of_switch(strategy: str, state: KernelState, session: Session) -> str | None:
    """Return why the strategy cannot be switched, or None; such a switch would repeat the same turn without end."""
    notes = session.agent.gate.notes
    if strategy == session.at.strategy:
        return f"it returned SwitchTo({strategy!r}), which is the strategy that runs"
    if notes.get(_SWITCHED) == state.iteration:
        return f"it returned SwitchTo({strategy!r}) in a turn in which the strategy has been switched already"
    notes[_SWITCHED] = state.iteration
    return None


def problem_of_recovery(answer: Any, state: KernelState) -> str | None:  # noqa: ANN401 - anything
    """Return the problem with an error hook's answer, or None."""
    if not isinstance(answer, Recover):
        return f"it returned {_shown(answer)}; an error hook returns None or Recover(state)"
    if not isinstance(answer.state, KernelState) or not isinstance(answer.reason, str):
        return f"it returned Recover({_shown(answer.state)}); it takes a state, and a reason that is text"
    try:
        KernelState.model_validate(answer.state.__dict__)
        state_changes(state, answer.state)
    except Exception as error:  # noqa: BLE001 - the fields of a state may hold anything
        return f"it returned Recover with a state that is not right: {described(error)}"
    return None


def _shown(answer: object) -> str:
    return f"the class {answer.__name__}" if isinstance(answer, type) else type(answer).__name__


def checked_unmet(each: object) -> Unmet:
    """Return what a block reports as still required; raises `TypeError` for anything but an `Unmet`."""
    if not isinstance(each, Unmet):
        raise TypeError(f"it returned {type(each).__name__}, not Unmet(…)")
    return each
