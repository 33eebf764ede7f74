"""What recording costs a program that is not ours, per model call, above the same call of the bare SDK client.

The server is a function in this process, so all of the time is the client's and ours. A program asks with the same three messages
each time, or with a thread that grows by two messages a call.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import openai

import playhead
from playhead.kernel.tool_decorator import tool

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS = 100
REPEATS = 11
ANSWER = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-4o-mini",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "yes " * 50}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
}


class Answers(httpx2.BaseTransport):
    """Answers each request."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:  # noqa: ARG002 - any request
        """Return the answer, to be read by the client."""
        body = httpx2.ByteStream(json.dumps(ANSWER).encode())
        return httpx2.Response(200, headers={"content-type": "application/json"}, stream=body)


BARE: Any = openai.OpenAI(
    api_key="none", base_url="https://chat.example/v1", http_client=httpx2.Client(transport=Answers())
)
WRAPPED: Any = playhead.wrap(BARE)
SYSTEM = {"role": "system", "content": "Be brief. " * 20}


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look a fact up."""
    return key * 100


def same_prompt(client: openai.OpenAI) -> None:
    """Ask with three messages."""
    for number in range(CALLS):
        messages: list[Any] = [
            SYSTEM,
            {"role": "user", "content": f"question {number}"},
            {"role": "user", "content": "now"},
        ]
        client.chat.completions.create(model="gpt-4o-mini", messages=messages)


def growing_thread(client: openai.OpenAI) -> None:
    """Ask with a thread that grows by an answer and a question."""
    messages: list[Any] = [SYSTEM]
    for number in range(CALLS):
        messages.append({"role": "user", "content": f"question {number}"})
        answer = client.chat.completions.create(model="gpt-4o-mini", messages=messages)
        messages.append({"role": "assistant", "content": answer.choices[0].message.content})


def nothing(_: openai.OpenAI) -> None:
    """Ask nothing."""


def tools_only(_: openai.OpenAI) -> None:
    """Call a tool."""
    for number in range(CALLS):
        lookup(key=str(number))


def cpu_us(run: Callable[[], object]) -> float:
    """Return the least CPU time of a call of the program, in microseconds."""
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        run()
        times.append((time.process_time() - started) / CALLS * 1e6)
    return min(times)


def main() -> None:
    """Print a line for each program."""
    with tempfile.TemporaryDirectory() as folder:
        empty = cpu_us(lambda: playhead.recorded(trace=Path(folder))(nothing)(BARE))
        print(f"{'a run':<16} without calls {empty * CALLS / 1000:.1f} ms")
        for program in (same_prompt, growing_thread, tools_only):
            recorded = playhead.recorded(trace=Path(folder))(program)
            recorded(WRAPPED)  # loads what it needs
            program(BARE)
            bare = cpu_us(lambda: program(BARE))  # noqa: B023 - called at once
            ours = cpu_us(lambda: recorded(WRAPPED)) - empty  # noqa: B023 - called at once
            print(
                f"{program.__name__:<16} bare {bare:7.0f} µs a call, recorded {ours:7.0f}: {ours - bare:6.0f} µs more"
            )


if __name__ == "__main__":
    main()
