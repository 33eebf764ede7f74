"""Names and registration of strategies."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playhead import Agent, Strategy, UsageError, register_strategy
from playhead.compose import killswitches as ks
from playhead.diagnose.debrief import TERMINATED_BY
from playhead.kernel.strategies import Direct
from playhead.kernel.strategies.base import list_strategies, strategy_class
from playhead.testing import ScriptedModel, Turn, call, calls, error, text
from playhead.trace.format import ANSWERED
from tests.kernel.strategies.looking import broken, lookup, run
from tests.own_strategies import subclass
from tests.proving import sample


class Own(Strategy):
    """Do nothing."""

    name = "mine"

    async def run(self, state: Any, session: Any) -> Any:
        """Do nothing."""
        return state


def called(name: Any, **more: Any) -> Any:
    """Return a strategy of this name."""
    return subclass(Own, name=name, **more)


class Nameless(Strategy):
    """Without a name."""

    async def run(self, state: Any, session: Any) -> Any:
        """Do nothing."""
        return state


@pytest.mark.parametrize(
    ("strategy", "problem"),
    [
        (called("reactive"), "'reactive' means the strategy 'reactive'; choose another name"),
        (called("my strategy"), "'my strategy' cannot name a strategy: letters, digits, '_' and '-', at most 64"),
        (called("mine", aliases=("tot",)), "'tot' means the strategy 'tree-of-thought'; choose another name"),
        (Nameless, "a strategy is a class: `class Mine(Strategy)` with a `name`"),
        (Own(), "a strategy is a class: `class Mine(Strategy)` with a `name`"),
    ],
)  # fmt: skip
def test_refused_registrations(strategy: Any, problem: str):
    """Nothing changes in the registry."""
    before = list_strategies()
    with pytest.raises(UsageError) as raised:
        register_strategy(strategy)
    assert str(raised.value).startswith(problem) or problem in str(raised.value)
    assert list_strategies() == before


def test_an_instance_is_registered_by_its_use():
    """An instance registers its class; a name that another class has is an error."""
    mine = called("mine")
    assert Agent(ScriptedModel([]), strategy=mine(), trace=None).header.strategy == "mine"
    assert strategy_class("mine") is mine
    for other, holder in ((called("mine"), mine), (called("direct"), Direct), (called("Direct"), None)):
        with pytest.raises(UsageError) as raised:
            Agent(ScriptedModel([]), strategy=other(), trace=None)
        told = (
            f"that is {holder.__module__}.{holder.__qualname__}" if holder else "'Direct' means the strategy 'direct'"
        )
        assert told in str(raised.value)
    register_strategy(called("mine"))
    with pytest.raises(UsageError, match="Called cannot be called 'mine'"):
        Agent(ScriptedModel([]), strategy=mine(), trace=None)


TEXTS = (
    "42", "", "Hm.", "<thinking>a", "a</think>b", "<thinking>a</thinking>",
    '{"thoughts": ["a", "b"]}', "direct", '{"steps": [{"type": "tool_call", "tool_name": "lookup", "tool_args": {"key": "p"}}]}',
    "Final answer: 42", '{"satisfied": false, "score": 3, "issues": ["a"]}', '{"satisfied": true, "score": 9}', '{"satisfied": 7}',
    '{"name": "lookup", "arguments": {"key": "b"}}', '```json\n[{"tool": "finish", "args": {"result": "b"}}]\n```',
)  # fmt: skip

CALLS = (
    call("lookup", key="a"), call("lookup"), call("broken"), call("finish", result="done"), call("finish"),
    call("final-answer", output="42"), call("nothing"), calls(call("finish", result="x"), call("broken")),
    calls(call("lookup", key="a"), call("lookup", key="b"), text="<thinking>both"),
)  # fmt: skip

TURNS = st.one_of(
    st.sampled_from(TEXTS).map(text),
    st.sampled_from(CALLS),
    st.sampled_from(["length", "safety"]).map(lambda reason: text("It is", finish_reason=reason)),
    st.just(error("no such model")),
    st.just(error("busy", retryable=True)),
)

SETTINGS: dict[str, Any] = {
    "direct": st.just({}),
    "chain-of-thought": st.just({}),
    "adaptive": st.just({"candidates": ["direct", "reflexion"]}),
    "plan-execute-reflect": st.fixed_dictionaries({"plan_mode": st.sampled_from(["linear", "dag"])}),
    "tree-of-thought": st.just({"breadth": 2, "depth": 2}),
    "autonomous": st.fixed_dictionaries(
        {
            "max_nudges": st.integers(min_value=0, max_value=2),
        }
    ),
    "reflexion": st.fixed_dictionaries(
        {
            "max_retries": st.integers(min_value=0, max_value=2),
            "kernel_max_iterations": st.integers(min_value=1, max_value=2),
        }
    ),
}

OPTIONS = st.fixed_dictionaries(
    {
        "required_tools": st.sampled_from([(), ("lookup",)]),
        "meta_tools": st.sampled_from([(), ("final-answer",)]),
        "max_iterations": st.sampled_from([2, 6]),
        "compose": st.sampled_from(
            [(), (ks.tool_limit("lookup", 1),), (ks.budget_limit(max_tokens=3_000, output_cap=50),)]
        ),
    }
)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", SETTINGS)
@settings(max_examples=sample(25, 8), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_script_ends_and_is_reproduced(strategy: str, data: Any):
    """The run has a typed reason, an output that is an answer only where it says so, and is reproduced."""
    turns: list[Turn] = data.draw(st.lists(TURNS, max_size=10))
    options = {**data.draw(OPTIONS), "strategy_settings": data.draw(SETTINGS[strategy])}

    async def check() -> None:
        with tempfile.TemporaryDirectory() as folder:
            ran = await run(Path(folder), turns, lookup, broken, strategy=strategy, **options)
        assert ran.result.terminated_by in TERMINATED_BY
        assert ran.result.terminated_by not in ("error", "trace_error")
        answered = ran.result.terminated_by in ANSWERED and ran.result.output is not None
        assert ran.result.success is answered
        if ran.result.success and options["required_tools"]:
            assert any(step.tool == "lookup" and step.ok for step in ran.result.steps)

    anyio.run(check)
