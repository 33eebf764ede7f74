"""The catalogue of events is what the design says, and says what it is."""

from __future__ import annotations

import ast
import inspect
import itertools
from typing import TYPE_CHECKING, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel, ValidationError

import playhead.trace.events
from playhead.trace import types
from playhead.trace.events import EVENT_TYPES, Event, EventBase, Thought, UnknownEvent
from playhead.trace.line import _none_matters

if TYPE_CHECKING:
    from types import ModuleType

# DESIGN.md, section 2, group by group.
KINDS = [
    "run-started", "run-completed", "run-paused", "run-resumed", "agent-started", "agent-completed",
    "phase-entered", "phase-completed", "hook-fired", "hook-failed", "emission-changed", "emission-suppressed",
    "message-added", "tools-defined",
    "llm-requested", "llm-responded", "llm-failed", "llm-retried", "provider-fallback",
    "thought", "plan-created", "plan-step-changed", "reflection", "critique", "assumption-recorded", "alternatives-considered",
    "rationale-missing", "structured-output-failed",
    "tool-call-started", "tool-call-repaired", "tool-call-completed", "tool-call-late",
    "strategy-selected", "strategy-switch-evaluated", "strategy-switched", "decision-evaluated", "curator-decision", "context-synthesized",
    "nudge-issued", "guardrail-violation", "verifier-verdict", "approval-requested", "approval-decided", "budget-reserved", "killswitch-fired",
    "fact-recorded", "kernel-state-snapshot",
    "final-answer", "debrief-completed",
    "replay-served", "replay-diverged",
]  # fmt: skip


def models_of(module: ModuleType) -> list[type[BaseModel]]:
    """Return the models that a module defines."""
    found = [each for each in vars(module).values() if inspect.isclass(each) and issubclass(each, BaseModel)]
    return [model for model in found if model.__module__ == module.__name__]


MODULES = [inspect.getmodule(event_type) for event_type in EVENT_TYPES.values()]
VALUES = models_of(types)
MODELS = [*dict.fromkeys(model for module in MODULES if module for model in models_of(module)), *VALUES, EventBase]


def test_the_kinds_are_those_of_the_design():
    """No kind is missing, none is extra, and they stand in the order of the catalogue."""
    assert list(EVENT_TYPES) == KINDS


def test_every_key_is_the_kind_of_its_class():
    """A line is read as the class whose `kind` it carries."""
    fields = {key: model.model_fields["kind"] for key, model in EVENT_TYPES.items()}
    assert {key: get_origin(field.annotation) for key, field in fields.items()} == dict.fromkeys(EVENT_TYPES, Literal)
    assert {key: (get_args(field.annotation), field.default) for key, field in fields.items()} == {
        key: ((key,), key) for key in EVENT_TYPES
    }


def test_the_union_holds_every_type():
    """`Event`, the annotation, and `EVENT_TYPES`, the table, say the same."""
    assert get_args(Event) == (*EVENT_TYPES.values(), UnknownEvent)


def test_every_event_is_exported():
    """Every event of the catalogue can be imported from one place, and nothing is announced that is not there."""
    exported = playhead.trace.events.__all__
    assert {model.__name__ for model in get_args(Event)} <= set(exported)
    assert [name for name in exported if not hasattr(playhead.trace.events, name)] == []


def documented_fields(model: type[BaseModel]) -> set[str]:
    """Return the annotated names of a class that have a string beneath."""
    body = ast.parse(inspect.getsource(model)).body[0].body  # type: ignore[attr-defined]
    return {
        field.target.id
        for field, beneath in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(beneath, ast.Expr)
        and isinstance(beneath.value, ast.Constant)
        and isinstance(beneath.value.value, str)
    }


def own_fields(model: type[BaseModel]) -> set[str]:
    """Return the fields that a class adds, without the one that only names it."""
    return {name for name in inspect.get_annotations(model) if name in model.model_fields} - {"kind", "type"}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_field_is_documented(model: type[BaseModel]):
    """Every class says in a sentence what it is, and every field has a string beneath that says what it holds."""
    assert model.__doc__
    assert own_fields(model) - documented_fields(model) == set()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_models_are_frozen_and_keep_what_they_do_not_know(model: type[BaseModel]):
    """An event never changes, and the fields of a newer minor format are kept."""
    assert (model.model_config["frozen"], model.model_config["extra"]) == (True, "allow")


def test_an_event_cannot_be_changed():
    """Events are facts."""
    with pytest.raises(ValidationError, match="frozen"):
        Thought(request=1).text = "something else"


@pytest.mark.parametrize("model", VALUES, ids=lambda model: model.__name__)
def test_a_none_inside_a_value_can_be_left_out(model: type[BaseModel]):
    """Inside events, a field that is None is not written, so its absence has to mean None."""
    model.model_rebuild()
    assert _none_matters(model) == ()
