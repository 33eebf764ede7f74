"""What a provider reports, and what a user asks for past the cap: none of it makes a budget longer."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead import Agent
from playhead.compose.killswitches import Budget, budget_limit
from playhead.compose.killswitches.output_cap import NAMES
from playhead.compose.killswitches.prompt_bound import Bound, PromptMeter
from playhead.errors import UsageError
from playhead.testing import ScriptedModel, text
from playhead.trace.types import Completion, Message, Prices, Request, ToolCall, ToolSpec, Usage
from tests.compose.killswitches.provider import Provider, RandomModel
from tests.compose.killswitches.test_shared_budgets import OPTIONS
from tests.options import grouped
from tests.proving import sample

NAN, INF = float("nan"), float("inf")
PRICES = Prices(input_usd=1e-06, output_usd=1e-05)
PROMPT = 50
CAP = 1_000


class Reporting(ScriptedModel):
    """Counts each prompt as 50 tokens, and reports what it was told to."""

    def __init__(self, usage: Usage | None = None, cost_usd: float | None = None, prices: Prices = PRICES) -> None:
        super().__init__([text("done")] * 9)
        self.completion = Completion(text="done", usage=usage or Usage(), cost_usd=cost_usd)
        self.known = prices
        self.counted = 0

    async def prices(self) -> Prices | None:
        """Return what it was told to."""
        return self.known

    async def count_tokens(self, request: Request) -> int:
        """Return always the same."""
        self.counted += 1
        return PROMPT

    async def complete(self, request: Request) -> Completion:
        """Report."""
        await super().complete(request)
        return self.completion


def spent(model: Any, **parameters: Any) -> tuple[int, float]:
    """Return what one answer took from a budget."""
    budget = Budget(max_tokens=100_000, max_cost_usd=1_000)
    block = budget_limit(budget, output_cap=CAP)
    assert Agent(model, **grouped(compose=[block], parameters=parameters, **OPTIONS)).run_sync("Go.").output == "done"
    assert (budget.in_flight, budget.set_aside_tokens) == (0, 0)
    return budget.spent_tokens, pytest.approx(budget.spent_cost_usd)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("usage", "cost_usd", "tokens", "usd"),
    [
        *(({"input_tokens": 40, "output_tokens": 10}, cost, 50, 0.00014) for cost in (NAN, INF, -5.0)),
        ({}, None, 1_050, 0.01005),
        ({"input_tokens": 0, "output_tokens": 10}, None, 60, 0.00015),
        ({"input_tokens": 40, "output_tokens": 0}, None, 40, 0.00004),
        ({"input_tokens": -5, "output_tokens": -5}, None, 1_050, 0.01005),
        ({"input_tokens": 40, "output_tokens": 10, "cache_read_tokens": 9_000}, None, 50, 0.00014),
    ],
)
def test_impossible_figures(usage: dict[str, Any], cost_usd: float | None, tokens: int, usd: float):
    """Impossible usage is never credited: it counts as it was reserved. For an impossible cost the prices say what was spent."""
    assert spent(Reporting(Usage(**usage), cost_usd)) == (tokens, usd)


BYPASSES: list[tuple[dict[str, Any], str]] = [
    ({"extra_body": {"max_tokens": 99_999, "n": 4}}, "extra_body.max_tokens"),
    ({"extra_body": {"options": {"num_predict": -1}}}, "extra_body.options.num_predict"),
    ({"extra_body": {"generationConfig": {"maxOutputTokens": 5}}}, "extra_body.generationConfig.maxOutputTokens"),
    ({"options": {"num_predict": 50}}, "options.num_predict"),
    ({"additional_drop_params": ["max_tokens"]}, "additional_drop_params.max_tokens"),
    ({"drop_params": True}, "drop_params"),
]


@pytest.mark.parametrize(("parameters", "named"), BYPASSES)
def test_a_cap_that_cannot_be_lowered(parameters: dict[str, Any], named: str):
    """A request whose answer the budget could not bound is not sent, and the run says which parameter that is."""
    model, budget = Reporting(Usage(input_tokens=1, output_tokens=1)), Budget(max_tokens=9_000)
    agent = Agent(model, **grouped(compose=[budget_limit(budget)], parameters=parameters, **OPTIONS))
    result = agent.run_sync("Go.")
    assert (result.status, result.terminated_by) == ("failed", "budget_limit")
    assert (result.error or "").startswith(f"{named} ")
    assert (model.requests, budget.spent_tokens, budget.in_flight) == ([], 0, 0)


@pytest.mark.parametrize(
    "parameters",
    [
        {"extra_body": {"top_k": 5, "guided_json": {"properties": {"n": {}, "max_tokens": {}}}}},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {"properties": {"n": {}}}}}},
        {"additional_drop_params": ["temperature"], "drop_params": False},
        {"draft_num_predict": 5},
    ],
)
def test_parameters_that_are_not_caps(parameters: dict[str, Any]):
    """Names of a schema's properties and parameters without effect on the length are left alone."""
    assert spent(Reporting(Usage(input_tokens=40, output_tokens=10)), **parameters) == (50, 0.00014)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stated", [0, 1])
