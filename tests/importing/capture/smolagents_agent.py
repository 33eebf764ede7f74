"""The task in smolagents, whose answers are given through a tool."""

from __future__ import annotations

from openinference.instrumentation.smolagents import SmolagentsInstrumentor
from shared import ANSWERS, TASK, calls, lookup, scripted, send_mail, tracer_provider
from smolagents import OpenAIServerModel, ToolCallingAgent, tool

tracing = tracer_provider("smolagents")
SmolagentsInstrumentor().instrument(tracer_provider=tracing)
last = calls(("final_answer", {"answer": ANSWERS[-1]["content"]}))
with scripted(*ANSWERS[:-1], last) as address:
    model = OpenAIServerModel("scripted-1", api_base=address, api_key="none")
    agent = ToolCallingAgent(tools=[tool(lookup), tool(send_mail)], model=model, name="clerk", description="A clerk.")
    print(agent.run(TASK))
tracing.shutdown()
