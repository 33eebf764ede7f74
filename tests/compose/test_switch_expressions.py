from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.compose import Harness
from playhead.compose.killswitches import (
    budget_limit,
    circuit_breaker,
    max_iterations,
    require_approval_for,
    timeout_after,
    tool_limit,
    watchdog,
)
from playhead.compose.killswitches.expressions import LONGEST, NOT_AS_TEXT, SWITCHES, parse_switch
from playhead.errors import UsageError
from playhead.trace.types import Prices

if TYPE_CHECKING:
    from playhead.compose import Block

SAME: dict[str, Block] = {
    "budget_limit(max_tokens=20000)": budget_limit(max_tokens=20000),
    "budget_limit(None, max_tokens=20_000)": budget_limit(max_tokens=20000),
    "budget_limit(max_cost_usd=0.5, max_tokens=9)": budget_limit(max_cost_usd=0.5, max_tokens=9),
    "budget_limit(max_tokens=9, prompt_bound='bytes')": budget_limit(max_tokens=9, prompt_bound="bytes"),
    "budget_limit(max_tokens=9, output_cap=5, min_output_tokens=2)": budget_limit(
        max_tokens=9, output_cap=5, min_output_tokens=2
    ),
    "budget_limit(max_cost_usd=1, prices={'a/b': [0, 1e-6]})": budget_limit(
        max_cost_usd=1, prices={"a/b": Prices(input_usd=0, output_usd=1e-6)}
    ),
    "timeout_after('5m')": timeout_after("5m"),
    "timeout_after(duration='5m', on_trigger='terminate')": timeout_after("5m", on_trigger="terminate"),
    "timeout_after(300)": timeout_after(300),
    "watchdog('60s')": watchdog("60s"),
    "watchdog(no_progress_for=1.5)": watchdog(no_progress_for=1.5),
    "tool_limit('search', 5)": tool_limit("search", 5),
    "tool_limit({'search': 5, '*': 2}, total=9)": tool_limit({"search": 5, "*": 2}, total=9),
    "tool_limit(total=9, on_trigger='refuse')": tool_limit(total=9, on_trigger="refuse"),
    "circuit_breaker(3)": circuit_breaker(3),
    "circuit_breaker(3, tools=['a', 'b'], provider=False)": circuit_breaker(3, tools=["a", "b"], provider=False),
    "max_iterations(4)": max_iterations(4),
    "  max_iterations(limit=4)\n": max_iterations(4),
    "require_approval_for('pay')": require_approval_for("pay"),
    "require_approval_for(('pay', 'send'), None, timeout='1m', on_trigger='stop')": require_approval_for(
        ["pay", "send"], timeout="1m", on_trigger="stop"
    ),
}


def registered(block: Block) -> Any:
    """Return what a block registers, as the header of a trace says it."""
    harness = Harness()
    harness.use(block)
    return harness.info()


@pytest.mark.parametrize("text", SAME)
def test_an_expression_is_the_switch(text: str):
    """Every shape in which the functions are called in code means the same as text."""
    parsed = parse_switch(text)
    assert (parsed.text, parsed.name) == (text.strip(), text.strip().partition("(")[0])
    assert registered(parsed.block) == registered(SAME[text])


@pytest.mark.parametrize("form", ["[1e-6, 2e-6]", "(1e-6, 2e-6)", "{'input_usd': 1e-6, 'output_usd': 2e-6}"])
def test_prices(form: str):
    """Prices are a pair, or the fields by name."""
    assert parse_switch(f"budget_limit(max_cost_usd=1, prices={{'a/b': {form}}})").name == "budget_limit"


