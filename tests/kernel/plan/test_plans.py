"""Plans: how they are read, which are refused, and references to results."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.kernel.passes import read_form
from playhead.kernel.plan import PlanForm, find_problems, misspelled, resolved, steps_in
from tests.kernel.plan.steps import analysis, made, tool_step


def problems(*steps: Any, **changes: Any) -> str | None:
    """Return what is wrong with a plan."""
    return find_problems(PlanForm.model_validate({"steps": list(steps)}), made(**changes))


@pytest.mark.parametrize(
    ("steps", "changes", "expected"),
    [
        (
            [tool_step("lok", args={"key": "k"})],
            {},
            "- s1: there is no tool 'lok'. Did you mean 'look'? Known: look, send.",
        ),
        ([tool_step("look")], {}, "- s1: tool_args of look lacks key"),
        ([analysis("")], {}, "- s1: a step of type analysis needs an instruction"),
        (
            [analysis("{{from_step:s1}}")],
            {},
            "- s1 needs s1, which does not come before it",
        ),
        (
            [analysis("{{from_step:s2}}"), analysis("x")],
            {},
            "- s1 needs s2, which does not come before it",
        ),
        (
            [analysis("x", depends_on=["s7"])],
            {},
            "- s1 needs s7, which does not come before it",
        ),
        (
            [analysis("{{s1.price}}")],
            {},
            "- s1: '{{s1.price}}' is no reference; write {{from_step:s1}}",
        ),
        (
            [analysis("{{from_step:s2}}"), analysis("x", depends_on=["s1"])],
            {"mode": "dag"},
            "- s1 needs s2, which does not come before it",
        ),
        (
            [analysis("a", id="x"), analysis("b", id="x")],
            {},
            "- x is the id of another step; number new steps from s1 on",
        ),
        ([analysis("a")] * 3, {"most": 2}, "- it has 3 steps; at most 2 can be carried out"),
    ],
)
def test_impossible_plans(steps: list[Any], changes: dict[str, Any], expected: str):
    """Each problem of a plan is named with its step."""
    assert problems(*steps, **changes) == expected


def ready(steps: Any, mode: Any) -> list[list[str]]:
    """Return the steps in the waves in which they run when each is completed."""
    plan, waves = made(mode, steps), []
    while wave := plan.ready():
        waves.append([each.id for each in wave])
        plan.by_id |= {each.id: each.model_copy(update={"status": "completed"}) for each in wave}
    return waves


STEPS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["tool_call", "analysis", "composite", "other"])},
        optional={
            "id": st.sampled_from(["s1", "s2", "a"]) | st.integers(0, 3),
            "instruction": st.sampled_from(["", "x", "{{from_step:s1}}", "{{from_step:a}}", "{{from_step:s3}}"]),
            "tool_name": st.sampled_from(["look", "send", "nope", None]),
            "tool_args": st.sampled_from([{"key": "k"}, {"key": "{{from_step:s2}}"}, {"to": 1}, "{}", None]),
            "depends_on": st.lists(st.sampled_from(["s1", "s2", "s3", "a"]), max_size=2),
        },
    ),
    max_size=4,
)


@pytest.mark.slow
@settings(max_examples=60)
@given(STEPS, st.sampled_from(["linear", "dag"]))
def test_a_plan_without_problems_can_be_carried_out(steps: list[Any], mode: Any):
    """A random plan is refused, or each of its steps can start at some time."""
    form = read_form(str({"steps": steps}), PlanForm)
    if isinstance(form, str) or find_problems(form, made(mode)) is not None:
        return
    hydrated = steps_in(form, made(mode))
    assert len({each.id for each in hydrated}) == len(steps)
    assert sum(map(len, ready(hydrated, mode))) == len(steps)


RESULTS: dict[str, Any] = {"s1": {"n": [1, 2]}, "s2": "x" * 900, "s3": 7}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**50), 2**50) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("{{from_step:s3}}", 7),
        (" {{ from_step : s1 }} ", {"n": [1, 2]}),
        ("n is {{from_step:s3}} of {{from_step:s1}}", 'n is 7 of {"n": [1, 2]}'),
        ({"a": ["{{from_step:s3}}", {"b": "<{{from_step:s3}}>"}], "c": 1}, {"a": [7, {"b": "<7>"}], "c": 1}),
        ("{{name}} {s3}", "{{name}} {s3}"),
        ([], []),
    ],
)
def test_results_take_the_place_of_references(value: Any, expected: Any):
    """A text that is one reference becomes the result with its type; within other text it is written as text."""
    assert resolved(value, RESULTS) == expected


@pytest.mark.parametrize(
    "text",
    ["{{from_step:s1.n}}", "{{from_step:s1:first}}", "{{from_step:s1}", "{{from_step}}", "{{s1}}", "{{ s1.result }}"],
)
def test_misspelled_references(text: str):
    """A misspelled reference is named, so that its plan is refused."""
    assert misspelled("{{from_step:s1}}", {"a": [f"{{{{name}}}} {text}"]}) == text


@pytest.mark.slow
@given(JSON)
def test_a_result_is_never_read_for_references(result: Any):
    """References inside a result are not resolved."""
    hostile = {"s1": "{{from_step:s2}}", "s2": result}
    assert resolved("{{from_step:s1}}", hostile) == "{{from_step:s2}}"
    assert resolved("<{{from_step:s1}}>", hostile) == "<{{from_step:s2}}>"
    assert resolved(["{{from_step:s2}}"], hostile) == [result]
