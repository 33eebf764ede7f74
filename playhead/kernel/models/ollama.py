"""Local models through Ollama's official client.

The client's own `chat` is not used, because its types drop most of a tool's JSON Schema (nested properties, `anyOf`, bounds,
defaults), the ids of calls, and `truncate`. Its host rules, headers and errors are used.
"""

from __future__ import annotations

import os
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import (
    MissingApiKeyError,
    MissingDependencyError,
    ModelRequestError,
    ModelUnavailableError,
    UnknownModelError,
    nearest,
)
from playhead.kernel.models.adapter import Adapter, spent
from playhead.kernel.models.base import TextPiece
from playhead.kernel.models.openai_format import sendable, sendable_arguments, tool_to_openai, wire_message
from playhead.kernel.repair.lenient_json import read_call
from playhead.trace.types import Completion, ImagePart, Prices, Usage, text_of
from playhead.trace.values import scrub

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from playhead.errors import PlayheadError
    from playhead.trace.types import Message, Request
    from playhead.trace.values import JsonValue

_NEVER_SHORTEN: Final[Mapping[str, JsonValue]] = {"truncate": False, "shift": False}
"""Without these, a prompt beyond `num_ctx` silently loses its oldest messages. Old servers ignore them."""
_TOP_LEVEL: Final = frozenset({"format", "keep_alive", "logprobs", "shift", "think", "top_logprobs", "truncate"})
_OTHER_NAMES: Final[Mapping[str, str]] = {"max_completion_tokens": "num_predict", "max_tokens": "num_predict"}
# fmt: off
_OPTIONS: Final = frozenset({
    "draft_num_predict", "frequency_penalty", "main_gpu", "min_p", "mirostat", "mirostat_eta", "mirostat_tau",
    "num_batch", "num_ctx", "num_gpu", "num_keep", "num_predict", "num_thread", "penalize_newline", "presence_penalty",
    "repeat_last_n", "repeat_penalty", "seed", "stop", "temperature", "tfs_z", "top_k", "top_p", "typical_p", "use_mmap",
})
# fmt: on
_KNOWN: Final = _OPTIONS | _TOP_LEVEL | _OTHER_NAMES.keys() | {"response_format", "timeout"}


class Ollama(Adapter):
    """A model that an Ollama server runs: `ollama/qwen3:8b`."""

    usual_address = "http://127.0.0.1:11434"
    known_parameters = _KNOWN
    """All accepted parameters; the server would ignore unknown ones."""

    async def complete(self, request: Request) -> Completion:
        """Answer one request.

        Raises:
            ModelUnavailableError: no server answered, or the server failed.
            RateLimitError: too many requests for now (Ollama's cloud).
            ModelRequestError: the server refuses this request, or has no such parameter.
            MissingApiKeyError: there is no key, or Ollama's cloud rejects it.
            UnknownModelError: the server does not have the model.
            MissingDependencyError: the client is not installed.
        """
        body = to_ollama(request)
        with self._as_ours(request):
            # A new client for each request, because a shared one would outlive its event loop.
            async with _client(self._api_base, request) as client:
                response = await client._request_raw("POST", "/api/chat", json=body)  # noqa: SLF001 - see the top
                answer = response.json()
        return from_ollama(answer, cost_usd=0.0 if self._is_local() else None)

    async def stream(self, request: Request) -> AsyncGenerator[TextPiece | Completion]:
        """Answer one request piece by piece; raises like `complete`."""
        body = {**to_ollama(request), "stream": True}
        parts: list[dict[str, JsonValue]] = []
        async with AsyncExitStack() as stack:
            with self._as_ours(request):
                client = await stack.enter_async_context(_client(self._api_base, request))
                lines = await client._request(dict, "POST", "/api/chat", json=body, stream=True)  # noqa: SLF001
            await stack.enter_async_context(aclosing(lines))
            while (part := await self._next(lines, request)) is not None:
                parts.append(part)
                if text := _message(part).get("content"):
                    yield TextPiece(text)
        yield from_ollama(joined(parts), cost_usd=0.0 if self._is_local() else None)

    async def prices(self) -> Prices | None:
        """Return free prices for a local model; the prices of Ollama's cloud are not known."""
        return Prices(input_usd=0.0, output_usd=0.0) if self._is_local() else None

    def _is_local(self) -> bool:
        return not self._name.endswith("-cloud") and "ollama.com" not in (self.address or "")

    def _base(self) -> str | None:
        return self._api_base or os.environ.get("OLLAMA_HOST")

    def _advice(self, kind: type[PlayheadError]) -> str:
        pull = f" Get it: ollama pull {_model(self._name)}"
        advice: dict[type[PlayheadError], str] = {MissingApiKeyError: "set OLLAMA_API_KEY", UnknownModelError: pull}
        return advice.get(kind, "Is `ollama serve` running?")


