"""An agent as a tool of another one, in the OpenAI Agents SDK; one of the tools fails."""

from __future__ import annotations

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from openai import AsyncOpenAI
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from shared import calls, lookup, scripted, text, tracer_provider

tracing = tracer_provider("openai-agents-nested")
OpenAIAgentsInstrumentor().instrument(tracer_provider=tracing)
answers = (
    calls(("ask_researcher", {"input": "the height of Mount Zed"})),
    calls(("lookup", {"key": "Mount Zed"}), ("lookup", {"key": "Mount Nobody"})),
    text("4,180 feet"),
    text("Mount Zed is 4,180 feet high."),
)
with scripted(*answers) as address:
    model = OpenAIChatCompletionsModel("scripted-1", AsyncOpenAI(base_url=address, api_key="none"))
    researcher = Agent("researcher", instructions="You look facts up.", model=model, tools=[function_tool(lookup)])
    asking = researcher.as_tool("ask_researcher", "Ask the researcher for a fact.")
    manager = Agent("manager", instructions="You ask the researcher.", model=model, tools=[asking])
    print(Runner.run_sync(manager, "How high is Mount Zed?").final_output)
tracing.shutdown()
