"""A tool that runs only when somebody said yes to exactly these arguments."""

from __future__ import annotations

from playhead import Agent, Approval, ApprovalRequest, tool
from playhead.testing import ScriptedModel, call, text

PAID: list[float] = []
LIMIT = 50


@tool(requires_approval=True, risk="high")
def refund(order: str, amount: float) -> str:
    """Pay money back."""
    PAID.append(amount)
    return f"{amount:g} paid back for order {order}"


def small_sums_only(request: ApprovalRequest) -> Approval:
    """Allow up to 50; a person could be asked here instead."""
    if request.arguments["amount"] <= LIMIT:
        return Approval(approved=True, by="policy")
    return Approval(approved=False, why=f"more than {LIMIT} needs a person", by="policy")


def main() -> None:
    """Print what was asked, what was allowed and what was paid."""
    script = [call("refund", order="7", amount=900), call("refund", order="7", amount=20), text("I paid 20 back.")]
    agent = Agent(ScriptedModel(script), tools=[refund], approver=small_sums_only, trace=None)
    agent.subscribe("approval-decided", lambda record: print(record.event))
    print(agent.run_sync("Order 7 came broken.").output)
    print("paid:", PAID)


if __name__ == "__main__":
    main()