WRONG = {
    "budgetlimit(max_tokens=1)": "there is no switch 'budgetlimit'. Did you mean 'budget_limit'?",
    "budget_limit(max_token=1)": "budget_limit has no argument 'max_token'. Did you mean 'max_tokens'?",
    "budget_limit(max_tokens=-1)": "max_tokens must be a whole number of at least 0; it is -1",
    "budget_limit()": "a budget limits something",
    "budget_limit({'max_tokens': 1})": "budget_limit takes a Budget, or limits",
    "budget_limit(max_tokens=1, prompt_bound='words')": "prompt_bound is `bytes` or `estimate`",
    "budget_limit(max_tokens=1, prices=[1])": "prices is a dict by model",
    "budget_limit(max_tokens=1, prices={'a/b': [1]})": "are no prices of 'a/b'",
    "budget_limit(max_tokens=1, prices={'a/b': [-1, 0]})": "are no prices of 'a/b'",
    "budget_limit(max_tokens=1, prices={'a/b': [1e999, 0]})": "are no prices of 'a/b'",
    "budget_limit(max_tokens=1, prices={'a/b': {'input': 1}})": "are no prices of 'a/b'",
    "budget_limit(max_tokens=1, prices={'a/b': FREE})": "[0, 0] for the prices of a model that costs nothing",
    "budget_limit(max_tokens=1, max_tokens=2)": "'max_tokens' is given twice",
    "budget_limit(max_cost_usd=1e999)": "max_cost_usd is a number of US dollars",
    f"budget_limit(max_cost_usd={'9' * 500})": "budget_limit cannot be called with these arguments",
    "tool_limit({1: 2})": "tool_limit takes names of tools; 1 is none",
    "tool_limit({**{}})": "takes literals in an expression",
    "tool_limit('a')": "tool_limit takes a tool's name and a number",
    "timeout_after('5 minutes')": "text such as '500ms', '30s', '5m'",
    "timeout_after()": "timeout_after cannot be called with these arguments",
    "max_iterations()": "; it is max_iterations(limit, on_trigger=)",
    "max_iterations(1, 2)": "max_iterations cannot be called with these arguments",
    "max_iterations(True)": "max_iterations must be a whole number",
    "max_iterations(-True)": "takes literals in an expression",
    "max_iterations(1 + 1)": "takes literals in an expression",
    "max_iterations(2 ** 999)": "takes literals in an expression",
    "max_iterations(int('1'))": "takes literals in an expression",
    "max_iterations(n)": "takes literals in an expression",
    "max_iterations(*[1])": "takes literals in an expression",
    "max_iterations(**{'limit': 1})": "max_iterations has no argument '**'",
    "max_iterations(1, on_trigger='halt')": "on_trigger is `stop` or `terminate`",
    "max_iterations(1j)": "max_iterations must be a whole number",
    "max_iterations(b'1')": "max_iterations must be a whole number",
    "max_iterations(...)": "max_iterations must be a whole number",
    "max_iterations(f'{1}')": "takes literals in an expression",
    "max_iterations({1})": "max_iterations must be a whole number",
    "max_iterations(lambda: 1)": "takes literals in an expression",
    "max_iterations(x := 1)": "takes literals in an expression",
    "max_iterations": "is not the call of a switch",
    "max_iterations(1": "is no expression: '(' was never closed",
    "max_iterations(1); max_iterations(2)": "is no expression",
    "max_iterations(1), max_iterations(2)": "is not the call of a switch",
    "max_iterations(1)(2)": "a switch is called by its bare name",
    "switches.max_iterations(1)": "a switch is called by its bare name",
    "__import__('os').system('id')": "a switch is called by its bare name",
    "require_approval_for('pay', 'ann')": "an approver is a function",
    "": "is no expression",
    "5m": "is no expression",
    "import os": "is no expression",
    "\0": "is no expression",
    "\ud800": "is no expression",
    "[" * 900: "is no expression",
    "-" * 1900 + "1": "",
    f"max_iterations({'-' * 1900}1)": "",
    f"max_iterations({'[' * 50}{']' * 50})": "max_iterations must be a whole number",
    f"max_iterations({'+1' * 900})": "takes literals in an expression",
    "a." * 900 + "b()": "a switch is called by its bare name",
    "x" * (LONGEST + 1): "a switch is at most 2,000 characters long",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_switch(text: str):
    """It is told what is wrong, and the nearest thing that is right, in a line that is not endless."""
    with pytest.raises(UsageError) as caught:
        parse_switch(text)
    assert WRONG[text] in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("name", NOT_AS_TEXT)
def test_switches_that_no_recording_can_answer(name: str):
    """It is said why."""
    with pytest.raises(UsageError, match=f"{name} cannot be backtested: it "):
        parse_switch(f"{name}('a')")


def test_switches_that_only_a_run_can_have():
    """A kill file cannot be looked for in a recording; who may write one is told of it."""
    assert parse_switch("kill_file('STOP')", live=True).name == "kill_file"
    with pytest.raises(UsageError, match="Known: budget_limit, circuit_breaker, kill_file, max_iterations"):
        parse_switch("foo(1)", live=True)
    with pytest.raises(UsageError, match="Known: budget_limit, circuit_breaker, max_iterations"):
        parse_switch("foo(1)")


def test_nothing_is_evaluated(monkeypatch: pytest.MonkeyPatch):
    """What stands in an expression is never called, whatever it is."""
    called: list[object] = []
    monkeypatch.setattr(os, "system", called.append)
    for text in (
        "max_iterations(__import__('os').system('id'))",
        "(lambda: __import__('os').system('id'))()",
        "max_iterations([__import__('os').system('id') for _ in 'a'])",
        "max_iterations(f\"{__import__('os').system('id')}\")",
    ):
        with pytest.raises(UsageError):
            parse_switch(text)
    assert called == []


PIECES = [
    *SWITCHES,
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "=",
    "**",
    "*",
    "-",
    "1",
    "1e9",
    "'a'",
    '"',
    "None",
    " ",
    "\n",
]


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=60).map("".join)))
def test_any_text(text: str):
    """Whatever is given, it is a switch or a usage error."""
    with suppress(UsageError):
        parse_switch(text)
