"""Agents of other frameworks inside a recorded function: their model calls and tool calls are the run's."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import playhead
from tests.answering import answering
from tests.docs.pages import DOCS, blocks_of
from tests.instrument.chatting import Chat, calls, says

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.filterwarnings("ignore"),
]
RAN: list[tuple[str, Any]] = []


def lookup(key: str) -> str:
    """Look a fact up."""
    RAN.append(("lookup", key))
    return f"{key} is 42"


async def refund(order: int, reason: str = "none") -> str:
    """Pay an order back."""
    RAN.append(("refund", order))
    return f"refunded {order}: {reason}"


def server(body: dict[str, Any]) -> dict[str, Any]:
    """Ask for both tools at once, then answer with the results."""
    results = [each["content"] for each in body["messages"] if each["role"] == "tool"]
    if results:
        return says(f"So {' and '.join(results)}.")
    return calls(("lookup", {"key": "a"}), ("refund", {"order": 7}))


def langgraph(chat: Chat) -> Callable[[str], str]:
    """Return a graph of LangGraph with a tool node."""
    from langchain_core.tools import StructuredTool
    from langchain_openai import ChatOpenAI
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    tools = [
        playhead.wrap(StructuredTool.from_function(lookup), read_only=True),
        playhead.wrap(StructuredTool.from_function(coroutine=refund)),
    ]
    http: Any = {"http_client": chat.client._client, "http_async_client": chat.async_client._client}
    model = ChatOpenAI(model="gpt-4o-mini", base_url="https://chat.example/v1", api_key="sk-secret-123456", **http)
    bound = model.bind_tools(tools)

    async def ask(state: Any) -> Any:
        return {"messages": [await bound.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", tools_condition)
    graph.add_edge("tools", "ask")
    made = graph.compile()
    return lambda task: asyncio.run(made.ainvoke({"messages": [("user", task)]}))["messages"][-1].content


def openai_agents(chat: Chat) -> Callable[[str], str]:
    """Return an agent of the OpenAI Agents SDK."""
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled

    set_tracing_disabled(True)
    tools = [playhead.wrap(function_tool(lookup), read_only=True), playhead.wrap(function_tool(refund))]
    model = OpenAIChatCompletionsModel("gpt-4o-mini", chat.async_client)
    agent = Agent(name="agent", instructions="Be brief.", tools=tools, model=model)
    return lambda task: str(asyncio.run(Runner.run(agent, task)).final_output)


def pydantic_ai(chat: Chat) -> Callable[[str], str]:
    """Return an agent of pydantic-ai."""
    from pydantic_ai import Agent, Tool
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("gpt-4o-mini", provider=OpenAIProvider(openai_client=chat.async_client))
    tools = [playhead.wrap(Tool(lookup), read_only=True), playhead.wrap(Tool(refund))]
    agent = Agent(model, tools=tools, system_prompt="Be brief.")
    return lambda task: asyncio.run(agent.run(task)).output


FRAMEWORKS = {"langgraph": langgraph, "openai-agents": openai_agents, "pydantic-ai": pydantic_ai}


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_an_agent_of_a_framework_is_recorded(name: str, tmp_path: Path) -> None:
    """Each request, each answer, and each tool call as the model asked for it, with its own id."""
    RAN.clear()
    chat = Chat(server)
    agent = FRAMEWORKS[name](chat)

    @playhead.recorded(trace=tmp_path)
    def program(task: str) -> str:
        return agent(task)

    assert program("How high is a?") == "So a is 42 and refunded 7: none."
    assert sorted(RAN) == [("lookup", "a"), ("refund", 7)]
    root = playhead.load_recording(next(tmp_path.glob("*.jsonl"))).root
    made = {
        (call.started.tool, call.started.call_id, call.started.source, call.completed and call.completed.result)
        for call in root.calls.values()
    }
    assert made == {
        ("lookup", "call_00", "native", "a is 42"),
        ("refund", "call_01", "native", "refunded 7: none"),
    }
    assert len(root.exchanges) == 2


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_outside_a_run_an_agent_of_a_framework_is_as_before(name: str) -> None:
    """Wrapped tools and clients work alone."""
    RAN.clear()
    assert FRAMEWORKS[name](Chat(server))("How high is a?") == "So a is 42 and refunded 7: none."
    assert sorted(RAN) == [("lookup", "a"), ("refund", 7)]


def test_a_loop_on_google_genai_is_recorded_and_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model stands in the address, and the prompt beside the contents: a replay changes both."""
    from google import genai
    from google.genai import types

    asked: list[tuple[str, Any]] = []

    def answer(path: str, headers: Any, body: bytes) -> Any:
        asked.append((path, json.loads(body)))
        has_result = b"functionResponse" in body
        part = {"text": "It is 42."} if has_result else {"functionCall": {"name": "lookup", "args": {"key": "a"}}}
        said = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
        return 200, {}, [json.dumps({"candidates": [said], "usageMetadata": {"promptTokenCount": 9}}).encode()]

    recorded_lookup = playhead.tool(read_only=True)(lookup)
    off = types.AutomaticFunctionCallingConfig(disable=True)
    config = types.GenerateContentConfig(
        system_instruction="Be brief.",
        tools=[{"function_declarations": [{"name": "lookup", "parameters": {"type": "OBJECT"}}]}],
        automatic_function_calling=off,
    )

    @playhead.recorded(trace=tmp_path)
    def program(task: str) -> str:
        contents: list[Any] = [types.Content(role="user", parts=[types.Part(text=task)])]
        while True:
            said = client.models.generate_content(model="gemini-3", contents=contents, config=config)
            if not said.function_calls:
                return str(said.text)
            (call,) = said.function_calls
            result = types.Part.from_function_response(name="lookup", response={"is": recorded_lookup(**call.args)})
            contents += [said.candidates[0].content, types.Content(role="user", parts=[result])]

    with answering(answer) as url:
        http: Any = {"base_url": url, "httpx_client": playhead.wrap(httpx.Client())}
        client = genai.Client(api_key="AIza-secret-123", http_options=http)
        assert program("How high is a?") == "It is 42."
        recording = playhead.load_recording(next(tmp_path.glob("*.jsonl")))
        RAN.clear()
        assert recording.reproduce_sync(program=program).identical
        assert len(asked) == 2
        replayed = recording.replay_sync(
            program=program, system_prompt="Be long.", model="gemini/gemini-4", trace=tmp_path
        )
    assert (replayed.run.output, RAN) == ("It is 42.", [])
    assert [path for path, _ in asked] == [f"/v1/models/gemini-{n}:generateContent" for n in (3, 3, 4, 4)]
    assert [body["systemInstruction"]["parts"] for _, body in asked[2:]] == [[{"text": "Be long."}]] * 2


def test_the_page_of_wrapped_clients_is_true() -> None:
    """Its block for frameworks runs, and each tool keeps its type."""
    (block,) = [text for text, _ in blocks_of(DOCS / "guides" / "wrapped-clients.md") if "ToolNode" in text]
    names: dict[str, Any] = {}
    exec(compile(block, "wrapped-clients.md", "exec"), names)  # noqa: S102 - our own page
    kinds = [type(names[name]).__name__ for name in ("langchain", "openai_agents", "pydantic_ai")]
    assert kinds == ["StructuredTool", "FunctionTool", "Tool"]
