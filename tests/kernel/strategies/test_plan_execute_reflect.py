"""Plan-execute-reflect; every run is reproduced from its file alone."""

from __future__ import annotations

import json
import random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead import tool
from playhead.kernel.forms import read_form
from playhead.kernel.plan import PlanForm, find_problems, resolved, steps_in
from playhead.replay import reproduce
from playhead.testing import call, text
from playhead.trace.types import Completion, Usage
from tests.kernel.plan.steps import analysis, composite, made, plan, tool_step, verdict
from tests.kernel.runs import Ran, record
from tests.proving import sample
from tests.trace.strategies import json_values

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Tools:
    """Tools that note what they did, and fail when told to."""

    def __init__(self, **failures: Any) -> None:
        """Take the tools' failures: how often each of them fails, from its first call on."""
        self.did: list[str] = []
        self._failures = failures

        @tool(read_only=True)
        async def look(key: str) -> dict[str, Any]:
            """Look something up."""
            self._do("look", key)
            return {"key": key, "n": 5}

        @tool
        async def send(to: str, body: Any = None) -> str:
            """Send something."""
            self._do("send", to)
            return f"sent {body} to {to}"

        self.all = (look, send)

    def _do(self, name: str, what: str) -> None:
        self.did.append(f"{name} {what}")
        left = self._failures.get(name, 0)
        if left:
            self._failures[name] = left - 1
            raise ValueError(f"{name} is out of order")


async def planned(folder: Path, tools: Tools, *turns: Any, **options: Any) -> Ran:
    """Run the strategy on a script, and reproduce it."""
    run = await record(folder, list(turns), *tools.all, strategy="plan", **options)
    assert (await reproduce(run.recording.path)).identical
    return run


def changes(run: Ran) -> list[str]:
    """Return what became of the steps, in order, without that they began."""
    return [f"{each.step_id} {each.status}" for each in run.events("plan-step-changed") if each.status != "in_progress"]


def plans(run: Ran) -> list[tuple[int, str | None, list[str]]]:
    """Return the versions of the plan: number, reason and steps that are open."""
    return [
        (each.version, each.reason, [step["id"] for step in each.steps if step["status"] == "pending"])
        for each in run.events("plan-created")
    ]


def prompts(run: Ran) -> list[str]:
    """Return what the model was told, without the task."""
    return [each.content for each in run.events("message-added") if each.role == "user" and each.ref is None][1:]


async def test_side_effects_are_not_repeated(tmp_path: Path):
    """A failed call with side effects may have acted: no later version of the plan makes the same call."""
    tools = Tools(send=1)
    run = await planned(
        tmp_path,
        tools,
        plan(tool_step("send", args={"to": "ann"}), analysis("Think")),
        plan(tool_step("send", args={"to": "ann"}), tool_step("look", args={"key": "a"})),
        plan(tool_step("look", args={"key": "b"})),
        verdict(),
        text("done"),
    )
    assert tools.did == ["send ann", "look b"]
    assert plans(run) == [
        (0, None, ["s1", "s2"]),
        (1, "s1 failed", ["s3", "s4"]),
        (2, "s3 failed", ["s5"]),
    ]
    assert changes(run) == ["s1 failed", "s2 skipped", "s3 failed", "s4 skipped", "s5 completed"]
    assert 'send {"to": "ann"} (in s1): failed, and may have had its effect' in prompts(run)[1]


async def test_turns_are_a_hard_ceiling(tmp_path: Path):
    """Every call, analysis and answer is a turn; the last turn answers from what there is."""
    tools = Tools()
    steps = plan(composite("Find a", "look"), tool_step("look", args={"key": "b"}))
    run = await planned(tmp_path, tools, steps, call("look", key="a"), text("a"), text("a alone"), max_iterations=3)
    assert tools.did == ["look a"]
    assert changes(run) == ["s1 completed", "s2 skipped"]
    assert 's2 look {"key": "b"}: skipped, the turns of the agent are used up' in prompts(run)[-1]
    assert (run.result.terminated_by, run.result.output, run.result.iterations) == ("max_iterations", "a alone", 3)


