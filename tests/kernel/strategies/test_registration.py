"""What strategies and kernels may be called, and what may be registered as one."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from playhead import Agent, UsageError, register_kernel, register_strategy
from playhead.errors import UnknownStrategyError, nearest
from playhead.kernel import Kernel, act, kernels, observe, think
from playhead.kernel.kernels import get_kernel
from playhead.kernel.strategies import get_strategy, list_strategies
from playhead.kernel.strategies.reactive import REACT
from playhead.testing import ScriptedModel

PHASES: dict[Any, Any] = {"thinking": think, "acting": act, "observing": observe}


async def own(state: Any, session: Any) -> Any:
    """Do nothing."""
    return state


class Callable:
    """A strategy that is an object."""

    async def __call__(self, state: Any, session: Any) -> Any:
        """Do nothing."""
        return state


@pytest.fixture(autouse=True)
def kernels_of_this_test_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what kernels a test registered."""
    monkeypatch.setattr(kernels, "_registry", {})


@pytest.mark.parametrize(
    ("name", "strategy", "problem"),
    [
        ("reactive", own, "'reactive' is a strategy of Playhead; choose another name, or replace it everywhere with replace=True"),
        ("Reactive", own, "'Reactive' means the strategy 'reactive'; choose another name"),
        ("cot", own, "'cot' means the strategy 'chain-of-thought'; choose another name"),
        ("COT", own, "'COT' means the strategy 'chain-of-thought'; choose another name"),
        ("my strategy", own, "'my strategy' cannot name a strategy: letters, digits, '_' and '-', at most 64"),
        ("", own, "'' cannot name a strategy"),
        ("mine\n", own, "cannot name a strategy"),
        (None, own, "None cannot name a strategy"),
        ("mine", None, "the strategy 'mine' must be an async function of a state and a session; it is None"),
        ("mine", lambda state, session: state, "the strategy 'mine' must be an async function"),
        ("mine", Callable, "the strategy 'mine' must be an async function"),
    ],
    ids=range(11),
)  # fmt: skip
def test_what_is_no_strategy(name: Any, strategy: Any, problem: str):
    """It is refused when it is registered, and what was known stays."""
    before = list_strategies()
    with pytest.raises(UsageError) as raised:
        register_strategy(name, strategy)
    assert str(raised.value).startswith(problem) or problem in str(raised.value)
    assert list_strategies() == before


def test_replace_is_said():
    """A built-in name is taken over only by who says so; an alias is never one."""
    register_strategy("direct", own, replace=True)
    assert get_strategy("direct") == ("direct", own)
    with pytest.raises(UsageError, match="'cot' means the strategy"):
        register_strategy("cot", own, replace=True)


@pytest.mark.parametrize("strategy", [own, Callable(), partial(own)], ids=["function", "object", "partial"])
def test_what_is_a_strategy(strategy: Any):
    """Anything that is awaited when it is called; one of the user's own is replaced by a later one."""
    register_strategy("mine", own)
    register_strategy("mine", strategy)
    assert get_strategy("mine") == ("mine", strategy)


@pytest.mark.parametrize(
    ("name", "kernel", "problem"),
    [
        ("react", REACT, "'react' is a kernel of Playhead; choose another name, or replace it everywhere with replace=True"),
        ("my kernel", REACT, "'my kernel' cannot name a kernel"),
        ("mine", own, "the kernel 'mine' must be a Kernel(name, phases)"),
        ("mine", Kernel("mine", {}), "the kernel 'mine' lacks the phases thinking, acting, observing"),
        ("mine", Kernel("mine", {"thinking": think, "acting": act}), "the kernel 'mine' lacks the phase observing"),
        ("mine", Kernel("mine", PHASES | {"thinking": 7}), "the phase thinking of the kernel 'mine' must be an async function"),
        ("mine", Kernel("mine", PHASES | {"reflecting": think}), "the loop has no phase 'reflecting'"),
    ],
    ids=range(7),
)  # fmt: skip
def test_what_is_no_kernel(name: Any, kernel: Any, problem: str):
    """It is refused when it is registered, and not in the middle of a run."""
    with pytest.raises(UsageError) as raised:
        register_kernel(name, kernel)
    assert str(raised.value).startswith(problem) or problem in str(raised.value)


def test_a_kernel_of_ones_own():
    """It is there under its name, and replaces a built-in one where that is said."""
    mine = Kernel("mine", PHASES)
    register_kernel("mine", mine)
    register_kernel("react", mine, replace=True)
    assert (get_kernel("mine"), get_kernel("react")) == (mine, mine)


@pytest.mark.parametrize("strategy", ["reactive", "direct"])
def test_settings_that_nobody_reads(strategy: str):
    """A strategy without settings says so, instead of recording what does nothing."""
    with pytest.raises(UsageError, match=f"{strategy} has no setting 'max_tool_steps'. Known: none."):
        Agent(ScriptedModel([]), strategy=strategy, strategy_settings={"max_tool_steps": 1}, trace=None)


@pytest.mark.parametrize("name", ["Reactive", "ReAct", "REACT", "react"])
def test_names_in_any_case(name: str):
    """The field writes ReAct; the full name is what is recorded."""
    assert Agent(ScriptedModel([]), strategy=name, trace=None).header.strategy == "reactive"


@pytest.mark.parametrize("given", [None, 7, own, ["react"]], ids=["None", "number", "function", "list"])
def test_a_name_is_text(given: Any):
    """Anything else is refused, and a function is told where it belongs."""
    with pytest.raises(UsageError, match="strategy is the name of a registered strategy") as raised:
        Agent(ScriptedModel([]), strategy=given, trace=None)
    assert ("register_strategy" in str(raised.value)) == callable(given)
    with pytest.raises(UsageError, match="kernel is the name of a registered kernel"):
        Agent(ScriptedModel([]), kernel=given, trace=None)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("tree", "tree-of-thought"), ("chain", "chain-of-thought"), ("code", "code-action"), ("reacct", "react")],
)
def test_the_nearest_name(name: str, meant: str):
    """The beginning of one name means that name; all names are told, with the short ones."""
    with pytest.raises(UnknownStrategyError) as raised:
        get_strategy(name)
    told = str(raised.value)
    assert told.startswith(f"there is no strategy {name!r}. Did you mean {meant!r}? Known: adaptive, autonomous, ")
    assert told.endswith(
        "chain-of-thought (cot), code-action, direct, plan-execute-reflect (plan, plan-execute), "
        "reactive (react), reflexion (reflect), tree-of-thought (tot)."
    )


def test_the_beginning_of_several_names():
    """It means none of them more than the others."""
    assert nearest("of-", ["of-the-thoughts", "of-the-kernels"]) == " Known: of-the-kernels, of-the-thoughts."
    assert nearest("cal", ["calendar", "mail"]) == " Did you mean 'calendar'? Known: calendar, mail."
