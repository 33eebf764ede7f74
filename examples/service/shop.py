"""What the agent of the service can do, and a model that acts it out without a key or a network."""

from __future__ import annotations

import re
from typing import Final

from playhead import tool
from playhead.testing import ScriptedModel, call, text, with_match

ORDERS: Final = {"7": "a lamp for 20 euros, came broken", "8": "a desk for 340 euros, came late"}


@tool(read_only=True)
def look_up_order(order: str) -> str:
    """Say what an order is about, by its number."""
    return f"Order {order} is {ORDERS[order]}."


@tool(risk="high")
def refund(order: str, euros: float) -> str:
    """Pay money back for an order."""
    return f"Paid back {euros:g} euros for order {order}."


def demo_model() -> ScriptedModel:
    """Return a model that pays order 7 back, if it may; of what it has read the longest match counts."""
    look, pay = call("look_up_order", order="7"), call("refund", order="7", euros=20)
    script = {
        re.compile(r"(?s)."): text("I can only refund order 7: I am a script."),
        re.compile(r"(?i)refund order 7"): look,
        re.compile(r"Order 7 is a lamp"): pay,
        re.compile(r"Paid back .* for order 7"): text("Order 7 came broken, so I have paid 20 euros back."),
        re.compile(r"refund was not approved"): text("I may not pay order 7 back."),
    }
    return ScriptedModel([with_match(turn, pattern) for pattern, turn in script.items()], keep_requests=False)
