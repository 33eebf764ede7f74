"""An agent that answers customers. Its recorded runs are its regression tests: `pytest examples/regression`."""

from playhead import Agent, tool
from playhead.testing import ScriptedModel, call, text

PROMPT = """You answer customers of Acme.
Look an order up before you speak of it.
Be brief."""

ORDERS = {"7": {"article": "a lamp", "state": "sent on Monday", "arrives": "Wednesday"}}


@tool(read_only=True)
def find_order(number: str) -> dict[str, str]:
    """Find an order by its number."""
    return ORDERS[number]


# A program has a real one here, such as "openai/gpt-4o-mini". The tests ask it only with --playhead-record.
model = ScriptedModel([call("find_order", number="7"), text("Your lamp was sent on Monday. It arrives on Wednesday.")])

agent = Agent(model, tools=[find_order], system_prompt=PROMPT)
