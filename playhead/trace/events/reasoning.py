"""The model's thoughts, plans and critiques, in its own words."""

from typing import Literal

from playhead.trace.base import EventBase, Id, Integer
from playhead.trace.events.tools import CallEvent
from playhead.trace.types import Alternative, Rationale
from playhead.trace.values import JsonValue


class Thought(EventBase, kind="thought"):
    """The text that accompanied the model's calls, without rationale blocks."""

    request: Integer
    """The request whose answer contains it."""
    text: str | None = None
    """The thought; absent when it is the whole text of the answer."""
    name: Id | None = None
    """Its place in a search tree: `2.1` is the first thought below thought `2`."""


class PlanCreated(EventBase, kind="plan-created"):
    """A plan was made or revised."""

    plan_id: str
    """Id of the plan."""
    version: Integer
    """0 for the first plan, then 1, 2 …"""
    goal: str
    """Its goal."""
    steps: tuple[JsonValue, ...]
    """The steps, typed by the strategy."""
    reason: str | None = None
    """Why it was revised, such as `s2 failed`; absent for the first plan."""


class PlanStepChanged(EventBase, kind="plan-step-changed"):
    """A step of a plan changed its state."""

    plan_id: str
    """Id of the plan."""
    step_id: str
    """Id of the step."""
    status: Id
    """The new state: `pending`, `in_progress`, `completed`, `failed`, `skipped`."""
    reason: str | None = None
    """The reason for the change, if it is not obvious."""


class Reflection(EventBase, kind="reflection"):
    """The model judged the progress so far."""

    text: str
    """The text."""
    satisfied: bool | None = None
    """Whether it considers the goal met."""


class Critique(EventBase, kind="critique"):
    """The model, or a critic, judged an answer."""

    text: str
    """The text."""
    satisfied: bool | None = None
    """Whether the answer is good enough."""
    score: float | None = None
    """The score it gave, 0 to 1."""
    thought: str | None = None
    """The thought that it judges, by its place in the search; absent when it judges an answer."""


class AssumptionRecorded(EventBase, kind="assumption-recorded"):
    """The model stated an assumption ("I assume X because Y")."""

    request: Integer
    """The request whose answer contains it."""
    assumption: str
    """The assumption, at most 240 characters."""
    rationale: Rationale | None = None
    """The stated reason; absent when none was given."""


class AlternativesConsidered(EventBase, kind="alternatives-considered"):
    """The model named the alternatives that it rejected."""

    decision: str
    """The decision."""
    alternatives: tuple[Alternative, ...]
    """The rejected options, with the reasons."""
    kept: tuple[str, ...] | None = None
    """The thoughts that a search continues with, best first; absent outside a search."""


class RationaleMissing(CallEvent, kind="rationale-missing"):
    """The model gave no reason for a call, although the agent requires one."""

    path: Literal["native", "text", "plan"]
    """How the call was requested."""


class StructuredOutputFailed(EventBase, kind="structured-output-failed"):
    """An answer did not have the requested form."""

    expected: str
    """Name of the form."""
    error: str
    """The problem of the answer."""
    attempt: Integer
    """0 for the first answer, then 1, 2 …"""
