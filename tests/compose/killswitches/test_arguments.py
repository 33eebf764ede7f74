from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent
from playhead.compose import killswitches as ks
from playhead.errors import UsageError
from playhead.testing import ScriptedModel, text
from tests.kernel.strategies.looking import lookup

if TYPE_CHECKING:
    from pathlib import Path


def deny(_request: Any) -> bool:
    """Say no."""
    return False


BAD: list[tuple[Any, str]] = [
    (lambda: ks.max_iterations("3"), "max_iterations must be a whole number of at least 0; it is '3'"),  # type: ignore[arg-type]
    (ks.budget_limit, "a budget needs max_tokens="),
    (lambda: ks.budget_limit(max_cost_usd=float("nan")), "max_cost_usd is a number of US dollars"),
    (lambda: ks.budget_limit(ks.Budget(max_tokens=1), max_tokens=2), "budget_limit takes a Budget, or limits"),
    (lambda: ks.budget_limit(max_tokens=1, output_cap=0), "output_cap must be a whole number of at least 1; it is 0"),
    (lambda: ks.budget_limit(max_tokens=1, prompt_bound="exact"), "prompt_bound is `bytes` or `estimate`"),  # type: ignore[arg-type]
    (lambda: ks.timeout_after("5 m"), "text such as '500ms', '30s', '5m'"),
    (lambda: ks.require_approval_for([]), "takes the name of a tool, or a list of names"),
    (lambda: ks.require_approval_for("a", "ann"), "an approver is a function"),  # type: ignore[arg-type]
    (lambda: ks.kill_file("a\0b"), "kill_file takes the path of a file"),
    (ks.tool_limit, "tool_limit takes a tool and its limit"),
    (lambda: ks.tool_limit({"a": -1}), "the limit of a must be a whole number"),
    (lambda: ks.circuit_breaker(0), "failures must be a whole number of at least 1"),
    (lambda: ks.stop_when("True"), "stop_when takes a function of the context"),  # type: ignore[arg-type]
    (lambda: ks.require_approval_for("a", on_trigger="refuse"), "on_trigger is `stop`, `terminate` or `continue`"),  # type: ignore[arg-type]
    (lambda: ks.tool_limit("a", 1, on_trigger="halt"), "on_trigger is `stop`, `terminate` or `refuse`"),  # type: ignore[arg-type]
    *(
        (lambda make=make: make(on_trigger="Stop"), "on_trigger is `stop` or `terminate`; it is 'Stop'")
        for make in (
            partial(ks.max_iterations, 1), partial(ks.budget_limit, max_tokens=1), partial(ks.timeout_after, 1),
            partial(ks.watchdog, 1), partial(ks.kill_file, "a"), partial(ks.circuit_breaker, 1), partial(ks.stop_when, bool),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("make", "words"), BAD, ids=[str(number) for number in range(len(BAD))])
def test_a_wrong_argument_is_refused(make: Any, words: str):
    """It is refused when the switch is made, in words that say what the switch takes."""
    with pytest.raises(UsageError) as raised:
        make()
    assert words in str(raised.value)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    "block",
    [ks.tool_limit("lokup", 1), ks.circuit_breaker(1, tools=["lokup"]), ks.require_approval_for("lokup", deny)],
)
def test_a_tool_that_is_not_there(tmp_path: Path, block: Any):
    """A switch that would guard nothing is refused before the run starts, with the nearest name; nothing is written."""
    agent = Agent(ScriptedModel([text("done")]), tools=[lookup], compose=[block], trace=tmp_path)
    with pytest.raises(UsageError, match=r"there is no tool 'lokup'\..*lookup"):
        agent.run_sync("Go.")
    assert list(tmp_path.iterdir()) == []


def test_a_price_that_is_not_known(tmp_path: Path):
    """Under a limit of cost every model needs a price, also those of agents below; nothing is written without."""

    class Unpriced(ScriptedModel):
        async def prices(self) -> None:
            return None

    below = Agent(Unpriced([text("done")], name="my/model"), name="below", trace=None)
    limit: Any = {"trace": tmp_path / "traces", "compose": [ks.budget_limit(max_cost_usd=1)]}
    for agent in (Agent(below.model, **limit), Agent(ScriptedModel([]), tools=[below], **limit)):
        with pytest.raises(UsageError, match="the price of my/model is not known"):
            agent.run_sync("Go.")
    assert not (tmp_path / "traces").exists()
