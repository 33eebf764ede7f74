"""A run that died is resumed: what was answered is served from its trace, and nothing with a side effect is done twice.

The power goes while the card is charged: nobody but you can know whether the bank got it. So the first attempt to resume
stops and says which call that is. You look it up, say so, and the run goes on.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from playhead import Agent, Context, ResultOverride, load_recording, tool
from playhead.errors import UnresolvedCallError
from playhead.testing import ScriptedModel, Turn, call, text

if TYPE_CHECKING:
    from playhead.trace.types import Request

BANK: list[str] = []


@tool(read_only=True)
def find_order(number: int) -> str:
    """Find an order."""
    return f"order {number}: 20 dollars, not paid"


@tool
def charge(dollars: int) -> str:
    """Charge the customer's card."""
    BANK.append(f"{dollars} dollars")
    return f"receipt {len(BANK)}"


def answer(request: Request) -> Turn:
    """Say what comes next: a function of the thread, as a model is."""
    turns = [call("find_order", number=7), call("charge", dollars=20), text("Paid, thank you.")]
    return turns[sum(message.role == "assistant" for message in request.messages)]


def make_agent(folder: Path) -> Agent:
    """Return the agent; it has to be the same before and after."""
    return Agent(
        ScriptedModel([answer] * 3), tools=[find_order, charge], context=Context(rationale=False), trace=folder
    )


def lose_power(folder: Path) -> None:
    """Leave of the trace what was written when the charge had begun."""
    result = make_agent(folder).run_sync("Take the money for order 7.", run_id="order-7")
    assert result.trace_path is not None
    lines = result.trace_path.read_bytes().splitlines(keepends=True)
    begun = next(number for number, line in enumerate(lines) if b"tool-call-started" in line and b"charge" in line)
    result.trace_path.write_bytes(b"".join(lines[: begun + 1]))


def main() -> None:
    """Print what each step gives."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lose_power(folder)
        try:
            load_recording("order-7", folder).resume_sync(make_agent(folder))
        except UnresolvedCallError as stopped:
            for each in stopped.calls:
                print("unresolved:", each)
        known = ResultOverride("charge", result="receipt 1")  # the bank says so
        result = load_recording("order-7", folder).resume_sync(make_agent(folder), unresolved={"call_1_0": known})
        print(result.output)
        print("the bank got:", BANK)
        assert result.trace_path is not None
        recording = load_recording(result.trace_path)
        print("continues:", recording.header.resumed_from)
        print("identical:", recording.reproduce_sync().identical)


if __name__ == "__main__":
    main()
