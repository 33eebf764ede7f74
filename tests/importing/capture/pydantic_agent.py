"""The task in pydantic-ai: with `genai` its own spans, by OTel's GenAI conventions; else OpenInference's beside them."""

from __future__ import annotations

import sys

from openinference.instrumentation.pydantic_ai import OpenInferenceSpanProcessor
from pydantic_ai import Agent
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from shared import ANSWERS, SYSTEM, TASK, lookup, scripted, send_mail, tracer_provider

tracing = tracer_provider("pydantic-ai", *([] if "genai" in sys.argv else [OpenInferenceSpanProcessor()]))
Agent.instrument_all(InstrumentationSettings(tracer_provider=tracing))
with scripted(*ANSWERS) as address:
    model = OpenAIChatModel("scripted-1", provider=OpenAIProvider(base_url=address, api_key="none"))
    agent = Agent(model, name="clerk", instructions=SYSTEM, tools=[lookup, send_mail])
    print(agent.run_sync(TASK).output)
tracing.shutdown()
