"""What a recording holds of a run, said as backends are to say it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead import load_recording
from playhead.trace.events import LlmRequested, LlmResponded
from playhead.trace.types import TextPart
from playhead.trace.values import untagged

if TYPE_CHECKING:
    from playhead import Recording, RunResult
    from playhead.trace.recording import RecordedCall, RecordedExchange
    from playhead.trace.types import Content, Message, Request, ToolCall


def exchanges(run: RunResult) -> list[tuple[Request, RecordedExchange]]:
    """Return what was asked and answered, sub-agents included, in the order of the file."""
    recording = _recording(run)
    found = {
        (owner.owner, each.requested.request, each.requested.attempt): (owner.request(each.requested), each)
        for owner in recording.owners.values()
        for each in owner.exchanges
    }
    asked = ((record.owner, record.event) for record in recording.records)
    return [found[owner, each.request, each.attempt] for owner, each in asked if isinstance(each, LlmRequested)]


def calls(run: RunResult) -> list[RecordedCall]:
    """Return the tool calls, in the order of the file."""
    found = [call for owner in _recording(run).owners.values() for call in owner.calls.values()]
    return sorted(found, key=lambda each: each.seq)


def _recording(run: RunResult) -> Recording:
    assert run.trace_path is not None
    return load_recording(run.trace_path)


def message(sent: Message) -> dict[str, Any]:
    """Return a message in OpenAI's form."""
    told = {"tool_call_id": sent.tool_call_id, "name": sent.name}
    content = _content(sent.content)
    return {
        "role": sent.role,
        "content": content,
        **_calls(sent.tool_calls, content),
        **{key: value for key, value in told.items() if value is not None},
    }


def answer(responded: LlmResponded) -> dict[str, Any]:
    """Return an answer in OpenAI's form."""
    said = text(responded.text)
    reasoning = {"reasoning_content": text(responded.thinking)} if responded.thinking else {}
    return {"role": "assistant", "content": said, **_calls(responded.tool_calls, said), **reasoning}


def _content(content: Content) -> Any:
    if isinstance(content, str):
        return text(content)
    return [
        {"type": "text", "text": text(part.text)}
        if isinstance(part, TextPart)
        else {"type": "image_url", "image_url": {"url": part.url}}
        for part in content
    ]


def _calls(asked: tuple[ToolCall, ...], content: Any) -> dict[str, Any]:
    if not asked:
        return {}
    told = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": shown(call.arguments)}}
        for call in asked
    ]
    return {"content": content or None, "tool_calls": told}


def shown(value: Any) -> Any:
    """Return a recorded value as it is shown: a text, or JSON without the tags by which a trace tells kinds of values apart."""
    value = untagged(value)
    return text(value) if isinstance(value, str) else _whole(value)


def text(said: str) -> str:
    """Return a text as every backend can hold it: neither half a character nor a NUL is in it."""
    return str(_whole(said)).replace("\0", "\N{REPLACEMENT CHARACTER}")


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_whole(key): _whole(each) for key, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, list | tuple) else value
