"""The task in the OpenAI Agents SDK."""

from __future__ import annotations

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from openai import AsyncOpenAI
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from shared import ANSWERS, SYSTEM, TASK, lookup, scripted, send_mail, tracer_provider

tracing = tracer_provider("openai-agents")
OpenAIAgentsInstrumentor().instrument(tracer_provider=tracing)
with scripted(*ANSWERS) as address:
    model = OpenAIChatCompletionsModel("scripted-1", AsyncOpenAI(base_url=address, api_key="none"))
    agent = Agent("clerk", instructions=SYSTEM, model=model, tools=[function_tool(lookup), function_tool(send_mail)])
    print(Runner.run_sync(agent, TASK).final_output)
tracing.shutdown()
