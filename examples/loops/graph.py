"""A graph of LangGraph with a tool node: its tools are wrapped, and its model gets a wrapped HTTP client."""

import os
import sys
from typing import Any

import httpx2
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import playhead


def status(order: int) -> str:
    """Look an order up."""
    print(f"tool: status({order})")
    return f"order {order} arrived broken"


def refund(order: int) -> str:
    """Pay an order back."""
    print(f"tool: refund({order})")
    return f"order {order} is paid back"


TOOLS = [
    playhead.wrap(StructuredTool.from_function(status), read_only=True),
    playhead.wrap(StructuredTool.from_function(refund)),
]
HTTP: Any = playhead.wrap(httpx2.Client())
MODEL = ChatOpenAI(model=os.environ.get("MODEL", "gpt-4o-mini"), http_client=HTTP).bind_tools(TOOLS)
PROMPT = ("system", "Refund what arrived broken. Look orders up first.")


def ask(state: MessagesState) -> dict[str, Any]:
    """Ask the model."""
    return {"messages": [MODEL.invoke([PROMPT, *state["messages"]])]}


builder = StateGraph(MessagesState)
builder.add_node("ask", ask)
builder.add_node("tools", ToolNode(TOOLS))
builder.add_edge(START, "ask")
builder.add_conditional_edges("ask", tools_condition)
builder.add_edge("tools", "ask")
graph = builder.compile()


@playhead.recorded
def support(task: str) -> str:
    """Answer a customer."""
    return str(graph.invoke({"messages": [("user", task)]})["messages"][-1].text)


if __name__ == "__main__":
    print(support(sys.argv[1]))
