"""The task in the OpenAI Agents SDK; with `nested` an agent as a tool of another one, whose second call fails."""

from __future__ import annotations

import sys

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from openai import AsyncOpenAI
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from shared import ANSWERS, SYSTEM, TASK, calls, lookup, scripted, send_mail, text, tracer_provider

nested = "nested" in sys.argv
tracing = tracer_provider("openai-agents-nested" if nested else "openai-agents")
OpenAIAgentsInstrumentor().instrument(tracer_provider=tracing)
inner = (
    calls(("ask_researcher", {"input": "the height of Mount Zed"})),
    calls(("lookup", {"key": "Mount Zed"}), ("lookup", {"key": "Mount Nobody"})),
    text("4,180 feet"),
    text("Mount Zed is 4,180 feet high."),
)
with scripted(*(inner if nested else ANSWERS)) as address:
    model = OpenAIChatCompletionsModel("scripted-1", AsyncOpenAI(base_url=address, api_key="none"))
    if nested:
        researcher = Agent("researcher", instructions="You look facts up.", model=model, tools=[function_tool(lookup)])
        asking = researcher.as_tool("ask_researcher", "Ask the researcher for a fact.")
        agent = Agent("manager", instructions="You ask the researcher.", model=model, tools=[asking])
    else:
        tools = [function_tool(lookup), function_tool(send_mail)]
        agent = Agent("clerk", instructions=SYSTEM, model=model, tools=tools)
    print(Runner.run_sync(agent, "How high is Mount Zed?" if nested else TASK).final_output)
tracing.shutdown()
