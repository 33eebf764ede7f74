"""Reading plans: ids, names, and everything in a plan that cannot work."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.kernel.plan.reading import find_problems, steps_in
from playhead.kernel.plan.steps import Plan, PlanForm, PlanStep
from playhead.kernel.structured import FormError, read_form
from playhead.trace.types import Rationale
from tests.kernel.plan.steps import analysis, composite, frame, steps_of, tool_step


def problems(*steps: Any, **changes: Any) -> str | None:
    """Return what is wrong with a plan."""
    return find_problems(PlanForm.model_validate({"steps": list(steps)}), frame(**changes))


def test_steps_get_ids_in_order():
    """Steps are s1, s2 …, whatever the model calls them, and references follow."""
    first, second, third = steps_of(
        tool_step("look", id="a", args={"key": "k"}),
        analysis("Read {{from_step:a}}", title="Think"),
        composite("Go on from {{from_step:s2:summary}}", "look", depends_on=["a"]),
    )
    assert (first.id, first.type, first.tool_args, first.rationale) == (
        "s1",
        "tool_call",
        {"key": "k"},
        Rationale(why="it is needed"),
    )
    assert (second.id, second.title, second.instruction) == ("s2", "Think", "Read {{from_step:s1}}")
    assert (third.id, third.instruction, third.depends_on) == (
        "s3",
        "Go on from {{from_step:s2:summary}}",
        ("s1", "s2"),
    )
    assert {each.status for each in (first, second, third)} == {"pending"}


@pytest.mark.parametrize(
    "text",
    [
        '{"plan": [{"action": "look", "action_input": {"key": "k"}, "rationale": "why not"}]}',
        '```json\n[{"tool": "look", "args": "{\\"key\\": \\"k\\"}"}]\n```',
        "{'steps': [{'toolName': 'look', 'toolArgs': {'key': 'k'},}",
        '{"tasks": [{"id": 1, "type": "tool_call", "tool_name": "look", "tool_args": {"key": "k"}}]}',
    ],
)
def test_plans_are_read_by_the_names_that_models_use(text: str):
    """Plans of Trails and of camel case, bare lists and repaired JSON are plans."""
    form = read_form(text, PlanForm)
    assert not isinstance(form, FormError)
    (step,) = steps_in(form, frame())
    assert (step.type, step.tool_name, step.tool_args) == ("tool_call", "look", {"key": "k"})


def test_the_type_of_a_step_is_what_it_says():
    """A step that names a tool calls it, whatever type it says; an analysis that names tools is a loop with them."""
    call = {"tool": "look", "args": {"key": "k"}}
    written: list[Any] = [call, {**call, "type": "look"}, analysis("x", tool_hints=["look"]), "Think of it"]
    assert [each.type for each in steps_of(*written)] == ["tool_call", "tool_call", "composite", "analysis"]
    assert [each.type for each in steps_of({"type": "other", "instruction": "x"})] == ["analysis"]


@pytest.mark.parametrize(
    ("steps", "changes", "expected"),
    [
        ([], {}, "- it has no steps; at most 20 can be carried out"),
        (
            [tool_step("lok", args={"key": "k"})],
            {},
            "- s1: there is no tool 'lok'. Did you mean 'look'? Known: look, send.",
        ),
        ([tool_step("look")], {}, "- s1: tool_args of look lacks key"),
        ([{"type": "tool_call"}], {}, "- s1: a step of type tool_call needs tool_name"),
        ([analysis("")], {}, "- s1: a step of type analysis needs an instruction"),
        ([composite("x", "sent")], {}, "- s1: there is no tool 'sent'. Did you mean 'send'? Known: look, send."),
        (
            [analysis("{{from_step:s1}}")],
            {},
            "- s1 needs s1, which does not come before it; steps run in order",
        ),
        (
            [analysis("{{from_step:s2}}"), analysis("x")],
            {},
            "- s1 needs s2, which does not come before it; steps run in order",
        ),
        (
            [analysis("x", depends_on=["s7"])],
            {},
            "- s1 needs s7, which does not come before it; steps run in order",
        ),
        (
            [analysis("{{s1.price}}")],
            {},
            "- s1: '{{s1.price}}' is no reference; write {{from_step:s1}} or {{from_step:s1:summary}}",
        ),
        (
            [analysis("{{from_step:s2}}"), analysis("x", depends_on=["s1"])],
            {"mode": "dag"},
            "- s1 needs s2, which can never be completed\n- s2 needs s1, which can never be completed",
        ),
        ([analysis("a", id="x"), analysis("b", id="x")], {}, "- two steps have the id x"),
        ([analysis("a")] * 3, {"most": 2}, "- it has 3 steps; at most 2 can be carried out"),
        ([analysis("")] * 7, {}, None),
    ],
)
def test_what_cannot_work_is_said(steps: list[Any], changes: dict[str, Any], expected: str | None):
    """Each thing in a plan that cannot work is named with its step, and no more than five at once."""
    found = problems(*steps, **changes)
    if expected is None:
        assert found is not None
        assert found.endswith("- and 2 more")
    else:
        assert found == expected


def ready(steps: Any, mode: Any) -> list[list[str]]:
    """Return the steps in the waves in which they run when each is completed."""
    plan, waves = Plan("p", "goal", mode, {each.id: each for each in steps}), []
    while wave := plan.ready():
        waves.append([each.id for each in wave])
        plan.by_id |= {each.id: replace(each, status="completed") for each in wave}
    return waves


def test_a_wave_is_what_may_begin_together():
    """In `dag` mode steps begin as soon as what they need is completed; in `linear` mode one after another."""
    needed = {1: (), 2: (), 3: ("s1", "s2"), 4: ("s1",), 5: ("s3",)}
    steps = [PlanStep(f"s{number}", "analysis", depends_on=needs) for number, needs in needed.items()]
    assert ready(steps, "dag") == [["s1", "s2"], ["s3", "s4"], ["s5"]]
    assert ready(steps, "linear") == [["s1"], ["s2"], ["s3"], ["s4"], ["s5"]]


def test_what_waits_for_a_step_that_is_lost():
    """It is never ready, also where the one that it needs only waits itself."""
    status: Any = {"s1": "completed", "s3": "skipped"}
    needed = {"s1": (), "s2": ("s1",), "s3": (), "s4": ("s3",), "s5": ("s1", "s4")}
    steps = {
        each: PlanStep(each, "analysis", depends_on=needs, status=status.get(each, "pending"))
        for each, needs in needed.items()
    }
    assert ready(steps.values(), "dag") == [["s2"]]


def test_in_dag_mode_a_step_may_need_a_later_one():
    """The order of the list is no order of execution there."""
    assert ready(steps_of(analysis("{{from_step:s2}}"), analysis("x"), mode="dag"), "dag") == [["s2"], ["s1"]]


def test_new_steps_go_on_from_those_that_stay():
    """Ids are never given twice; completed steps may be referred to; one that is listed again is not done again."""
    done, read, failed = steps_of(
        tool_step("send", args={"to": "ann"}), tool_step("look", args={"key": "k"}), analysis("x")
    )
    kept = (
        replace(done, status="completed", result=1),
        replace(read, status="completed"),
        replace(failed, status="failed"),
    )
    changes = {"kept": kept, "next_number": 4}
    again = tool_step("send", id="s1", args={"to": "ann"})
    new = steps_of(
        again, tool_step("look", args={"key": "k"}), analysis("{{from_step:s1}} {{from_step:s2}}"), **changes
    )
    assert [(each.id, each.type, each.version) for each in new] == [("s4", "tool_call", 1), ("s5", "analysis", 1)]
    assert problems(analysis("y", id="s2"), **changes) == (
        "- s2 is the id of an earlier step; number new steps from s4 on\n- it has no steps; at most 20 can be carried out"
    )
    assert problems(analysis("{{from_step:s3}}"), **changes) == (
        "- s4 needs s3, which does not come before it; steps run in order"
    )


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


@given(STEPS, st.sampled_from(["linear", "dag"]))
def test_a_plan_without_problems_can_be_carried_out(steps: list[Any], mode: Any):
    """Whatever a model writes is refused, or a plan of which every step can begin at some time."""
    form = read_form(str({"steps": steps}), PlanForm)
    if isinstance(form, FormError) or find_problems(form, frame(mode=mode)) is not None:
        return
    hydrated = steps_in(form, frame(mode=mode))
    assert [each.id for each in hydrated] == [f"s{number}" for number in range(1, len(steps) + 1)]
    assert sum(map(len, ready(hydrated, mode))) == len(steps)
