"""What recording costs a program that is not ours, per model call, above the same call of the bare SDK client.

The server is a function in this process, so all of the time is the client's and ours. A program asks with three messages each time,
or with a thread that grows by two messages a call, to 200. Bare and recorded runs take turns: only their differences count, because the
client's own time varies by more than ours. Beside it stands the same without the SDK, straight to the transport: less varies there.
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


def transported(grows: bool) -> Callable[[Any], None]:  # noqa: FBT001 - of two programs
    """Return a program that sends requests, as the SDK writes them, straight to a transport."""
    bodies, messages = [], [SYSTEM]
    for number in range(CALLS):
        messages.append({"role": "user", "content": f"question {number}"})
        bodies.append(
            json.dumps({"messages": messages if grows else messages[:1] + messages[-1:]}, separators=(",", ":"))
        )
        messages.append({"role": "assistant", "content": str(ANSWER["choices"][0]["message"]["content"])})  # type: ignore[index]
    url = "https://chat.example/v1/chat/completions"
    requests = [
        httpx2.Request("POST", url, content=each, headers={"authorization": "Bearer sk-none-1234"}) for each in bodies
    ]

    def send(transport: Any) -> None:  # noqa: ANN401 - bare or recorded
        for each in requests:
            transport.handle_request(each).read()

    return send


def cpu_us(run: Callable[[], object]) -> float:
    """Return the CPU time of a call of the program, in microseconds."""
    gc.collect()
    started = time.process_time()
    run()
    return (time.process_time() - started) / CALLS * 1e6


def main() -> None:
    """Print a line for each program: the middle of the differences, and the least that one of them took."""
    transport = Answers()
    wrapped = RecordedTransport(transport, None)
    with tempfile.TemporaryDirectory() as folder:
        recorded = playhead.recorded(trace=Path(folder), name="program")
        empty = recorded(nothing)
        print(f"{'a run':<28} without calls {cpu_us(lambda: empty(BARE)) * CALLS / 1000:.1f} ms")
        programs: tuple[tuple[str, Callable[[Any], object], Any, Any], ...] = (
            ("three messages", same_prompt, BARE, WRAPPED),
            ("a thread to 200", growing_thread, BARE, WRAPPED),
            ("three messages, no SDK", transported(grows=False), transport, wrapped),
            ("a thread to 200, no SDK", transported(grows=True), transport, wrapped),
            ("tools only", tools_only, BARE, BARE),
        )
        for name, program, plain, ours in programs:
            ran = recorded(program)
            ran(ours)  # loads what it needs
            bare, more = [], []
            for _ in range(REPEATS):
                bare.append(cpu_us(lambda: program(plain)))  # noqa: B023 - called at once
                more.append(cpu_us(lambda: ran(ours)) - cpu_us(lambda: empty(BARE)) - bare[-1])  # noqa: B023
            middle, least = statistics.median(more), min(more)
            print(f"{name:<28} bare {min(bare):7.0f} µs a call, recorded {middle:6.0f} µs more (at least {least:.0f})")


if __name__ == "__main__":
    main()
