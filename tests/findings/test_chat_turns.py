"""A chat turn is a run of the whole agent, in every language."""

from __future__ import annotations

import pytest

from playhead import tool
from playhead.testing import call, text
from tests.findings.adapter import agent

MESSAGES = [
    "Bitte erstatte Bestellung 7",
    "Rembourse la commande 7",
    "Devuelve el pedido 7",
    "退款订单7",
    "Hi",
    "?",
    "7",
]


@pytest.mark.parametrize("message", MESSAGES)
async def test_a_validator_that_refuses_everything_refuses_in_every_turn(message: str):
    """No wording of a message lets an unvalidated answer through."""
    made = agent([text("Erstattet.")] * 9, validators=[lambda _: False])
    reply = await made.session().chat(message)
    assert (reply.success, reply.terminated_by) == (False, "output_rejected")


@pytest.mark.parametrize("message", MESSAGES)
async def test_tools_are_there_in_every_turn(message: str):
    """No wording of a message takes the agent's tools away, in a first turn or a later one."""
    refunded: list[str] = []

    @tool
    def refund(order: str) -> str:
        """Pay an order back."""
        refunded.append(order)
        return "ok"

    with agent([text("Hello."), call("refund", order="7"), text("Done.")], [refund]).session() as chat:
        await chat.chat("Hi")
        reply = await chat.chat(message)
    assert (refunded, reply.tools_used) == (["7"], ("refund",))