def test_a_cap_of_nothing(name: str, stated: int):
    """Some servers take 0 for no limit: it is sent as 1, by itself or beside a higher cap."""
    for parameters in ({name: stated}, {"max_tokens": 500, name: stated}):
        model = Reporting(Usage(input_tokens=40, output_tokens=1))
        spent(model, **parameters)
        assert {model.requests[0].parameters[each] for each in parameters} == {1}


BAD_PRICES = [
    {"input_usd": -1e-06, "output_usd": 1e-06},
    {"input_usd": 1e-06, "output_usd": NAN},
    {"input_usd": 1e-06, "output_usd": 1e-06, "cache_read_usd": -1.0},
]


@pytest.mark.parametrize("prices", BAD_PRICES)
def test_prices_that_cannot_be(prices: dict[str, float]):
    """Given ones are an error at once; those of an adapter count as not known, which is one when the run starts."""
    with pytest.raises(UsageError, match="is not a price of 'scripted/model'"):
        budget_limit(max_cost_usd=1, prices={"scripted/model": prices})

    class Wrong(Reporting):
        async def prices(self) -> Prices:
            return Prices(**prices)

    model = Wrong()
    with pytest.raises(UsageError, match="the price of scripted/model is not known"):
        Agent(model, **grouped(compose=[budget_limit(max_cost_usd=1)], **OPTIONS)).run_sync("Go.")
    assert model.requests == []


# --- how long a prompt is taken to be ----------------------------------------------------------------------------------

TEXT = st.text(max_size=40)
JSON = st.dictionaries(TEXT, TEXT | st.integers() | st.lists(TEXT, max_size=3), max_size=3)
MESSAGES = st.lists(
    st.builds(
        Message,
        id=st.integers(0, 9),
        role=st.sampled_from(["system", "user", "assistant", "tool"]),
        content=TEXT,
        name=TEXT | st.none(),
        tool_call_id=TEXT | st.none(),
        tool_calls=st.lists(st.builds(ToolCall, id=TEXT, name=TEXT, arguments=JSON), max_size=2).map(tuple),
    ),
    max_size=5,
).map(tuple)
TOOLS = st.lists(st.builds(ToolSpec, name=TEXT, description=TEXT, parameters=JSON), max_size=3).map(tuple)


def said(request: Request) -> int:
    """Return the bytes of all words that a model is sent."""
    size = 0
    for message in request.messages:
        size += sum(len(str(each or "").encode()) for each in (message.content, message.name, message.tool_call_id))
        size += sum(len(f"{each.id}{each.name}{each.arguments}".encode()) for each in message.tool_calls)
    return size + sum(len(f"{each.name}{each.description}{each.parameters}".encode()) for each in request.tools)


@pytest.mark.slow
@settings(max_examples=sample(200, 25))
@given(MESSAGES, TOOLS)
def test_bytes_are_never_too_few(messages: Any, tools: Any):
    """Every word that is sent is counted with all its bytes."""
    request = Request("a/b", messages, tools)
    assert PromptMeter("bytes").bytes_of(request) >= said(request)


async def test_an_estimate_learns():
    """What was counted too low is not counted too low again; an exact count is left alone."""
    model = RandomModel(random.Random(0), Provider(), "a/b", [], None)
    request = Request("a/b", (Message(id=0, role="user", content="x" * 3_000),))
    meter = PromptMeter(None)
    first = await meter.bound(model, request)
    assert first.how == "estimate"
    meter.learn(first, first.tokens // 2)
    assert await meter.bound(model, request) == first
    for _ in range(8):  # as many in flight, each counted too low alike
        meter.learn(first, first.tokens * 3)
    assert first.tokens * 3 <= (await meter.bound(model, request)).tokens <= first.tokens * 3 + 3
    meter.learn(Bound(10, "counted"), 1_000)
    assert (await meter.bound(model, request)).tokens <= first.tokens * 3 + 3
