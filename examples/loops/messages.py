"""A loop of your own on Anthropic's messages."""

from __future__ import annotations

import os
import sys
from typing import Any

from anthropic import Anthropic

import playhead

client = playhead.wrap(Anthropic())
MODEL = os.environ.get("MODEL", "claude-haiku-4-5")
ORDER = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
TOOLS: Any = [
    {"name": "status", "description": "Look an order up.", "input_schema": ORDER},
    {"name": "refund", "description": "Pay an order back.", "input_schema": ORDER},
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
    messages: list[Any] = [{"role": "user", "content": task}]
    while True:
        answer = client.messages.create(model=MODEL, max_tokens=500, system=PROMPT, messages=messages, tools=TOOLS)
        messages.append({"role": "assistant", "content": [each.model_dump() for each in answer.content]})
        calls: list[Any] = [each for each in answer.content if each.type == "tool_use"]
        if not calls:
            return "".join(each.text for each in answer.content if each.type == "text")
        results = []
        for each in calls:
            function: Any = {"status": status, "refund": refund}[each.name]
            results.append({"type": "tool_result", "tool_use_id": each.id, "content": function(**each.input)})
        messages.append({"role": "user", "content": results})


if __name__ == "__main__":
    print(support(sys.argv[1]))
