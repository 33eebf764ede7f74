"""The wire formats that Playhead reads. Requests and answers in others are recorded by their bytes alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from playhead.errors import ModelError, ModelRequestError, ModelUnavailableError, RateLimitError
from playhead.importing.bodies import at, events, object_of, objects, parsed, placed, text
from playhead.importing.wire import WireAnswer, WireRequest, wire_request
from playhead.instrument.formats.anthropic_messages import AnthropicMessages
from playhead.instrument.formats.genai import GenerateContent
from playhead.instrument.formats.ollama_chat import OllamaChat
from playhead.instrument.formats.openai_chat import OpenAIChat
from playhead.instrument.formats.openai_responses import OpenAIResponses

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from playhead.importing.bodies import Json
    from playhead.importing.wire import Format
    from playhead.trace.values import JsonValue

FORMATS: Final[tuple[Format, ...]] = (
    OpenAIChat(),
    OpenAIResponses(),
    AnthropicMessages(),
    OllamaChat(),
    GenerateContent(),
)
_LONGEST: Final = 300
"""Characters of an error message that are kept."""


def read_request(method: str, url: str, body: bytes) -> WireRequest | None:
    """Return the request to a model; None when its wire format is not known.

    Args:
        method: the HTTP method.
        url: the address without user info, query and fragment.
        body: the bytes of the body.
    """
    found = next((each for each in FORMATS if each.path.search(url)), None) if method == "POST" else None
    read = parsed(body) if found else None
    return wire_request(found, url, body, read) if found and isinstance(read, dict) else None


def read_answer(wire: WireRequest, status: int, headers: Mapping[str, str], body: bytes) -> WireAnswer:
    """Return what a response says: its answer, or why there is none.

    Args:
        wire: the request.
        status: the HTTP status.
        headers: the headers, by lower-case name.
        body: the body as far as it was received, decoded.
    """
    parts = events(body, headers.get("content-type", ""))
    read = None if parts is not None else parsed(body)
    if isinstance(read, list):
        parts = objects(read)
    answer, whole = (read, True) if parts is None else wire.format.joined(parts)
    refused = _refusal(status, (answer, *(parts or ())))
    completion = wire.format.completion(answer) if isinstance(answer, dict) and refused is None else None
    return WireAnswer(completion, whole and completion is not None, refused)


def with_cap(wire: WireRequest, tokens: int) -> WireRequest:
    """Return the request with this output cap, in tokens."""
    return with_body(wire, placed(wire.body, wire.format.cap_place(wire), tokens))


def with_body(wire: WireRequest, body: Json, url: str | None = None) -> WireRequest:
    """Return the request with another body, at another address."""
    raw = wire.raw if body is wire.body else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return wire_request(wire.format, url or wire.url, raw, body)


def _refusal(status: int, read: Iterable[JsonValue]) -> ModelError | None:
    """Return the error in a response, or in a part of a stream; None when it holds none."""
    said = next(filter(None, map(_error_in, read)), None)
    if status < 400 and said is None:  # noqa: PLR2004 - the statuses of errors begin here
        return None
    words = text(said) or text(at(said, "message")) or f"HTTP status {status}"
    is_refused = 400 <= status < 500 and status not in {408, 409}  # noqa: PLR2004
    kind = RateLimitError if status == 429 else ModelRequestError if is_refused else ModelUnavailableError  # noqa: PLR2004
    return kind(words[:_LONGEST])


def _error_in(read: JsonValue) -> JsonValue:
    said = object_of(read)
    if said.get("type") == "error":
        return said.get("error") or read
    return said.get("error") or at(said, "response", "error")
