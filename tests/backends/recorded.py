"""What a recording holds of a run, said as backends are to say it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from playhead import load_recording
from playhead.kernel.models.openai_format import message_to_openai
from playhead.trace.events import LlmRequested, LlmResponded
from playhead.trace.types import Message
from playhead.trace.values import untagged

if TYPE_CHECKING:
    from playhead import Recording, RunResult
    from playhead.diagnose.recording import RecordedCall, RecordedExchange
    from playhead.trace.types import Request


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
    """Return a message in OpenAI's form, with the arguments of its calls as data."""
    told: dict[str, Any] = shown(message_to_openai(sent))
    told["content"] = shown(told["content"])
    for call in told.get("tool_calls", ()):
        call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return told | ({"name": sent.name} if sent.name else {})


def answer(responded: LlmResponded) -> dict[str, Any]:
    """Return an answer in OpenAI's form."""
    said = Message(id=0, role="assistant", content=responded.text, tool_calls=responded.tool_calls)
    return message(said) | ({"reasoning_content": shown(responded.thinking)} if responded.thinking else {})


def shown(value: Any) -> Any:
    """Return a recorded value as it is shown: a text, or JSON without the tags by which a trace tells kinds of values apart.

    No backend can hold half a character, and none a text with a NUL.
    """
    value = _whole(untagged(value))
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_whole(key): _whole(each) for key, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, list | tuple) else value
