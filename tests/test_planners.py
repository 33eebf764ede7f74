"""One call for one goal: react, plan_and_execute and reflexion, their limits, their tools and their sessions."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import Agent, UsageError, plan_and_execute, planners, react, reflexion, reproduce, tool
from playhead.compose.killswitches import FREE
from playhead.planners import Session, TokenWindow, best_so_far, build_system_prompt, discover_tools
from playhead.testing import ScriptedModel, call, error, text
from playhead.trace.types import Message, Prices, Usage
from tests.kernel.plan.steps import plan, tool_step, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@tool(read_only=True)
async def height(place: str) -> int:
    """Return the height of a mountain."""
    return len(place)


@tool(read_only=True)
async def depth(place: str, exact: bool = False) -> int:
    """Return the depth of a lake."""
    if place == "nowhere":
        raise ValueError("no such lake")
    return -len(place)


@pytest.fixture(autouse=True)
def nothing_registered() -> Iterator[None]:
    """Leave no tool behind."""
    yield
    planners.unregister()


@pytest.fixture
def run_with(tmp_path: Path):
    """Return a function that runs a planner on a script and reproduces its run."""

    async def run(planner: Any, turns: list[Any], goal: str = "Go.", **options: Any) -> Any:
        result = await planner.run(goal, llm=ScriptedModel(turns), trace=tmp_path, rationale=False, **options)
        assert (await reproduce(result.run.trace_path)).identical
        return result

    return run


async def test_a_goal_is_achieved(run_with: Any):
    """Each planner answers a goal with its tools, and says that it is achieved; every call is a run with a trace."""
    asked = [call("height", place="Zed"), text("3")]
    planned = [plan(tool_step("height", args={"place": "Zed"})), verdict(), text("3")]
    judged = [*asked, text(json.dumps({"issues": [], "score": 9, "satisfied": True}))]
    for planner, turns in ((react, asked), (plan_and_execute, planned), (reflexion, judged)):
        result = await run_with(planner, turns, tools=[height])
        assert (result.answer, result.stopped, result.error) == ("3", "goal_achieved", None)
        assert [step.content for step in result.steps if step.type == "observation"] == ["3"]


async def test_parameters_are_those_of_trails(run_with: Any):
    """Answers have at most 1024 tokens, at temperature 0, unless the caller says otherwise."""
    model = ScriptedModel([text("a"), text("b")])
    await react.run("Go.", llm=model, trace=None)
    await react.run("Go.", llm=model, trace=None, max_tokens_per_step=7, temperature=1.0)
    assert [each.parameters for each in model.requests] == [
        {"temperature": 0.0, "max_tokens": 1024},
        {"temperature": 1.0, "max_tokens": 7},
    ]


@pytest.mark.parametrize(
    ("limits", "stopped"),
    [
        ({"max_steps": 2}, "max_steps"),
        ({"max_tokens": 6_000}, "max_tokens"),
        ({"max_cost_usd": 6.0, "prices": {"scripted/model": Prices(input_usd=1e-3, output_usd=1e-3)}}, "max_cost"),
        ({"max_tokens": 6_000, "max_cost_usd": 1.0, "prices": {"scripted/model": FREE}}, "max_tokens"),
    ],
)
async def test_limits_stop_a_run_with_the_best_so_far(run_with: Any, limits: dict[str, Any], stopped: str):
    """A limit is no error: the answer is the newest result, and all steps are there."""
    used = Usage(input_tokens=2_000, output_tokens=100)
    turns = [replace(call("height", place="Zed" * number), usage=used) for number in range(1, 9)]
    result = await run_with(react, turns, tools=[height], **limits)
    assert (result.stopped, result.error) == (stopped, None)
    assert result.answer == best_so_far(result.steps)
    assert result.answer in ("3", "6", "9")


async def test_time_is_limited():
    """A run that lasts too long is stopped, whatever it does then."""

    @tool(read_only=True)
    async def wait() -> str:
        """Wait for nothing."""
        await anyio.sleep(30)
        return "never"

    result = await react.run("Go.", llm=ScriptedModel([call("wait")]), tools=[wait], max_wall_time_s=0.2, trace=None)
    assert (result.stopped, result.error, result.answer) == ("max_wall_time", None, None)


async def test_a_provider_that_fails_is_an_error(run_with: Any):
    """The provider's failure is a result, with its message and what was reached before it."""
    result = await run_with(react, [call("height", place="Zed"), error("no such model")], tools=[height])
    assert (result.stopped, result.answer) == ("error", "3")
    assert "no such model" in result.error


async def test_an_answer_that_is_none_is_an_error(run_with: Any):
    """A run that ended in any other way than by an answer or a limit says how."""
    result = await run_with(react, [text("half an ans", finish_reason="length")])
    assert (result.stopped, result.answer) == ("error", "half an ans")
    assert result.error == "output_truncated: the provider cut the answer off at a limit of length"


