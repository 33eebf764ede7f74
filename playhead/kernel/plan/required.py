"""Calls that the task requires: the planner is told, and what its plan lacks is added to it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from playhead.kernel.plan.types import PlanStep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.kernel.plan.hydrate import Frame
    from playhead.kernel.session import Session


def outstanding(session: Session, frame: Frame) -> dict[str, int]:
    """Return how often each required tool has still to return a result."""
    tally = session.tools.tally
    left = {name: least - tally.succeeded[name] for name, least in tally.required.items()}
    return {name: number for name, number in left.items() if number > 0 and name in frame.tools}


def with_required(steps: Sequence[PlanStep], required: Mapping[str, int], frame: Frame) -> tuple[PlanStep, ...]:
    """Return the steps with one more for each required call that they lack, before the last steps without tools.

    What arguments such a call has, the planner did not say: the step is a composite one, of this tool alone.
    """
    planned = Counter(name for each in steps for name in {each.tool_name, *each.tool_hints} if name)
    lacking = [name for name, least in required.items() for _ in range(least - planned[name])]
    added = tuple(
        PlanStep(
            id=f"s{frame.next_number + len(steps) + number}",
            type="composite",
            title=f"required call of {name}",
            instruction=f"Call {name} once for the task, for something that the results so far do not cover.",
            tool_hints=(name,),
            version=frame.version,
        )
        for number, name in enumerate(lacking)
    )
    place = max((number for number, each in enumerate(steps, 1) if each.type != "analysis"), default=0)
    return (*steps[:place], *added, *steps[place:])
