"""What a debrief says of the strategies: answers that were judged, plans, thoughts, choices of a strategy, repaired calls."""

from __future__ import annotations

from playhead.diagnose.debrief_base import Part, Placed, Text


class JudgedAnswer(Placed):
    """An answer, and what a critic said of it."""

    number: int
    """1 for the first answer of its owner."""
    answer: Text | None
    """The answer, in short; null when the trace does not show which text was judged."""
    satisfied: bool | None
    """Whether it was good enough; null when nobody said so."""
    score: float | None
    """Its score, 0 to 1; null when it got none."""
    critique: Text | None
    """What the critic said, in short; null when the answer was not judged."""
    kept: bool | None = None
    """Whether it is the owner's output; null when that does not follow from the trace."""


class PlanStep(Part):
    """A step of a plan, and what became of it."""

    id: Text
    """Its id."""
    what: Text
    """What it is, in short."""
    version: int
    """The version of the plan that brought it."""
    status: Text
    """Where it stood at the end: `pending`, `in_progress`, `completed`, `failed`, `skipped`."""
    why: Text | None
    """Why it stood there, when the trace says it."""


class PlanVersion(Placed):
    """A plan as it was made, or made anew."""

    version: int
    """0 for the first plan."""
    steps: tuple[Text, ...]
    """The ids of its steps, in order."""
    reason: Text | None
    """Why it was made anew; null for the first."""


class Plan(Placed):
    """A plan of an agent."""

    plan_id: Text
    """Its id."""
    goal: Text
    """What it is for."""
    steps: tuple[PlanStep, ...]
    """The steps of all its versions, in the order in which they came."""
    versions: tuple[PlanVersion, ...]
    """How it changed."""


class Reflected(Placed):
    """What the model found when it judged its progress."""

    text: Text
    """What it said, in short."""
    satisfied: bool | None
    """Whether it considered the goal met; null when it did not say."""


class TreeThought(Placed):
    """A thought of a search in several directions."""

    name: Text
    """Its place in the tree: `2.1` is the first that follows from the second thought."""
    text: Text
    """The thought, in short."""
    score: float | None
    """Its score, 0 to 1; null when the model gave it none."""
    pruned: Text | None
    """Why it was not followed further; null when it was not pruned."""
    followed: bool
    """Whether it is on the best path that the search had found."""


class StrategyChoice(Placed):
    """A strategy that was chosen, or took over."""

    strategy: Text
    """The strategy from here on."""
    from_strategy: Text | None
    """The one that was given up; null for a choice."""
    why: Text | None
    """The stated reason."""


class RepairedCall(Placed):
    """One thing that was put right in a call before it ran."""

    call_id: Text
    """The call."""
    tool: Text | None
    """Its tool; null when the start of the call is not in the file."""
    stage: Text
    """What was put right: `name`, `shape`, `parameters`, `types`, `path`."""
    before: Text
    """What stood there, in short."""
    after: Text
    """What it was read as, in short."""
