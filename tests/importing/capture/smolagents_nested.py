"""A managed agent in smolagents."""

from __future__ import annotations

from openinference.instrumentation.smolagents import SmolagentsInstrumentor
from shared import calls, lookup, scripted, tracer_provider
from smolagents import OpenAIServerModel, ToolCallingAgent, tool

tracing = tracer_provider("smolagents-nested")
SmolagentsInstrumentor().instrument(tracer_provider=tracing)
answers = (
    calls(("researcher", {"task": "the height of Mount Zed"})),
    calls(("lookup", {"key": "Mount Zed"})),
    calls(("final_answer", {"answer": "4,180 feet"})),
    calls(("final_answer", {"answer": "Mount Zed is 4,180 feet high."})),
)
with scripted(*answers) as address:
    model = OpenAIServerModel("scripted-1", api_base=address, api_key="none")
    researcher = ToolCallingAgent(tools=[tool(lookup)], model=model, name="researcher", description="Looks facts up.")
    manager = ToolCallingAgent(tools=[], model=model, managed_agents=[researcher], name="manager", description="Asks.")
    print(manager.run("How high is Mount Zed?"))
tracing.shutdown()
