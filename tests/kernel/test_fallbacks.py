"""Models that take over when the one that was asked does not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, Context, Execution, load_recording, tool
from playhead.compose.killswitches import budget_limit
from playhead.errors import ModelError, UsageError
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, call, error, text
from playhead.trace.types import Prices
from tests.kernel.runs import data
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path


@tool(read_only=True)
async def lookup(key: str) -> str:
    """Look up."""
    return f"found {key}"


def agent(folder: Path, *models: ScriptedModel, **options: Any) -> Agent:
    """Return an agent whose models take over from each other."""
    first, *others = models
    return Agent(
        first, **grouped(fallbacks=others, tools=[lookup], trace=folder, rationale=False, retry_delay_s=0.0, **options)
    )


def told(path: Path, *kinds: str) -> list[dict[str, Any]]:
    """Return these events of a run."""
    return [data(record.event) for record in load_recording(path).records if record.kind in kinds]


async def test_the_next_model_takes_over_for_good(tmp_path: Path):
    """The request that failed is sent again, to the next model; all later ones go there too; attempts count on."""
    first = ScriptedModel([call("lookup", key="a"), *[error("busy", retryable=True)] * 2], name="x/first")
    second = ScriptedModel([call("lookup", key="b"), text("42")], name="x/second")
    result = await agent(tmp_path, first, second, retries=1).run("Do it.", run_id="run")
    assert result.output == "42"
    asked = told(tmp_path / "run.jsonl", "llm-requested")
    assert [(each["request"], each.get("attempt", 0), each["model"]) for each in asked] == [
        (0, 0, "x/first"),
        (1, 0, "x/first"),
        (1, 1, "x/first"),
        (1, 2, "x/second"),
        (2, 0, "x/second"),
    ]
    (event,) = told(tmp_path / "run.jsonl", "provider-fallback")
    assert event == {"from_model": "x/first", "to_model": "x/second", "reason": "busy", "attempt": 2}
    assert (await reproduce(tmp_path / "run.jsonl")).identical


async def test_after_so_many_failures(tmp_path: Path):
    """`fallback_after` gives up a model before its retries are used up; the last one has all of them."""
    first = ScriptedModel([error("busy", retryable=True)] * 9, name="x/first")
    second = ScriptedModel([error("busy", retryable=True)] * 9, name="x/second")
    with pytest.raises(ModelError, match="busy"):
        await agent(tmp_path, first, second, retries=2, fallback_after=1).run("Do it.", run_id="run")
    assert (len(first.requests), len(second.requests)) == (1, 3)
    assert (await reproduce(tmp_path / "run.jsonl")).identical


class Priced(ScriptedModel):
    """A model with a price."""

    async def prices(self) -> Prices:
        """Return what a token costs."""
        return Prices(input_usd=1.0, output_usd=1.0)


async def test_budgets_reserve_at_the_price_of_who_is_asked(tmp_path: Path):
    """The model that takes over costs what it costs: its request does not fit, and is not made."""
    first, second = ScriptedModel([error("no")], name="x/free"), Priced([text("42")], name="x/dear")
    budget = budget_limit(max_cost_usd=1.0, output_cap=100)
    result = await agent(tmp_path, first, second, compose=[budget]).run("Do it.", run_id="run")
    assert (result.terminated_by, len(second.requests)) == ("budget_limit", 0)
    assert (await reproduce(tmp_path / "run.jsonl")).identical


class Unpriced(ScriptedModel):
    """A model whose price nobody knows."""

    async def prices(self) -> None:
        """Return nothing."""


async def test_an_unknown_price_of_a_fallback_is_an_error_at_the_start(tmp_path: Path):
    """Under a cost limit each model that may be asked has a price."""
    models = ScriptedModel([text("42")], name="x/free"), Unpriced([], name="x/unknown")
    with pytest.raises(UsageError, match="x/unknown"):
        await agent(tmp_path, *models, compose=[budget_limit(max_cost_usd=1.0)]).run("Do it.")


async def test_agents_below_have_their_own(tmp_path: Path):
    """The fallback of an agent that another one calls is that agent's."""
    models = ScriptedModel([error("no")], name="x/first"), ScriptedModel([text("low")], name="x/second")
    below = Agent(models[0], name="below", execution=Execution(fallbacks=[models[1]]), context=Context(rationale=False))
    above = Agent(
        ScriptedModel([call("below", task="Go."), text("done")]),
        tools=[below],
        trace=tmp_path,
        context=Context(rationale=False),
    )
    assert (await above.run("Do it.", run_id="run")).steps[-1].content == "low"
    assert (await reproduce(tmp_path / "run.jsonl")).identical
