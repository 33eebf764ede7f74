from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.compose import Harness, killswitches
from playhead.compose.killswitches.expressions import LONGEST, NOT_BACKTESTED, SWITCHES, parse_switch
from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.compose import Block

SAME = [
    "budget_limit(max_tokens=20000)", "budget_limit(None, max_tokens=20_000)", "budget_limit(max_cost_usd=0.5, max_tokens=9)",
    "budget_limit(max_tokens=9, prompt_bound='bytes')", "budget_limit(max_tokens=9, output_cap=5, min_output_tokens=2)",
    "budget_limit(max_cost_usd=1, prices={'a/b': [1e-6, 2e-6]})",
    "budget_limit(max_cost_usd=1, prices={'a/b': {'input_usd': 1e-6, 'output_usd': 2e-6}})", "timeout_after('5m')", "timeout_after(duration='5m', on_trigger='terminate')", "timeout_after(300)",
    "watchdog('60s')", "watchdog(no_progress_for=1.5)", "tool_limit('search', 5)",
    "tool_limit({'search': 5, '*': 2}, total=9)", "tool_limit(total=9, on_trigger='refuse')", "circuit_breaker(3)",
    "circuit_breaker(3, tools=['a', 'b'], provider=False)", "max_iterations(4)", "  max_iterations(limit=4)\n",
    "require_approval_for(('pay', 'send'), None, timeout='1m', on_trigger='stop')",
]  # fmt: skip


def registered(block: Block) -> Any:
    """Return what a block registers, as the header of a trace says it."""
    harness = Harness()
    harness.use(block)
    return harness.info()


@pytest.mark.parametrize("text", SAME)
def test_an_expression_is_the_switch(text: str):
    """As text, the call of a switch means what it means in Python."""
    parsed = parse_switch(text, live=True)
    assert (parsed.text, parsed.name) == (text.strip(), text.strip().partition("(")[0])
    in_code = eval(text.strip(), {name: getattr(killswitches, name) for name in vars(killswitches)["__all__"]})  # noqa: S307 - the texts are those above
    assert registered(parsed.block) == registered(in_code)


WRONG = {
    "budgetlimit(max_tokens=1)": "there is no killswitch 'budgetlimit'. Did you mean 'budget_limit'?",
    "budget_limit(max_token=1)": "unexpected keyword argument 'max_token'",
    "budget_limit(max_tokens=1, prices={'a/b': [1]})": "is not a price of 'a/b'",
    "budget_limit(max_tokens=1, prices={'a/b': FREE})": "[0, 0] for the prices of a model that costs nothing",
    "budget_limit(max_tokens=1, max_tokens=2)": "an argument is given twice. Its signature: budget_limit(budget, max_tokens=",
    f"budget_limit(max_cost_usd={'9' * 500})": "budget_limit cannot be called with these arguments",
    "tool_limit({**{}})": "takes literals in an expression",
    "max_iterations()": ". Its signature: max_iterations(limit, on_trigger=)",
    "max_iterations(2 ** 999)": "takes literals in an expression",
    "max_iterations(**{'limit': 1})": "unexpected keyword argument '**'",
    "max_iterations": "is not a call of a killswitch",
    "max_iterations(1": "is not an expression: '(' was never closed",
    "max_iterations(1); max_iterations(2)": "is not an expression",
    "__import__('os').system('id')": "call a killswitch by its bare name",
    "\0": "is not an expression",
    "[" * 900: "is not an expression",
    f"max_iterations({'-' * 1900}1)": "",
    "x" * (LONGEST + 1): "a killswitch expression has at most 2,000 characters",
}


@pytest.mark.parametrize("text", WRONG)
def test_an_invalid_expression_is_refused(text: str):
    """The error names the mistake and the nearest valid form, in a line of bounded length."""
    with pytest.raises(UsageError) as caught:
        parse_switch(text)
    assert WRONG[text] in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("name", NOT_BACKTESTED)
def test_switches_that_no_recording_can_answer(name: str):
    """The error says why the switch cannot be backtested."""
    with pytest.raises(UsageError, match=f"{name} cannot be backtested: it "):
        parse_switch(f"{name}('a')")


PIECES = [*SWITCHES, *"()[]{},:=*-1", "**", "1e9", "'a'", '"', "None", " ", "\n"]


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=60).map("".join)))
def test_any_text(text: str):
    """Any text is a switch or a usage error."""
    with suppress(UsageError):
        parse_switch(text)
