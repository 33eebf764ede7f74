"""The task in smolagents, whose answers are given through a tool; with `nested` a managed agent."""

from __future__ import annotations

import sys

from openinference.instrumentation.smolagents import SmolagentsInstrumentor
from shared import ANSWERS, TASK, calls, lookup, scripted, send_mail, tracer_provider
from smolagents import OpenAIServerModel, ToolCallingAgent, tool

nested = "nested" in sys.argv
tracing = tracer_provider("smolagents-nested" if nested else "smolagents")
SmolagentsInstrumentor().instrument(tracer_provider=tracing)
inner = (
    calls(("researcher", {"task": "the height of Mount Zed"})),
    calls(("lookup", {"key": "Mount Zed"})),
    calls(("final_answer", {"answer": "4,180 feet"})),
    calls(("final_answer", {"answer": "Mount Zed is 4,180 feet high."})),
)
last = calls(("final_answer", {"answer": ANSWERS[-1]["content"]}))
with scripted(*(inner if nested else (*ANSWERS[:-1], last))) as address:
    model = OpenAIServerModel("scripted-1", api_base=address, api_key="none")
    given = {"tools": [tool(lookup), tool(send_mail)], "name": "clerk", "description": "A clerk."}
    if nested:
        looks = ToolCallingAgent([tool(lookup)], model, name="researcher", description="Looks facts up.")
        given = {"tools": [], "managed_agents": [looks], "name": "manager", "description": "Asks."}
    print(ToolCallingAgent(model=model, **given).run("How high is Mount Zed?" if nested else TASK))
tracing.shutdown()
