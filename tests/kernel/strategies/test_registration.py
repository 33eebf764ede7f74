"""Names and registration of strategies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, Strategy, UsageError, register_strategy
from playhead.errors import NotReplayableError
from playhead.kernel.strategies import Direct
from playhead.kernel.strategies import base as registry
from playhead.kernel.strategies.base import list_strategies, strategy_class
from playhead.replay import reproduce_sync
from playhead.testing import ScriptedModel, text
from tests.own_strategies import subclass

if TYPE_CHECKING:
    from pathlib import Path


async def own(state: Any, session: Any) -> Any:
    """Do nothing."""
    return state


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
        (called("reactive"), "'reactive' means the strategy 'reactive'; choose another name, or replace that one everywhere"),
        (called("cot"), "'cot' means the strategy 'chain-of-thought'; choose another name"),
        (called("my strategy"), "'my strategy' cannot name a strategy: letters, digits, '_' and '-', at most 64"),
        (called("mine\n"), "cannot name a strategy"),
        (called("mine", aliases=("tot",)), "'tot' means the strategy 'tree-of-thought'; choose another name"),
        (Nameless, "a strategy is a class: `class Mine(Strategy)` with a `name`"),
        (own, "a strategy is a class: `class Mine(Strategy)` with a `name`"),
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


def test_a_replay_without_the_strategy(tmp_path: Path):
    """The replay is refused and says what to register."""
    register_strategy(Own)
    ran = Agent(ScriptedModel([text("a")]), strategy=Own(), trace=tmp_path).run_sync("Hi")
    assert ran.trace_path is not None
    assert reproduce_sync(ran.trace_path).identical
    registry._registry.clear()
    with pytest.raises(
        NotReplayableError, match=r"^there is no strategy 'mine'.* Register it before the replay, with "
    ):
        reproduce_sync(ran.trace_path)
