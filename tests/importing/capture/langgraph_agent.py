"""The task in LangGraph, through LangChain's agent."""

from __future__ import annotations

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from openinference.instrumentation import using_attributes
from openinference.instrumentation.langchain import LangChainInstrumentor
from shared import ANSWERS, SYSTEM, TASK, lookup, scripted, send_mail, tracer_provider

tracing = tracer_provider("langgraph")
LangChainInstrumentor().instrument(tracer_provider=tracing)
with scripted(*ANSWERS) as address:
    model = ChatOpenAI(model="scripted-1", base_url=address, api_key="none", temperature=0.2)
    agent = create_agent(model, [lookup, send_mail], system_prompt=SYSTEM, name="clerk")
    with using_attributes(session_id="session-7", user_id="ann", metadata={"ticket": 42}, tags=["capture", "demo"]):
        print(agent.invoke({"messages": [("user", TASK)]})["messages"][-1].content)
tracing.shutdown()