async def test_a_key_that_is_missing_is_raised(monkeypatch: pytest.MonkeyPatch):
    """What the caller has to change is no result."""
    with pytest.raises(UsageError):
        await react.run("Go.", llm="nobody", trace=None)


async def test_a_tool_that_fails_is_an_observation(run_with: Any):
    """The model is told of the error, and goes on."""
    result = await run_with(react, [call("depth", place="nowhere"), text("none")], tools=[depth])
    assert [step.content for step in result.steps if step.type == "observation"] == ["error: no such lake"]
    assert result.stopped == "goal_achieved"


# --- sessions -----------------------------------------------------------------------------------------------------------


async def test_a_session_goes_on(run_with: Any):
    """A goal that is given the same session is told of the goals and answers before it."""
    session = Session(principal="ann")
    first = await run_with(
        react, [call("height", place="Zed"), text("3")], "How high?", tools=[height], session=session
    )
    model = ScriptedModel([text("three")])
    second = await react.run("In words?", llm=model, session=session, trace=None)
    assert [(each.role, each.content) for each in model.requests[0].messages[1:]] == [
        ("user", "How high?"),
        ("assistant", "3"),
        ("user", "In words?"),
    ]
    assert session.invocations == [first.run, second.run]
    assert [each.content for each in session.history] == ["How high?", "3", "In words?", "three"]


async def test_plans_and_critiques_are_noted(run_with: Any):
    """Every plan and every critique is in the session's metadata."""
    session = Session()
    turns = [
        plan(tool_step("depth", args={"place": "nowhere"})),
        plan(tool_step("height", args={"place": "Zed"})),
        verdict(),
        text("3"),
    ]
    await run_with(plan_and_execute, turns, tools=[height, depth], session=session, settings={"step_retries": 0})
    assert [[step["tool_name"] for step in each] for each in session.metadata["plans"]] == [["depth"], ["height"]]
    no = text(json.dumps({"issues": ["too short"], "score": 2, "satisfied": False}))
    result = await run_with(reflexion, [text("a"), no, text("b"), no], session=session, max_outer_iterations=2)
    assert (result.stopped, result.answer in ("a", "b")) == ("max_steps", True)
    assert [each["satisfied"] for each in session.metadata["critiques"]] == [False, False]


async def test_replans_are_limited(run_with: Any):
    """A plan that cannot be mended any more goes on without the step, and the answer is given from what there is."""
    turns = [plan(tool_step("depth", args={"place": "nowhere"})), verdict(satisfied=True), text("unknown")]
    result = await run_with(plan_and_execute, turns, tools=[depth], max_replans=0, settings={"step_retries": 0})
    assert (result.answer, result.stopped) == ("unknown", "goal_achieved")


def test_a_window_keeps_its_head_and_the_newest():
    """Old messages go, the pinned first ones stay, and the total is that of what is there."""
    window = TokenWindow(max_tokens=30, pin_head=1)
    for number in range(10):
        window.add(Message(id=0, role="user", content=f"{number}" * 36))
    assert [str(each.content)[0] for each in window.messages] == ["0", "8", "9"]
    assert window.tokens == 30
    window.add(Message(id=0, role="user", content="x" * 400))
    assert [str(each.content)[0] for each in window.messages] == ["0", "x"]


# --- tools --------------------------------------------------------------------------------------------------------------


def names(*arguments: Any) -> list[str]:
    """Return the names of the tools that are discovered."""
    return [name for name, _ in discover_tools(*arguments)]


def test_tools_have_many_shapes():
    """All registered tools, the newest so many, a list of tools and names, or a function that returns one."""
    agent = Agent(ScriptedModel([]), name="guide", trace=None)
    planners.register(height, depth, agent)
    assert names() == ["height", "depth", "guide"]
    assert names(2) == ["depth", "guide"]
    assert names(0) == []
    assert names(["depth", height]) == ["depth", "height"]
    assert names(lambda: ["guide"]) == ["guide"]
    planners.register(height)
    assert names(1) == ["height"]


@pytest.mark.parametrize("tools", [True, False, -1, "height", height, 1.5, lambda: "height"])
def test_other_shapes_are_refused(tools: Any):
    """A bool is no number, a name is no list, and neither is a tool by itself."""
    with pytest.raises(UsageError, match="tools="):
        discover_tools(tools)


def test_tools_are_filtered():
    """Words keep a tool that has any of them in its name or description; a function decides by the metadata."""
    tools = [height, depth]
    assert names(tools, "LAKE sea") == ["depth"]
    assert names(tools, "mountain lake") == ["height", "depth"]
    assert names(tools, "") == ["height", "depth"]
    assert names(tools, lambda found: "exact" in found["params"]) == ["depth"]


