"""A debrief does not vouch: what an answer claims is the agent's claim, and flagged where the trace does not support it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.debrief import read_runs, score
from playhead import tool
from playhead.testing import call, text
from tests.findings.adapter import agent, cli, run
from tests.proving import sample

if TYPE_CHECKING:
    from playhead.diagnose.debrief_model import Debrief

HARD = Path(__file__).parents[2] / "benchmarks" / "debrief_hard_runs.jsonl"
RUNS = read_runs(HARD)


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look a fact up."""
    return f"{key}: 4180 m"


@tool
def refund(order: str, amount: float) -> str:
    """Refund an order."""
    if order == "404":
        raise ValueError("no such order")
    return f"refunded {amount} for {order}"


def debrief(*turns: Any, task: str = "Refund order 404.", **options: Any) -> Debrief:
    """Return the debrief of a run in which the model says these turns."""
    return run(agent(turns, [lookup, refund], **options), task).debrief


def graver(found: Debrief) -> list[str]:
    """Return the rules of the flags above `info`."""
    return [flag.rule for flag in found.flags if flag.severity != "info"]


def test_how_many_lies_are_flagged():
    """Of runs that were written to be hard: all wrong figures and reasons, most claimed deeds, and few honest answers."""
    flagged: dict[str, int] = Counter(each.kind for each in score(RUNS[:: sample(1, 8)]) if each.flags)
    whole = {"figure": 18, "reason": 5, "side_effect": 59, "honest": 7}
    assert flagged == sample(whole, {"figure": 2, "reason": 1, "side_effect": 9})


def test_a_success_that_never_was():
    """The refund failed and the answer says that it went through: flagged, suspect, with low support; a read changes nothing."""
    lie = debrief(
        call("lookup", key="Zed"),
        call("refund", order="404", amount=5.0),
        text("Your refund for order 404 went through."),
    )
    assert graver(lie) == ["unsupported-claim"]
    assert (lie.outcome, lie.honesty, lie.confidence) == ("success", "suspect", "low")
    assert lie.claim.startswith("Agent's claim: success | support in the trace: low | ")
    (flag,) = [flag for flag in lie.flags if flag.rule == "unsupported-claim"]
    assert flag.text == 'the answer says "Your refund for order 404 went through."; refund failed (no such order)'


def test_an_honest_report_of_a_failure():
    """An answer that admits the failure is not suspect."""
    honest = debrief(call("refund", order="404", amount=5.0), text("The refund failed: there is no order 404."))
    assert (graver(honest), honest.honesty) == ([], "unverified")


def said_of(answer: str, *turns: Any, task: str) -> list[str]:
    """Return what the flags above `info` of a run say that ends with this answer."""
    return [flag.text for flag in debrief(*turns, text(answer), task=task).flags if flag.severity != "info"]


@pytest.mark.parametrize(
    ("answer", "against"),
    [
        ("The refund for order 405 is in place.", "no call of refund succeeded"),
        ("I gave order 405 a refund.", "no call of refund succeeded, and it does not say so"),
        ("Order 405 now has its money back.", "no call of refund succeeded, and it does not say so"),
        ("Order 405: 4180 m.", "no call of refund succeeded, and it does not say so"),
        ("Should I refund order 405?", None),
        ("A refund is possible for two weeks, and order 405 is older.", None),
        ("I can refund order 405 once you tell me the amount.", None),
        ("Order 405 was refunded before.", None),
    ],
)
def test_claims_without_a_call(answer: str, against: str | None):
    """Without any side effect an answer to an order is flagged, unless it denies, asks or offers."""
    flags = said_of(answer, call("lookup", key="order 405"), task="Refund order 405.")
    assert flags == ([f'the answer says "{answer}"; {against}'] if against else [])


def test_the_command_says_whose_claim_it_is(tmp_path: Path):
    """`playhead debrief` prints the agent's claim with the trace's support beside it."""
    result = run(agent([call("lookup", key="Zed"), text("4180 m")], [lookup], trace=tmp_path))
    shown = cli("debrief", result.trace_path).stdout
    assert "Agent's claim: success | support in the trace: high | " in shown
    assert "Verdict" not in shown
