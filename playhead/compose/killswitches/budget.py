"""A killswitch for tokens and money: it reserves the worst case of each request before the request is sent."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, get_args

import anyio

from playhead.compose.killswitches.ledger import FREE, Amount, Budget, checked_prices, cost_of, femtodollars, worst_cost
from playhead.compose.killswitches.output_cap import output_cap as stated_cap
from playhead.compose.killswitches.output_cap import past_the_cap, with_output_cap
from playhead.compose.killswitches.prompt_bound import Bound, PromptBound, PromptMeter
from playhead.compose.killswitches.trigger import OnTrigger, Switch, checked_trigger, guard_block
from playhead.errors import UsageError
from playhead.kernel.agent_tool import prices_of
from playhead.kernel.checks import at_least
from playhead.kernel.hooks import Terminate, Wait
from playhead.kernel.lifecycle.threads import soon
from playhead.trace.events import BudgetReserved, LlmFailed, LlmResponded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.compose.harness import Block
    from playhead.kernel.hooks import Stop
    from playhead.kernel.models.base import Model
    from playhead.kernel.session import Session
    from playhead.trace.events import EventBase
    from playhead.trace.types import Prices, Request

OUTPUT_CAP: Final = 4096
"""The maximum tokens of an answer, for requests without a cap of their own."""
MIN_OUTPUT_TOKENS: Final = 16
"""A request is not sent if fewer tokens than this are left for its answer."""
NOT_BILLED: Final = frozenset({"MissingApiKeyError", "MissingDependencyError", "RateLimitError", "UnknownModelError"})
"""Failures that cannot have been billed. A refused request is not one of them: an answer that the adapter could not read,
or that a filter blocked, fails in the same way."""


def budget_limit(  # noqa: PLR0913 - all are keywords
    budget: Budget | None = None,
    *,
    max_tokens: int | None = None,
    max_cost_usd: float | None = None,
    output_cap: int = OUTPUT_CAP,
    min_output_tokens: int = MIN_OUTPUT_TOKENS,
    prompt_bound: PromptBound | None = None,
    prices: Mapping[str, Prices | Mapping[str, float] | Sequence[float]] | None = None,
    on_trigger: OnTrigger = "stop",
) -> Block:
    """End the run before a request that might spend more than is left.

    Before each attempt, the tokens of its prompt and of its longest answer are reserved, and the answer's cap is lowered
    to what is left. Parallel requests and those of sub-agents share one ledger; a request that does not fit waits while
    others may still release a part of their reservation. An attempt without an answer keeps its reservation.

    The adapter counts the prompt if it can; otherwise its length is estimated. Spending exceeds the limit at most by the
    amount by which prompts in flight were underestimated: zero with an exact count or with `prompt_bound="bytes"`.

    Args:
        budget: a `Budget` that several runs share; without it, each run has its own, with these limits:
        max_tokens: the maximum tokens, prompts and answers together.
        max_cost_usd: the maximum cost in US dollars.
        output_cap: the maximum tokens of an answer, for requests without a cap of their own.
        min_output_tokens: a request is not sent if fewer tokens than this are left for its answer.
        prompt_bound: how to count a prompt: `bytes` counts each byte as a token, which is never too low; `estimate`
            counts three bytes as one; by default the adapter counts, or the length is estimated.
        prices: US dollars per token by model, if the adapter does not know them: `Prices`, or a pair for prompt and answer;
            `FREE` for a model of your own.
        on_trigger: `stop` keeps the best output and status `done`; `terminate` makes the run a failed one.

    Raises:
        UsageError: an argument is not valid; or, when a run starts, cost is limited and a model's price is not known.
    """
    if budget is not None and (not isinstance(budget, Budget) or max_tokens is not None or max_cost_usd is not None):
        raise UsageError("budget_limit takes a Budget, or limits: max_tokens=, max_cost_usd=")
    if prompt_bound is not None and prompt_bound not in get_args(PromptBound):
        raise UsageError(
            f"prompt_bound is `bytes` or `estimate`, or None for the adapter's count; it is {prompt_bound!r}"
        )
    at_least("output_cap", output_cap, 1)
    at_least("min_output_tokens", min_output_tokens, 1)
    given, trigger = checked_prices({} if prices is None else prices), checked_trigger(on_trigger)
    limits = budget or Budget(max_tokens=max_tokens, max_cost_usd=max_cost_usd)  # checks them, too

    def make(session: Session) -> BudgetGuard:
        own = budget or Budget(max_tokens=max_tokens, max_cost_usd=max_cost_usd)
        return BudgetGuard(session, trigger, own, output_cap, min_output_tokens, PromptMeter(prompt_bound), given)

    return guard_block(
        "budget_limit",
        make,
        check=None if limits.max_cost_usd is None else partial(_require_price, given),
        max_tokens=limits.max_tokens,
        max_cost_usd=limits.max_cost_usd,
        shared=True if budget else None,
        prompt_bound=prompt_bound,
        output_cap=None if output_cap == OUTPUT_CAP else output_cap,
        min_output_tokens=None if min_output_tokens == MIN_OUTPUT_TOKENS else min_output_tokens,
        prices={name: each.model_dump(exclude_none=True) for name, each in given.items()} or None,
        on_trigger=trigger,
    )


async def _require_price(given: Mapping[str, Prices], model: Model) -> None:
    if model.name not in given and await prices_of(model) is None:
        raise UsageError(
            f"the price of {model.name} is not known, so its cost cannot be limited: give "
            f"prices={{{model.name!r}: [input_usd, output_usd]}} in US dollars per token, or [0, 0] for a model of your own"
        )


@dataclass(frozen=True, slots=True)
class _Request:
    """A request with a reservation."""

    prompt: Bound
    cap: int
    amount: Amount


@dataclass(eq=False)
class BudgetGuard(Switch):
    """The ledger at the model port of a run."""

    name = "budget_limit"
    budget: Budget
    output_cap: int
    """The maximum tokens of an answer, for requests without a cap."""
    min_output_tokens: int
    """A request is not sent if fewer tokens than this are left for its answer."""
    meter: PromptMeter
    prices: Mapping[str, Prices]
    """Prices given by the user, by model."""
    _prompts: dict[tuple[str, int], Bound] = field(default_factory=dict)
    _open: dict[tuple[str, int, int], _Request] = field(default_factory=dict)

    async def measure(self, session: Session, request: Request) -> None:
        """Count the prompt."""
        if self._is_counted_above(session):
            return
        self._prompts[session.owner, request.number] = await self.meter.bound(session.model.adapter, request)

    def admit_request(self, session: Session, request: Request) -> Request | Stop | Terminate | Wait:
        """Reserve the worst case, or wait for other requests, or end the agent."""
        if self._is_counted_above(session):
            return request
        unbound = past_the_cap(request.parameters)
        if unbound is not None:  # invalid parameters must be reported, even in a run that has ended well
            return Terminate(unbound, self.name, self.name)
        prompt, prices = self._prompts[session.owner, request.number], self.prices_of(session)
        if prices is None:
            return self.answer(f"the price of {session.header.model} is not known")
        wanted = stated_cap(request.parameters)
        wanted = self.output_cap if wanted is None else wanted
        budget = self.budget
        with budget.lock:
            cap = min(wanted, affordable(budget, prompt.tokens, prices))
            if cap < wanted and budget.in_flight:
                return self._wait()
            if cap < min(wanted, self.min_output_tokens):
                return self.answer(self._used_up(prompt.tokens))
            opened = _worst(prompt, cap, prices)
            budget.set_aside(opened.amount)
        self._open[session.owner, request.number, request.attempt] = opened
        return with_output_cap(request, cap)

    def _is_counted_above(self, session: Session) -> bool:
        """Return whether the same budget is stacked more than once above here; it is charged once."""
        return (
            next((each for each in session.gate.guards if getattr(each, "budget", None) is self.budget), self)
            is not self
        )

    def withdraw_request(self, session: Session, request: Request) -> None:
        """Release the reservation of a request that was not sent."""
        opened = self._open.pop((session.owner, request.number, request.attempt), None)
        if opened is None:
            self._prompts.pop((session.owner, request.number), None)
        else:
            self.budget.settle(opened.amount, Amount())

    def admitted(self, session: Session, request: Request) -> tuple[EventBase, ...]:
        """Return the entry in the ledger."""
        opened, budget = self._as_sent(session, request), self.budget
        if opened is None:
            return ()
        limits_cost = budget.max_cost_usd is not None
        return (
            BudgetReserved(
                request=request.number,
                attempt=request.attempt,
                tokens=opened.amount.tokens if budget.max_tokens is not None else None,
                cost_usd=opened.amount.femtodollars / 1e15 if limits_cost else None,
                prompt_tokens=opened.prompt.tokens,
                prompt_bound=opened.prompt.how,
                output_cap=opened.cap,
                left_tokens=budget.left_tokens,
                left_cost_usd=budget.left_cost_usd,
            ),
        )

    def _as_sent(self, session: Session, request: Request) -> _Request | None:
        """Return a request's reservation, reduced to what it can spend, because another budget may have lowered its cap."""
        key = (session.owner, request.number, request.attempt)
        opened, cap = self._open.get(key), stated_cap(request.parameters)
        if opened is None or cap is None or cap >= opened.cap:
            return opened
        lowered = self._open[key] = _worst(opened.prompt, cap, self.prices_of(session) or FREE)
        with self.budget.lock:
            self.budget.settle(opened.amount, Amount())
            self.budget.set_aside(lowered.amount)
        return lowered

    def heard(self, session: Session, event: EventBase) -> None:
        """Settle an answer; keep the reservation of an attempt that may have been billed."""
        if not isinstance(event, (LlmResponded, LlmFailed)):
            return
        self._prompts.pop((session.owner, event.request), None)
        opened = self._open.pop((session.owner, event.request, event.attempt), None)
        if opened is None:
            return
        spent = opened.amount
        try:
            if isinstance(event, LlmResponded):
                spent = self._spent(session, event, opened)
                self.meter.learn(opened.prompt, event.usage.input_tokens)
            elif not _may_be_billed(event):
                spent = Amount()
        finally:
            self.budget.settle(opened.amount, spent)

    def recall(self, session: Session, event: EventBase, reserved: BudgetReserved | None) -> None:
        """Count what was spent, or the whole reservation if that is all that is known."""
        if self._is_counted_above(session):
            return
        tokens = 0 if reserved is None else reserved.prompt_tokens or 0
        cap = 0 if reserved is None else reserved.output_cap or 0
        opened = _worst(Bound(tokens, "estimate"), cap, self.prices_of(session) or FREE)
        amount = opened.amount
        if isinstance(event, LlmResponded):
            amount = self._spent(session, event, opened)
        elif not isinstance(event, BudgetReserved) and not (isinstance(event, LlmFailed) and _may_be_billed(event)):
            return
        self.budget.spend(amount)

    def _spent(self, session: Session, event: LlmResponded, opened: _Request) -> Amount:
        """Return what an answer spent; usage that the provider does not report plausibly is not counted as free."""
        usage, prompt, prices = event.usage, opened.prompt.tokens, self.prices_of(session) or FREE
        answer, reported = usage.output_tokens, event.cost_usd
        if usage.input_tokens > 0:
            spent = Amount(usage.input_tokens + answer, cost_of(usage, prices))
        elif answer:
            spent = Amount(prompt + answer, worst_cost(prompt, answer, prices))
        else:
            spent = opened.amount
        if reported is None or session.header.model in self.prices:
            return spent
        return replace(spent, femtodollars=max(spent.femtodollars, femtodollars(reported)))

    def prices_of(self, session: Session) -> Prices | None:
        """Return the token prices of an agent's model; None if they are not known but needed."""
        if self.budget.max_cost_usd is None:
            return FREE
        return self.prices.get(session.header.model) or session.header.prices

    def _wait(self) -> Wait:
        event, in_loop = anyio.Event(), soon()

        def wake() -> None:
            with suppress(RuntimeError):  # the event loop has ended, and with it the waiting request
                in_loop(event.set)

        return Wait(event, self.budget.wait(wake))

    def _used_up(self, prompt: int) -> str:
        budget, found = self.budget, []
        if budget.max_tokens is not None:
            found.append(f"{budget.spent_tokens:,} of {budget.max_tokens:,} tokens")
        if budget.max_cost_usd is not None:
            found.append(f"${budget.spent_cost_usd:.6g} of ${budget.max_cost_usd:.6g}")
        return f"{' and '.join(found)} are spent; the next prompt has up to {prompt:,} tokens"


def _worst(prompt: Bound, cap: int, prices: Prices) -> _Request:
    return _Request(prompt, cap, Amount(prompt.tokens + cap, worst_cost(prompt.tokens, cap, prices)))


def _may_be_billed(event: LlmFailed) -> bool:
    return bool(event.cancelled) or event.error.type not in NOT_BILLED


def affordable(budget: Budget, prompt: int, prices: Prices) -> int:
    """Return how many tokens are left for an answer after this prompt; below 0 if the prompt alone does not fit."""
    caps = []
    if budget.left_tokens is not None:
        caps.append(budget.left_tokens - prompt)
    left = budget.left_femtodollars
    if left is not None:
        left -= worst_cost(prompt, 0, prices)
        price = femtodollars(prices.output_usd)
        caps.append(left // price if price else (1 << 53 if left >= 0 else -1))
    return min(caps)
