"""A server that speaks the wire formats of OpenAI and Anthropic, and decides like a small model what it answers."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from playhead.instrument.formats import read_request
from playhead.replay.wire_changes import system_of
from tests.answering import answering
from tests.instrument.wires import sse

if TYPE_CHECKING:
    from collections.abc import Iterator


def decide(prompt: str, results: list[str]) -> tuple[str, str | None]:
    """Return a text, or a text and the tool to call: look the order up, and pay it back unless the prompt forbids it."""
    if not results:
        return "I look.", "status"
    if len(results) == 1 and "Never" not in prompt:
        return "I pay.", "refund"
    return f"So {results[-1]}.", None


@contextmanager
def provider() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the server's address, and the bodies of the requests that reach it."""
    asked: list[dict[str, Any]] = []

    def answer(path: str, headers: Any, body: bytes) -> Any:
        wire = read_request("POST", f"http://127.0.0.1{path.partition('?')[0]}", body)
        assert wire is not None, path
        asked.append(wire.body)
        results = [str(each.content) for each in wire.messages if each.role == "tool"]
        text, tool = decide(system_of(wire) or "", results)
        number = len(results)
        if wire.format.name == "anthropic":
            return 200, {}, [json.dumps(_message(text, tool, number)).encode()]
        if wire.format.name == "openai-chat":
            return 200, {}, [json.dumps(_chat(text, tool, number)).encode()]
        return 200, {"Content-Type": "text/event-stream"}, sse(*_events(_response(text, tool, number)), named=True)

    with answering(answer) as url:
        yield url, asked


def _chat(text: str, tool: str | None, number: int) -> dict[str, Any]:
    function = {"name": tool, "arguments": '{"order": 7}'}
    calls = {"tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}]} if tool else {}
    choice = {
        "message": {"role": "assistant", "content": text, **calls},
        "finish_reason": "tool_calls" if tool else "stop",
    }
    usage = {"prompt_tokens": 40, "completion_tokens": 10, "total_tokens": 50}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m-1"}
    return {**body, "choices": [{"index": 0, **choice}], "usage": usage}


def _message(text: str, tool: str | None, number: int) -> dict[str, Any]:
    use = [{"type": "tool_use", "id": f"call_{number}", "name": tool, "input": {"order": 7}}] if tool else []
    content = [{"type": "text", "text": text}, *use]
    usage = {"input_tokens": 40, "output_tokens": 10}
    ending = {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None, "usage": usage}
    return {"id": "m", "type": "message", "role": "assistant", "model": "m-1", "content": content, **ending}


def _response(text: str, tool: str | None, number: int) -> dict[str, Any]:
    said = {"type": "output_text", "text": text, "annotations": []}
    output: list[Any] = [{"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [said]}]
    if tool:
        asked = {"call_id": f"call_{number}", "name": tool, "arguments": '{"order": 7}', "status": "completed"}
        output.append({"id": "f", "type": "function_call", **asked})
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 40, "output_tokens": 10, "total_tokens": 50, **details}
    body = {"id": "r", "object": "response", "created_at": 1, "status": "completed", "error": None, "model": "m-1"}
    choices = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    return {**body, **choices, "output": output, "usage": usage}


def _events(response: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a response as the events of a stream."""
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": [], "usage": None}}
    ]
    for index, item in enumerate(response["output"]):
        empty = {**item, "content": []} if item["type"] == "message" else {**item, "arguments": ""}
        events.append({"type": "response.output_item.added", "output_index": index, "item": empty})
        at = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            (part,), at = item["content"], {**at, "content_index": 0}
            events.append({"type": "response.content_part.added", **at, "part": {**part, "text": ""}})
            words = part["text"].split(" ")
            deltas = [word if not place else f" {word}" for place, word in enumerate(words)]
            events += [{"type": "response.output_text.delta", **at, "delta": delta, "logprobs": []} for delta in deltas]
            events.append({"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []})
            events.append({"type": "response.content_part.done", **at, "part": part})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": response})
    return [{**each, "sequence_number": number} for number, each in enumerate(events)]
