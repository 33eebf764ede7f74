"""One budget for several runs: in one loop, in several threads, stacked in any order."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead import Agent, PlayheadError, load_recording
from playhead.compose.killswitches import Budget, budget_limit, timeout_after
from playhead.compose.killswitches.ledger import cost_of, worst_cost
from playhead.errors import MissingApiKeyError, ModelRequestError, RateLimitError
from playhead.testing import ScriptedModel, call, text
from playhead.trace.types import Prices, Usage
from tests.compose.killswitches import oracle
from tests.compose.killswitches.agents import Schedule
from tests.compose.killswitches.provider import Provider, RandomModel
from tests.compose.killswitches.test_schedules import LIMIT_S
from tests.kernel.hung import HungModel, hanging, timed
from tests.kernel.strategies.looking import lookup
from tests.options import grouped
from tests.proving import bound, sample

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.types import Request

OPTIONS: dict[str, Any] = {"rationale": False, "meta_tools": (), "trace": None, "retry_delay_s": 0}


def random_budget(chance: random.Random) -> Budget:
    """Return a budget of tokens, or of money."""
    if chance.random() < 0.3:
        return Budget(max_cost_usd=chance.choice((0.01, 0.05, 0.2)))
    return Budget(max_tokens=chance.choice((300, 3_000, 9_000)))


def check_budget(budget: Budget, provider: Provider) -> None:
    """The ledger says what was billed, nothing is set aside any more, and nothing was spent above the limit."""
    assert (budget.in_flight, budget.set_aside_tokens) == (0, 0)
    assert budget.spent_tokens == provider.tokens
    assert budget.spent_tokens <= (budget.max_tokens or float("inf"))
    if budget.max_cost_usd is not None:
        assert provider.usd <= Decimal(str(budget.max_cost_usd))


@pytest.mark.slow
@pytest.mark.parametrize("together", ["loop", "threads"])
@pytest.mark.parametrize("group", range(sample(10, 1)))
def test_several_runs(group: int, together: str, tmp_path: Path):
    """Together they spend what the budget allows, at most, and each of them ends: in one loop, or each in its own thread."""
    for number in range(group * 7, group * 7 + 7):
        chance = random.Random(f"{together} {number}")
        schedule = Schedule(chance, Provider(), budget=random_budget(chance))
        names = [f"run-{number}-{each}" for each in range(chance.randint(2, 4))]
        agents = [schedule.agent(tmp_path, f"agent_{name}") for name in names]
        if together == "loop":
            anyio.run(_in_one_loop, agents, names)
        else:
            in_threads([(anyio.run, _run, agent, name) for agent, name in zip(agents, names, strict=True)])
        assert schedule.budget is not None
        check_budget(schedule.budget, schedule.provider)
        for name in names:
            recording = load_recording(tmp_path / f"{name}.jsonl")
            oracle.check_whole(recording)
            oracle.check_causes(recording)


async def _in_one_loop(agents: list[Agent], names: list[str]) -> None:
    with anyio.fail_after(LIMIT_S):
        async with anyio.create_task_group() as runs:
            for agent, name in zip(agents, names, strict=True):
                runs.start_soon(_run, agent, name)


async def _run(agent: Agent, name: str) -> None:
    with suppress(PlayheadError):
        await agent.run("task", run_id=name)


def in_threads(works: list[Any]) -> None:
    """Do things at the same time; all of them end."""
    threads = [threading.Thread(target=work, args=arguments, daemon=True) for work, *arguments in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert not any(thread.is_alive() for thread in threads)


def test_the_same_budget_twice():
    """A budget stacked twice, or also on an agent below, is charged once and does not wait for itself."""
    budget = Budget(max_tokens=4_000)
    block = budget_limit(budget, output_cap=2_500)
    below = Agent(ScriptedModel([text("done")]), **grouped(name="below", compose=[block, block], **OPTIONS))
    agent = Agent(
        ScriptedModel([call("below", task="Go."), text("done")]),
        **grouped(tools=[below], compose=[block, budget_limit(budget, output_cap=3_000)], **OPTIONS),
    )
    took_s, result = timed(lambda: agent.run_sync("Go."))
    assert took_s < bound(5)
    assert (result.output, budget.spent_tokens) == ("done", result.usage.total_tokens)
    assert (budget.in_flight, budget.set_aside_tokens) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wait", "swallow", "block"])
def test_an_abandoned_request_blocks_no_other_run(kind: str):
    """The reservation of a request that never returns counts as spent, and other runs do not wait for it."""
    budget = Budget(max_tokens=6_000)
    with hanging() as hang:
        hung = HungModel(hang.asynchronously(kind))
        blocks = [budget_limit(budget, output_cap=4_000), timeout_after(0.05)]
        result = Agent(hung, **grouped(tools=[lookup], compose=blocks, **OPTIONS)).run_sync("Go.")
        assert result.terminated_by == "timeout_after"
        assert (budget.in_flight, budget.set_aside_tokens) == (0, 0)
        assert budget.spent_tokens > 4_000
        other = Agent(
            ScriptedModel([text("done")]), **grouped(compose=[budget_limit(budget, output_cap=4_000)], **OPTIONS)
        )
        took_s, result = timed(lambda: other.run_sync("Go."))
        assert (result.output, took_s < bound(5)) == ("done", True)


@pytest.mark.parametrize(
    ("failure", "billed"),
    [
        (RateLimitError("slow down"), False),
        (MissingApiKeyError("no key"), False),
        (ModelRequestError("an answer that a filter kept back"), True),
        (KeyError("choices"), True),
    ],
)
def test_a_failure_that_may_have_been_billed(failure: Exception, billed: bool):
    """What was set aside for an attempt is given back only when the provider itself says that it has done nothing."""
    budget = Budget(max_tokens=5_000)

    def fail(_: Request) -> Any:
        raise failure

    model = ScriptedModel([fail])
    agent = Agent(model, **grouped(compose=[budget_limit(budget, output_cap=1_000)], retries=0, **OPTIONS))
    with pytest.raises(PlayheadError):
        agent.run_sync("Go.")
    assert (budget.in_flight, budget.set_aside_tokens) == (0, 0)
    assert (budget.spent_tokens > 1_000) is billed


@pytest.mark.parametrize("seed", range(sample(10, 1)))
def test_two_budgets_in_any_order(seed: int):
    """Runs that reserve from two budgets in different orders do not deadlock."""
    chance, provider = random.Random(seed), Provider()
    one, other = Budget(max_tokens=6_000), Budget(max_tokens=5_000)

    def run(*budgets: Budget) -> None:
        model = RandomModel(random.Random(chance.random()), provider, "random/model", ["lookup"])
        blocks = [budget_limit(each, output_cap=2_000) for each in budgets]
        agent = Agent(model, **grouped(tools=[lookup], compose=blocks, **OPTIONS))
        for _ in range(3):
            with suppress(PlayheadError):
                agent.run_sync("task")

    in_threads([(run, *order) for order in [(one, other), (other, one), (one, other), (other, one)]])
    check_budget(one, provider)
    check_budget(other, provider)


PRICE = st.sampled_from([0.0, 1e-9, 7.5e-08, 1.5e-07, 3e-06, 1.5e-05, 0.1])
PRICES = st.builds(Prices, input_usd=PRICE, output_usd=PRICE, cache_read_usd=PRICE, cache_write_usd=PRICE)


@given(st.integers(0, 200_000), st.integers(0, 200_000), PRICES, st.floats(0, 1), st.floats(0, 1))
def test_no_answer_costs_more_than_the_worst_case(prompt: int, cap: int, prices: Prices, read: float, written: float):
    """The worst case holds for any share of the prompt that is read from or written to the cache."""
    cached = int(prompt * read)
    usage = Usage(
        input_tokens=prompt,
        output_tokens=cap,
        cache_read_tokens=cached,
        cache_write_tokens=int((prompt - cached) * written),
        reasoning_tokens=cap,
    )
    assert cost_of(usage, prices) <= worst_cost(prompt, cap, prices)
