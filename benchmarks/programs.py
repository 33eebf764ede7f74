"""What recording costs a program that is not ours, per model call, above the same call of the bare SDK client.

The server is a function in this process, so all of the time is the client's and ours. A program asks with three messages each time,
or with a thread that grows by two messages a call, to 200. The bare and the recorded client are asked in turn, request by request:
their difference counts, and the bare client's own time stands beside it. Below it stands the same without the SDK, straight to the
transport: the same work, with caches that the SDK has not filled with its own; and again with caches that hold nothing of ours,
because 32 MB were read before each request. That is the most that the same work costs, whatever the program does between its calls.
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


def in_turn(threads: Callable[[], Iterator[list[Any]]]) -> list[tuple[float, float]]:
    """Ask the bare client and the recorded one in turn; return what the bare one took for each request, and the other one more."""
    each = []
    for number, messages in enumerate(threads()):
        took = {}
        for client in (BARE, WRAPPED) if number % 2 else (WRAPPED, BARE):
            started = time.thread_time()
            client.chat.completions.create(model="gpt-4o-mini", messages=messages)
            took[client is WRAPPED] = (time.thread_time() - started) * 1e6
        each.append((took[False], took[True] - took[False]))
    return each


def straight(threads: Callable[[], Iterator[list[Any]]], others: bytes = b"") -> list[tuple[float, float]]:
    """Send what the SDK would send to a transport and to the recorded one, in turn, after reading `others`; return the same."""
    transport, each = Answers(), []
    recorded = RecordedTransport(transport, None)
    for messages in threads():
        body = json.dumps({"messages": messages, "model": "gpt-4o-mini"}, ensure_ascii=False, separators=(",", ":"))
        took = []
        for one in (transport, recorded):
            request = httpx2.Request("POST", "https://chat.example/v1/chat/completions", content=body)
            others.count(1)
            started = time.thread_time()
            one.handle_request(request).read()
            took.append((time.thread_time() - started) * 1e6)
        each.append((took[0], took[1] - took[0]))
    return each


def tools_only() -> list[tuple[float, float]]:
    """Call a tool; return nothing for its body, which is empty, and what each call took."""
    each = []
    for number in range(CALLS):
        started = time.thread_time()
        lookup(key=str(number))
        each.append((0.0, (time.thread_time() - started) * 1e6))
    return each


def main() -> None:
    """Print the middle of what recording adds to each request and of what that takes by itself, and the same of the last tenth."""
    with tempfile.TemporaryDirectory() as folder:
        for name, program in (
            ("three messages", lambda: in_turn(three_messages)),
            ("a thread to 200 messages", lambda: in_turn(growing_thread)),
            ("three messages, no SDK", lambda: straight(three_messages)),
            ("a thread to 200, no SDK", lambda: straight(growing_thread)),
            ("  the same, caches emptied", lambda: straight(growing_thread, bytes(32 << 20))),
            ("a tool", tools_only),
        ):
            run = playhead.recorded(trace=Path(folder), name="program")(program)
            run()  # loads what it needs
            gc.collect()
            runs: list[Any] = [run() for _ in range(REPEATS)]
            taken = [
                statistics.median(each[which] for one in runs for each in one[begin:])
                for begin in (0, -CALLS // 10)
                for which in (1, 0)
            ]
            print(
                "{:<26} recorded {:5.0f} µs more a call of {:3.0f} µs; the last ten {:5.0f} of {:5.0f}".format(
                    name, *taken
                )
            )


if __name__ == "__main__":
    main()