class RandomPlanner:
    """A model that plans, repeats itself, and answers nonsense, as its seed says."""

    name = "random/planner"
    secrets: Mapping[str, str] = MappingProxyType({})

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    async def prices(self) -> None:
        """It costs nothing that anybody knows."""

    async def complete(self, request: Any) -> Completion:
        """Answer what the last message asks for."""
        asked = next(each.content for each in reversed(request.messages) if each.role == "user")
        return Completion(text=self._answer(asked), usage=Usage(input_tokens=1, output_tokens=1), cost_usd=0.0)

    def _answer(self, asked: str) -> str:
        chance = self._chance
        if chance.random() < 0.1:
            return chance.choice(["", "no", '{"steps": [', '{"steps": []}'])
        if '"satisfied"' in asked:
            return json.dumps({"reason": "so", "satisfied": chance.random() < 0.4})
        if '"steps"' in asked or "That is not right" in asked:
            return json.dumps({"steps": [self._step() for _ in range(chance.randint(1, 4))]})
        return chance.choice(["a", "b", "thought", '{"name": "send", "arguments": {"to": "c"}}'])

    def _step(self) -> dict[str, Any]:
        chance = self._chance
        kind = chance.choice(["send", "send", "look", "think", "loop"])
        if kind == "think":
            return analysis(chance.choice(["x", "y", "{{from_step:s1}}"]))
        if kind == "loop":
            return composite("go on", *chance.sample(["look", "send"], k=1))
        args = {"to" if kind == "send" else "key": chance.choice(["a", "b", "{{from_step:s1}}", "{{from_step:s2}}"])}
        return tool_step(kind, args=args, depends_on=chance.choice([[], [], ["s1"]]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(sample(30, 10)))
async def test_completed_steps_never_run_twice(seed: int, tmp_path: Path):
    """In random plans that fail, no completed step with side effects runs again, nor its call in a later version."""
    chance = random.Random(seed)
    did: list[str] = []

    @tool
    async def send(to: str) -> str:
        """Send."""
        did.append(to)
        if chance.random() < 0.4:
            raise ValueError("lost")
        return chance.choice(["a", "b"])

    @tool(read_only=True)
    async def look(key: str) -> str:
        """Look."""
        if chance.random() < 0.3:
            raise ValueError("dark")
        return chance.choice(["a", "b"])

    settings = {"plan_mode": chance.choice(["linear", "dag"])}
    run = await record(
        tmp_path, RandomPlanner(seed), send, look, strategy="plan", strategy_settings=settings, max_iterations=15
    )
    assert run.error is None
    assert all(each.source in ("plan", "text") for each in run.events("tool-call-started"))
    version, done = 0, set()
    made: dict[str, tuple[int, bool]] = {}
    ok = {each.call_id: each.ok for each in run.events("tool-call-completed")}
    for event in run.events("plan-created", "plan-step-changed", "tool-call-started"):
        if event.kind == "plan-created":
            version = event.version
        elif event.kind == "plan-step-changed":
            assert event.step_id not in done or event.status == "completed"
            done |= {event.step_id} if event.status == "completed" else set()
        elif event.tool == "send" and event.source == "plan":
            before = made.setdefault(event.args["to"], (version, True))
            assert before == (version, True), "the same effect again, in a later version or after it may have happened"
            made[event.args["to"]] = (version, ok[event.call_id])
    assert (await reproduce(run.recording.path)).identical


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([tool_step("lok")], "- s1: there is no tool 'lok'. Did you mean 'look'? Known: look, send."),
        ([tool_step("look")], "- s1: tool_args of look lacks key"),
        ([analysis("")], "- s1: a step of type analysis needs an instruction"),
        ([analysis("x", depends_on=["s7"])], "- s1 needs s7, which does not come before it"),
        ([analysis("{{s1.price}}")], "- s1: '{{s1.price}}' is no reference; write {{from_step:s1}}"),
        ([analysis("a", id="x"), analysis("b", id="x")], "- x is the id of another step; number new steps from s1 on"),
        ([analysis("a")] * 21, "- it has 21 steps; at most 20 can be carried out"),
    ],
)
def test_impossible_plans(steps: list[Any], expected: str):
    """Each problem of a plan is named with its step."""
    assert find_problems(PlanForm.model_validate({"steps": steps}), made()) == expected


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


@pytest.mark.slow
@given(json_values)
def test_a_result_is_never_read_for_references(result: Any):
    """References inside a result are not resolved."""
    hostile = {"s1": "{{from_step:s2}}", "s2": result}
    assert resolved("{{from_step:s1}}", hostile) == "{{from_step:s2}}"
    assert resolved("<{{from_step:s1}}>", hostile) == "<{{from_step:s2}}>"
    assert resolved(["{{from_step:s2}}"], hostile) == [result]
