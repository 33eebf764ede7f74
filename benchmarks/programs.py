"""What recording costs a program that is not ours, per model call, above the same call of the bare SDK client.

The server is a function in this process, so all of the time is the client's and ours. A program asks with three messages each time,
or with a thread that grows by two messages a call, to 200. The bare and the recorded client are asked in turn, request by request:
only their difference counts, because the client's own time (0.7 and 12 ms) varies by more than ours. Below it stands the same without
the SDK, straight to the transport: the same work, with caches that the SDK has not filled with its own.
"""

from __future__ import annotations

import gc
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import openai

import playhead
from playhead.instrument.transports import RecordedTransport
from playhead.kernel.tool_decorator import tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CALLS = 100
REPEATS = 5
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


def three_messages() -> Iterator[list[Any]]:
    """Yield what a program asks with the same three messages each time, but for a number."""
    for number in range(CALLS):
        yield [SYSTEM, {"role": "user", "content": f"question {number}"}, {"role": "user", "content": "now"}]


def growing_thread() -> Iterator[list[Any]]:
    """Yield a thread that grows by an answer and a question, to 200 messages."""
    messages: list[Any] = [SYSTEM]
    for number in range(CALLS):
        messages.append({"role": "user", "content": f"question {number}"})
        yield messages
        messages.append({"role": "assistant", "content": "yes " * 50})


def in_turn(threads: Callable[[], Iterator[list[Any]]]) -> list[float]:
    """Ask the bare client and the recorded one in turn, and return what the recorded one took more for each request."""
    more = []
    for number, messages in enumerate(threads()):
        took = {}
        for client in (BARE, WRAPPED) if number % 2 else (WRAPPED, BARE):
            started = time.thread_time()
            client.chat.completions.create(model="gpt-4o-mini", messages=messages)
            took[client is WRAPPED] = (time.thread_time() - started) * 1e6
        more.append(took[True] - took[False])
    return more


def straight(threads: Callable[[], Iterator[list[Any]]]) -> list[float]:
    """Send what the SDK would send to a transport and to the recorded one, in turn; return the same."""
    transport, more = Answers(), []
    recorded = RecordedTransport(transport, None)
    for messages in threads():
        body = json.dumps({"messages": messages, "model": "gpt-4o-mini"}, ensure_ascii=False, separators=(",", ":"))
        took = []
        for each in (transport, recorded):
            request = httpx2.Request("POST", "https://chat.example/v1/chat/completions", content=body)
            started = time.thread_time()
            each.handle_request(request).read()
            took.append((time.thread_time() - started) * 1e6)
        more.append(took[1] - took[0])
    return more


def tools_only() -> list[float]:
    """Call a tool, and return what each call took: the body is nothing."""
    more = []
    for number in range(CALLS):
        started = time.thread_time()
        lookup(key=str(number))
        more.append((time.thread_time() - started) * 1e6)
    return more


def main() -> None:
    """Print the middle of what recording adds to each request, and to the last tenth of the requests."""
    with tempfile.TemporaryDirectory() as folder:
        for name, program in (
            ("three messages", lambda: in_turn(three_messages)),
            ("a thread to 200 messages", lambda: in_turn(growing_thread)),
            ("three messages, no SDK", lambda: straight(three_messages)),
            ("a thread to 200, no SDK", lambda: straight(growing_thread)),
            ("a tool", tools_only),
        ):
            run = playhead.recorded(trace=Path(folder), name="program")(program)
            run()  # loads what it needs
            gc.collect()
            runs: list[Any] = [run() for _ in range(REPEATS)]
            middle, late = (
                statistics.median(each for one in runs for each in one[begin:]) for begin in (0, -CALLS // 10)
            )
            print(f"{name:<26} recorded {middle:5.0f} µs more a call; the last ten {late:5.0f} µs")


if __name__ == "__main__":
    main()
