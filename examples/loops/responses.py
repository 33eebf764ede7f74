"""A loop of your own on OpenAI's Responses, whose answers are streamed."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from openai import OpenAI

import playhead

client = playhead.wrap(OpenAI())
MODEL = os.environ.get("MODEL", "gpt-5-mini")
ORDER = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
TOOLS: Any = [
    {"type": "function", "name": "status", "description": "Look an order up.", "parameters": ORDER},
    {"type": "function", "name": "refund", "description": "Pay an order back.", "parameters": ORDER},
]
PROMPT = "Refund what arrived broken. Look orders up first."


@playhead.tool(read_only=True)
def status(order: int) -> str:
    """Look an order up."""
    print(f"tool: status({order})")
    return f"order {order} arrived broken"


@playhead.tool
def refund(order: int) -> str:
    """Pay an order back."""
    print(f"tool: refund({order})")
    return f"order {order} is paid back"


@playhead.recorded
def support(task: str) -> str:
    """Answer a customer."""
    items: list[Any] = [{"role": "user", "content": task}]
    while True:
        with client.responses.stream(model=MODEL, instructions=PROMPT, input=items, tools=TOOLS) as stream:
            for event in stream:
                if event.type == "response.output_text.delta":
                    print(event.delta, end="", flush=True)
            answer = stream.get_final_response()
        calls: list[Any] = [each for each in answer.output if each.type == "function_call"]
        if not calls:
            return answer.output_text
        for each in calls:
            function: Any = {"status": status, "refund": refund}[each.name]
            items.append({"type": each.type, "call_id": each.call_id, "name": each.name, "arguments": each.arguments})
            result = function(**json.loads(each.arguments))
            items.append({"type": "function_call_output", "call_id": each.call_id, "output": result})


if __name__ == "__main__":
    support(sys.argv[1])
