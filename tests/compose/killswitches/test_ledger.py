from __future__ import annotations

import threading
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from playhead.compose.killswitches import Budget
from playhead.compose.killswitches.budget import affordable
from playhead.compose.killswitches.ledger import FEMTO, Amount
from playhead.compose.killswitches.prices import cost_of, worst_cost
from playhead.trace.types import Prices, Usage
from tests.proving import sample

PRICE = st.sampled_from([0.0, 1e-9, 7.5e-08, 1.5e-07, 3e-06, 1.5e-05, 0.1])
PRICES = st.builds(Prices, input_usd=PRICE, output_usd=PRICE, cache_read_usd=PRICE, cache_write_usd=PRICE)
COUNT = st.integers(0, 200_000)


class Ledger(RuleBasedStateMachine):
    """Requests that set aside what they can afford, and are answered, lost or withdrawn, in any order."""

    requests = Bundle("requests")

    @initialize(tokens=st.integers(0, 5_000) | st.none(), usd=st.floats(0, 0.1), prices=PRICES)
    def begin(self, tokens: int | None, usd: float, prices: Prices) -> None:
        """Make a budget."""
        self.budget = Budget(max_tokens=tokens, max_cost_usd=usd)
        self.prices = prices
        self.spent = Amount()
        self.open: list[Amount] = []
        self.woken = 0

    @rule(target=requests, prompt=st.integers(0, 900), wanted=st.integers(1, 900))
    def ask(self, prompt: int, wanted: int) -> tuple[int, int, Amount] | None:
        """Set aside what there is for a request."""
        cap = min(wanted, affordable(self.budget, prompt, self.prices))
        if cap < 1:
            return None
        amount = Amount(prompt + cap, worst_cost(prompt, cap, self.prices))
        self.budget.set_aside(amount)
        self.open.append(amount)
        return prompt, cap, amount

    @rule(request=consumes(requests), share=st.floats(0, 1), cached=st.floats(0, 1))
    def answer(self, request: tuple[int, int, Amount] | None, share: float, cached: float) -> None:
        """Spend no more than was set aside, some of it from a cache."""
        if request is None:
            return
        prompt, cap, amount = request
        read = int(prompt * cached)
        usage = Usage(
            input_tokens=prompt,
            output_tokens=int(cap * share),
            cache_read_tokens=read,
            cache_write_tokens=prompt - read if share > 0.5 else 0,
        )
        self._settle(amount, Amount(usage.total_tokens, cost_of(usage, self.prices)))

    @rule(request=consumes(requests))
    def lose(self, request: tuple[int, int, Amount] | None) -> None:
        """Hear nothing any more: all of it counts as spent."""
        if request is not None:
            self._settle(request[2], request[2])

    @rule(request=consumes(requests))
    def withdraw(self, request: tuple[int, int, Amount] | None) -> None:
        """Give it back."""
        if request is not None:
            self._settle(request[2], Amount())

    @rule()
    def wait(self) -> None:
        """Wait for the next that is settled."""
        if self.budget.in_flight:
            before = self.woken

            def wake() -> None:
                self.woken = before + 1

            self.budget.wait(wake)

    def _settle(self, amount: Amount, spent: Amount) -> None:
        assert spent.tokens <= amount.tokens
        assert spent.femtodollars <= amount.femtodollars
        self.budget.settle(amount, spent)
        self.open.remove(amount)
        self.spent += spent

    @invariant()
    def adds_up(self) -> None:
        """Nothing is below zero, nothing above the limit, and what is spent is what was spent."""
        if not hasattr(self, "budget"):
            return
        budget = self.budget
        assert (budget.in_flight, budget.set_aside_tokens) == (len(self.open), sum(each.tokens for each in self.open))
        assert budget.spent_tokens == self.spent.tokens
        if budget.max_tokens is not None:
            assert 0 <= (budget.left_tokens or 0) <= budget.max_tokens
            assert budget.spent_tokens <= budget.max_tokens
        assert budget.left_femtodollars is not None
        assert budget.left_femtodollars >= 0
        assert Decimal(self.spent.femtodollars) <= Decimal(str(budget.max_cost_usd)) * FEMTO


TestLedger = Ledger.TestCase
TestLedger.settings = settings(max_examples=sample(300, 40), stateful_step_count=30)


def test_threads_do_not_overdraw():
    """Threads that look and reserve under the lock never spend more than the limit, and use all of it."""
    budget, over = Budget(max_tokens=10_000), list[int]()

    def spend() -> None:
        for _ in range(300):
            with budget.lock:
                left = budget.left_tokens or 0
                if left < 10:
                    continue
                budget.set_aside(Amount(10))
            if (budget.left_tokens or 0) < 0:
                over.append(1)
            budget.settle(Amount(10), Amount(7))

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert over == []
    assert (budget.in_flight, budget.set_aside_tokens) == (0, 0)
    assert 9_990 < budget.spent_tokens <= 10_000


@given(COUNT, COUNT, PRICES, st.floats(0, 1), st.floats(0, 1))
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
