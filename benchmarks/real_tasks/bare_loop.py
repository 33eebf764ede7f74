"""The simplest honest agent loop: what a competent person writes in forty lines against an OpenAI-compatible server.

It gets the same prompt, turns, tools and limits as Playhead's kernel, calls tools natively, and feeds errors back as text.
A server error is tried again twice, as OpenAI's own client does. It imports nothing of Playhead.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

Post: TypeAlias = "Callable[[dict[str, Any]], dict[str, Any]]"
ATTEMPTS: Final = 3


@dataclass
class BareRun:
    """What the loop reached."""

    answer: str | None = None
    """The model's text without a call; None when the turns were used up."""
    ended: str = "max_iterations"
    input_tokens: int = 0
    output_tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    messages: list[dict[str, Any]] = field(default_factory=list)


def run(post: Post, reached: BareRun, tools: list[dict[str, Any]], functions: Mapping[str, Any], turns: int) -> None:
    """Ask, call, and ask again, until the model answers without a call."""
    messages = reached.messages
    for _ in range(turns):
        response = post({"messages": messages, "tools": tools})
        reached.model_calls += 1
        reached.input_tokens += response["usage"]["prompt_tokens"]
        reached.output_tokens += response["usage"]["completion_tokens"]
        message = response["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            reached.answer, reached.ended = message.get("content"), "end_turn"
            return
        for call in message["tool_calls"]:
            reached.tool_calls += 1
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result_of(call, functions)})


def result_of(call: dict[str, Any], functions: Mapping[str, Any]) -> str:
    """Return what a call gives, as text; an error is text, too."""
    try:
        name = call["function"]["name"]
        if name not in functions:
            return f"error: there is no tool {name!r}; the tools are: {', '.join(functions)}"
        value = functions[name](**json.loads(call["function"]["arguments"]))
    except Exception as error:  # noqa: BLE001 - whatever it is, the model may mend it
        return f"error: {error}"
    return value if isinstance(value, str) else json.dumps(value)


def poster(api_base: str, model: str, parameters: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function that sends a request; a server error is tried again."""

    def post(body: dict[str, Any]) -> dict[str, Any]:
        for attempt in range(ATTEMPTS):
            answer = httpx.post(
                f"{api_base}/chat/completions", json={"model": model, **body, **parameters}, timeout=300
            )
            if answer.status_code < 500 or attempt == ATTEMPTS - 1:  # noqa: PLR2004 - a server error
                break
            time.sleep(0.5 * 2**attempt)
        answer.raise_for_status()
        return answer.json()  # type: ignore[no-any-return]

    return post


def write(path: Path, messages: list[dict[str, Any]]) -> None:
    """Keep the thread: one message a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(message, ensure_ascii=False) + "\n" for message in messages), encoding="utf-8")
