"""A loop of your own on OpenAI's chat completions. Playhead needs three lines of it: `wrap`, `tool` and `recorded`.

python -m examples.loops.chat "Order 7 arrived broken."
playhead replay latest --program examples.loops.chat:support --system-prompt "Never refund."
"""

import json
import os
import sys
from typing import Any

from openai import OpenAI

import playhead

client = playhead.wrap(OpenAI())
MODEL = os.environ.get("MODEL", "gpt-4o-mini")
ORDER = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
TOOLS: Any = [
    {"type": "function", "function": {"name": "status", "description": "Look an order up.", "parameters": ORDER}},
    {"type": "function", "function": {"name": "refund", "description": "Pay an order back.", "parameters": ORDER}},
]


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
    messages: list[Any] = [
        {"role": "system", "content": "Refund what arrived broken. Look orders up first."},
        {"role": "user", "content": task},
    ]
    while True:
        answer = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS).choices[0].message
        messages.append(answer.model_dump(exclude_none=True))
        calls: Any = answer.tool_calls
        if not calls:
            return answer.content or ""
        for each in calls:
            function: Any = {"status": status, "refund": refund}[each.function.name]
            result = function(**json.loads(each.function.arguments))
            messages.append({"role": "tool", "tool_call_id": each.id, "content": result})


if __name__ == "__main__":
    print(support(sys.argv[1]))