def test_metadata_says_all_of_a_tool():
    """A filter is told the name, the parameters and what the tool declares of itself."""
    ((name, found),) = discover_tools([depth])
    assert name == "depth"
    assert {key: value for key, value in found.items() if key != "input_shape"} == {
        "id": "depth",
        "description": "Return the depth of a lake.",
        "params": {"place": "string", "exact": "boolean"},
        "required": ["place"],
        "annotations": {"read_only": True, "risk": "low", "requires_approval": False, "timeout_s": 30.0},
        "output_shape": None,
    }
    assert found["input_shape"] == depth.spec.parameters


def test_the_prompt_lists_the_tools():
    """Goal and tools are in one text; a name that nothing is registered under is listed as such."""
    prompt = build_system_prompt("Measure.", [height, "width"], "mountain lake")
    assert prompt.endswith(
        "Goal: Measure.\n\nTools:\n- height(place: string): Return the height of a mountain.\n- width (unregistered)"
    )
    assert "Tools:" not in build_system_prompt("Think.", [])


async def test_unregistered_tools_are_told(run_with: Any):
    """A model is told which tools were asked for and are not there; the run goes on without them."""
    planners.register(height)
    model = ScriptedModel([text("no")])
    await react.run("Go.", llm=model, tools=["height", "heigth"], trace=None)
    assert [each.name for each in model.requests[0].tools] == ["height"]
    assert "- heigth (unregistered). Did you mean 'height'?" in str(model.requests[0].messages[0].content)


def test_many_tools_are_warned_of():
    """Over thirty tools without a filter cost much; with a filter the caller has chosen."""

    def made(number: int) -> Any:
        async def nothing() -> None:
            """Do nothing."""

        nothing.__name__ = f"tool_{number}"
        return tool(nothing)

    planners.register(*map(made, range(31)))
    with pytest.warns(UserWarning, match="31 tools"):
        discover_tools()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        discover_tools(None, "")
        discover_tools(30)


def test_all_of_it_works_without_async(tmp_path: Path):
    """Each planner can be waited for."""
    for planner in (react, reflexion, plan_and_execute):
        turns = [text("x"), text('{"score": 9, "satisfied": true}'), text("x"), text("x")]
        if planner is plan_and_execute:
            turns = [plan({"type": "analysis", "instruction": "think"}), text("thought"), verdict(), text("x")]
        assert planner.run_sync("Go.", llm=ScriptedModel(turns), trace=tmp_path).answer == "x"


@pytest.mark.parametrize(
    ("planner", "options", "problem"),
    [
        (react, {"strategy": "direct"}, "react.run takes no strategy=: it is the strategy 'reactive'; Agent(strategy='direct') runs another"),
        (plan_and_execute, {"strategy_settings": {}}, "plan_and_execute.run takes no strategy_settings=: use settings="),
        (react, {"strategy_settings": {}}, "react.run takes no strategy_settings=: its strategy has none"),
        (reflexion, {"model": "x"}, "reflexion.run takes no model=: use llm="),
        (react, {"max_iterations": 3}, "react.run takes no max_iterations=: use max_steps="),
        (react, {"parameters": {}}, "react.run takes no parameters=: use temperature= and max_tokens_per_step="),
        (reflexion, {"parameters": {}}, "reflexion.run takes no parameters=: use temperature= and max_tokens_per_call="),
        (react, {"examples": []}, "react.run takes no examples=: use session="),
        (react, {"compose": []}, "react.run takes no compose=: use max_cost_usd=, max_tokens= and max_wall_time_s=, or an Agent"),
        (react, {"system_prompt": "x"}, "react.run takes no system_prompt=: use an Agent"),
        (react, {"max_stepz": 3}, "react.run takes no max_stepz=. Did you mean 'max_steps'?"),
        (react, {"max_steps": 0}, "max_steps must be a whole number of at least 1; it is 0"),
        (plan_and_execute, {"max_steps": "many"}, "max_steps must be a whole number of at least 1; it is 'many'"),
        (plan_and_execute, {"max_replans": -1}, "max_replans must be a whole number of at least 0; it is -1"),
        (reflexion, {"max_outer_iterations": 0}, "max_outer_iterations must be a whole number of at least 1; it is 0"),
    ],
    ids=range(15),
)  # fmt: skip
def test_an_argument_that_is_none_of_them(planner: Any, options: dict[str, Any], problem: str):
    """The error names what the caller wrote, and what to write instead."""
    with pytest.raises(UsageError) as raised:
        planner.run_sync("Go.", **{"llm": ScriptedModel([text("x")]), "trace": None, **options})
    assert str(raised.value).startswith(problem)