def to_ollama(request: Request) -> dict[str, JsonValue]:
    """Return the body of a chat request with exactly the content of the request.

    Raises:
        ModelRequestError: Ollama has no such parameter (it would ignore it), or an image is not given by content.
    """
    given = {_OTHER_NAMES.get(name, name): value for name, value in sendable(request.parameters).items()}
    for name in given.keys() - _KNOWN:
        raise ModelRequestError(f"Ollama has no parameter {name!r}.{nearest(name, _KNOWN)}")
    options = {name: value for name, value in given.items() if name in _OPTIONS}
    if isinstance(options.get("stop"), str):
        options["stop"] = [options["stop"]]
    return {
        "model": _model(request.model),
        "messages": [message_to_ollama(message) for message in request.messages],
        "stream": False,
        **_NEVER_SHORTEN,
        **_format(given.get("response_format")),
        **{name: value for name, value in given.items() if name in _TOP_LEVEL},
        **({"tools": [tool_to_openai(tool) for tool in request.tools]} if request.tools else {}),
        **({"options": options} if options else {}),
    }


def message_to_ollama(message: Message) -> dict[str, JsonValue]:
    """Return a message in Ollama's form.

    Raises:
        ModelRequestError: an image is not given by content.
    """
    wire = wire_message(message, scrub(text_of(message.content)), sendable_arguments)
    images = [_image(part) for part in message.content if isinstance(part, ImagePart)]
    if images:
        wire["images"] = images
    if message.name is not None:
        wire["tool_name"] = message.name  # older servers match by name alone
    return wire


def from_ollama(answer: JsonValue, cost_usd: float | None) -> Completion:
    """Return the completion in the body of a chat response.

    Raises:
        ModelUnavailableError: the body holds no message.
    """
    message = answer.get("message") if isinstance(answer, dict) else None
    if not isinstance(message, dict):
        error = ModelUnavailableError("the server answered, but with no message in it; is it an Ollama server?")
        raise spent(error, _usage(answer), cost_usd) if isinstance(answer, dict) and "eval_count" in answer else error
    return Completion(
        text=message.get("content") or "",
        thinking=message.get("thinking") or None,
        tool_calls=tuple(
            read_call(call.get("id"), call["function"]["name"], call["function"].get("arguments"))
            for call in message.get("tool_calls") or ()
        ),
        finish_reason=answer.get("done_reason"),
        usage=_usage(answer),
        cost_usd=cost_usd,
        model=answer.get("model"),
    )


def _usage(answer: dict[str, JsonValue]) -> Usage:
    return Usage(input_tokens=answer.get("prompt_eval_count") or 0, output_tokens=answer.get("eval_count") or 0)


def joined(parts: list[dict[str, JsonValue]]) -> JsonValue:
    """Return the body of an answer as it would be without streaming.

    Raises:
        ModelUnavailableError: the last part is missing.
    """
    if not parts or not parts[-1].get("done"):
        raise ModelUnavailableError("the server broke off in the middle of its answer")
    messages = [_message(part) for part in parts]
    texts = {name: "".join(each.get(name) or "" for each in messages) for name in ("content", "thinking")}
    calls = [call for each in messages for call in each.get("tool_calls") or ()]
    return {**parts[-1], "message": {"role": "assistant", **texts, "tool_calls": calls}}


def _message(part: JsonValue) -> dict[str, Any]:
    message = part.get("message") if isinstance(part, dict) else None
    return message if isinstance(message, dict) else {}


def _client(host: str | None, request: Request) -> Any:  # noqa: ANN401 - its class is imported here
    try:
        import ollama  # noqa: PLC0415 - only for this provider
    except ImportError as error:
        raise MissingDependencyError(
            f"this model needs Ollama's client ({error}): pip install 'playhead[ollama]'"
        ) from error
    return ollama.AsyncClient(host, timeout=request.parameters.get("timeout"))


def _model(name: str) -> str:
    return name.partition("/")[2]


def _format(response_format: JsonValue) -> dict[str, JsonValue]:
    """Return OpenAI's `response_format` as Ollama's `format`: a JSON Schema, "json", or nothing for plain text."""
    match response_format:
        case {"type": "json_schema", "json_schema": {"schema": schema}}:
            return {"format": schema}
        case {"type": "json_object"}:
            return {"format": "json"}
        case None | {"type": "text"}:
            return {}
    raise ModelRequestError(f"Ollama has no such response_format: {response_format}")


def _image(part: ImagePart) -> str:
    """Return an image's content in base64; the client would take a URL for a file's name and read that file."""
    head, _, content = part.url.partition(",")
    if not head.startswith("data:") or not head.endswith(";base64"):
        raise ModelRequestError("Ollama takes an image by content only: give a data: URL in base64")
    return content
