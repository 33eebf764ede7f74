"""All hosted providers, and every OpenAI-compatible server, through litellm.

litellm takes seconds to import, uses the network on import unless configured otherwise, and keeps clients and tasks beyond
their event loop. The code below handles each of these where it is commented.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import anyio
from anyio import to_thread

from playhead.errors import (
    MissingApiKeyError,
    MissingDependencyError,
    ModelUnavailableError,
    UnknownModelError,
    did_you_mean,
)
from playhead.kernel.models.adapter import Adapter, key_variable, provider_of
from playhead.kernel.models.base import TextPiece, ToolFormat
from playhead.kernel.models.openai_format import from_openai, text_of_chunk, to_openai
from playhead.trace.types import Prices

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from playhead.errors import PlayheadError
    from playhead.trace.types import Completion, Request

log = logging.getLogger("playhead")

COUNT_TIMEOUT_S: Final = 10.0
"""The time limit for counting a prompt in seconds, for all its requests together."""
COUNTED: Final = ("messages", "tools", "tool_choice", "parallel_tool_calls", "response_format", "chat_template_kwargs")
"""The parts of a request that may affect its prompt."""
LiteLLMObject = Any
"""The module, or an object from it, untyped because its types change with every release."""
_tended: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncGenerator[None]] = WeakKeyDictionary()


class LiteLLM(Adapter):
    """A model that litellm reaches: `openai/gpt-4o-mini`, `anthropic/…`, any OpenAI-compatible server by `api_base`.

    Request parameters that litellm does not know are sent to the provider unchanged; it knows `aws_region_name`, for example.
    """

    def __init__(
        self, name: str, *, api_base: str | None = None, api_key: str | None = None, tool_format: ToolFormat = "native"
    ) -> None:
        """Describe a model; nothing is sent or imported before the first request.

        Args:
            name: `provider/model`.
            api_base: the provider's address, if it is not the usual one.
            api_key: the provider's key, if it is not in the environment.
            tool_format: `native`, or `text` for models without native calls: tools and calls are part of the prompt.
        """
        super().__init__(name, api_base=api_base, tool_format=tool_format)
        self.usual_address = self._provider
        self._api_key = api_key
        self._server_counts = True
        """Whether the server may count tokens; False after it failed to."""

    async def complete(self, request: Request) -> Completion:
        """Answer one request.

        Raises:
            ModelUnavailableError: no server answered, or the server failed.
            RateLimitError: too many requests for now.
            ModelRequestError: the provider refuses this request.
            MissingApiKeyError: there is no key, or the provider rejects it.
            UnknownModelError: no such provider, or no such model there.
            MissingDependencyError: litellm, or a package it needs for this, is not installed.
        """
        litellm = await _load()
        with self._as_ours(request):
            response = await self._ask(litellm, request)
        return from_openai(response, _cost(litellm, response, request.model))

    async def stream(self, request: Request) -> AsyncGenerator[TextPiece | Completion]:
        """Answer one request piece by piece; raises like `complete`.

        If a server reports no usage in a stream, litellm counts the tokens, possibly with a different result.
        """
        litellm = await _load()
        with self._as_ours(request):
            response = await self._ask(litellm, request, stream=True, stream_options={"include_usage": True})
        names: list[str] = []
        async with aclosing(_chunks(response, names)) as chunks:
            kept = []
            while True:
                with _without_bookkeeping(litellm):
                    chunk = await self._next(chunks, request)
                if chunk is None:
                    break
                kept.append(chunk)
                if text := text_of_chunk(chunk):
                    yield TextPiece(text)
        if response.received_finish_reason is None:  # litellm reports "stop" even if the connection was cut
            raise ModelUnavailableError(f"{self.address or self.usual_address} broke off in the middle of its answer")
        whole = litellm.stream_chunk_builder(kept)
        completion = from_openai(whole, _cost(litellm, whole, request.model))
        yield replace(completion, model=names[0]) if names else completion

    async def count_tokens(self, request: Request) -> int | None:
        """Return a prompt's tokens as counted by a self-hosted server (llama.cpp, vLLM); None for any other.

        Both have these endpoints at the same address without `/v1`, next to the OpenAI-compatible ones. A server that failed
        to count is not asked again.
        """
        address, counted = self._base(), None
        if not address or not self._server_counts:
            return None
        key = self._api_key or os.environ.get(key_variable(self._provider))
        with suppress(Exception), anyio.move_on_after(COUNT_TIMEOUT_S):
            counted = await _counted(address, key, to_openai(request))
        if counted is None:
            self._server_counts = False
            log.warning("%s does not count tokens: prompts of %s are estimated", self.address, self._name)
        return counted

    async def _ask(self, litellm: LiteLLMObject, request: Request, **how: Any) -> LiteLLMObject:  # noqa: ANN401 - litellm's
        arguments = {**to_openai(request), **how}
        await _tend_loop(litellm)
        with _without_bookkeeping(litellm):
            return await litellm.acompletion(
                **arguments, api_base=self._api_base, api_key=self._api_key, num_retries=0, max_retries=0
            )

    async def check(self) -> None:
        """Raise the error that every request would fail with, as far as it can be known without a network.

        Raises:
            MissingApiKeyError: there is certainly no key.
            UnknownModelError: no such provider.
            MissingDependencyError: litellm is not installed.
        """
        litellm = await _load()
        known = {str(getattr(each, "value", each)) for each in litellm.provider_list}
        if self._provider not in known:  # for a known provider the lookup may log in
            with self._as_ours():
                litellm.get_llm_provider(self._name, api_base=self._api_base)
        given = self.secrets or self._base() or litellm.api_key or getattr(litellm, f"{self._provider}_key", None)
        missing = [] if given else _missing(litellm, self._name)
        if missing and all(name.endswith("_API_KEY") for name in missing):
            raise MissingApiKeyError(f"no API key for {self._name}: {self._advice(MissingApiKeyError)}")

    async def prices(self) -> Prices | None:
        """Return the token prices in litellm's own table, or None if the model is not in it.

        Raises:
            MissingDependencyError: litellm is not installed.
        """
        return _prices(await _load(), self._name)

    def _advice(self, kind: type[PlayheadError]) -> str:
        if kind is MissingApiKeyError:
            missing = [name for name in _missing(_litellm(), self._name) if "KEY" in name or "TOKEN" in name]
            variables = " or ".join(missing or [key_variable(self._provider)])
            return f"set {variables}, or pass api_key= to LiteLLM(…) (any text, if the server needs none)"
        if kind is UnknownModelError:
            by_provider = _litellm().models_by_provider.items()
            names = {f"{each}/{name.removeprefix(each + '/')}" for each, models in by_provider for name in models}
            return did_you_mean(self._name, names - {self._name})
        return "Is the server running?" if self._base() else "Is there a network?"


async def _counted(address: str, key: str | None, arguments: dict[str, Any]) -> int | None:
    """Return the tokens of a completion's prompt; llama.cpp renders and then counts it, vLLM does both in one request."""
    import httpx  # noqa: PLC0415 - litellm has loaded it by then

    body: dict[str, Any] = {name: arguments[name] for name in COUNTED if name in arguments}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    root = address.rstrip("/").removesuffix("/v1")
    async with httpx.AsyncClient(base_url=root, timeout=None, headers=headers, trust_env=False) as client:  # noqa: S113 - one limit covers all requests
        shown = await client.post("/apply-template", json=body)
        if shown.is_success:
            text = {"content": shown.json()["prompt"], "add_special": True, "parse_special": True}
            counted = len((await client.post("/tokenize", json=text)).json()["tokens"])
        else:
            vllm_body: dict[str, Any] = {
                "model": arguments["model"].partition("/")[2],
                "add_generation_prompt": True,
                **body,
            }
            counted = int((await client.post("/tokenize", json=vllm_body)).json()["count"])
    return counted or None


async def _chunks(response: LiteLLMObject, names: list[str]) -> AsyncGenerator[LiteLLMObject]:
    """Yield the parts of a streamed answer; release the connection when closed.

    litellm replaces the name of the answering model by the requested one; the original name is added to `names`.
    """
    line = getattr(response, "completion_stream", None)
    if hasattr(line, "__aiter__"):
        response.completion_stream = _named(line, names)
    try:
        async for chunk in response:
            yield chunk
    finally:
        await _close(line)


async def _named(line: LiteLLMObject, names: list[str]) -> AsyncGenerator[LiteLLMObject]:
    async for part in line:
        name = getattr(part, "model", None)
        if isinstance(name, str) and name:
            names.append(name)
        yield part


async def _load() -> LiteLLMObject:
    """Return litellm; the first import runs in a thread, because it would delay deadlines by seconds."""
    if _litellm.cache_info().currsize:
        return _litellm()
    return await to_thread.run_sync(_litellm, abandon_on_cancel=True)


@cache
def _litellm() -> LiteLLMObject:
    """Import litellm, offline and silent."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # otherwise it fetches the table of prices
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")  # otherwise it loads .env
    for logger in map(logging.getLogger, ("LiteLLM", "litellm")):  # the first one gets a handler that writes to stderr
        if "LITELLM_LOG" not in os.environ and logger.level == logging.NOTSET:
            logger.setLevel(logging.CRITICAL + 1)
    try:
        import litellm  # noqa: PLC0415 - takes seconds
    except ImportError as error:
        raise MissingDependencyError(f"this model needs litellm ({error}): pip install 'playhead[litellm]'") from error
    litellm.suppress_debug_info = True  # otherwise every error prints "Give Feedback"
    litellm.telemetry = False
    return litellm


async def _tend_loop(litellm: LiteLLMObject) -> None:
    """Make sure that litellm's clients of this event loop are closed when the loop ends."""
    loop = asyncio.get_running_loop()
    if loop not in _tended:
        suffix = litellm.in_memory_llm_clients_cache.update_cache_key_with_event_loop("")
        _tended[loop] = closing = _close_clients_at_the_end(litellm, suffix)
        await anext(closing)


async def _close_clients_at_the_end(litellm: LiteLLMObject, suffix: str) -> AsyncGenerator[None]:
    """Wait for the end, then close the clients whose keys in litellm's cache end like this: those of one event loop."""
    try:  # a loop that ends closes the generators that still wait in it (`shutdown_asyncgens`): the one hook that loops have
        yield
    finally:
        clients = litellm.in_memory_llm_clients_cache
        for key in [key for key in clients.cache_dict if key.endswith(suffix)]:
            client = clients.cache_dict.get(key)
            clients.delete_cache(key)
            await _close(client)


async def _close(client: LiteLLMObject) -> None:
    close: Any = getattr(client, "aclose", None) or getattr(client, "close", None)
    with suppress(Exception):  # a client that cannot be closed counts as closed
        await close()


@contextmanager
def _without_bookkeeping(litellm: LiteLLMObject) -> Iterator[None]:
    """Keep litellm from queueing a logging coroutine per call, unless the user's callbacks need them.

    A worker task of one event loop runs them for all loops, so they pile up, warn of changed loops, and are never awaited.
    """
    names = ("callbacks", "success_callback", "failure_callback")
    wanted = any(getattr(litellm, f"{a}{name}", None) for name in names for a in ("", "_async_"))
    internal = getattr(getattr(litellm, "_internal_context", None), "is_internal_call", None)  # this name may disappear
    if internal is None or wanted:
        yield
        return
    token = internal.set(True)
    try:
        yield
    finally:  # do not affect the user's own calls of litellm
        internal.reset(token)


def _cost(litellm: LiteLLMObject, response: LiteLLMObject, model: str) -> float | None:
    """Return the price of an answer, or None if it is unknown; only models that the table lists as free cost nothing."""
    try:
        cost = litellm.completion_cost(completion_response=response, model=model)
    except Exception:  # noqa: BLE001 - that is how it says that a model is not in its table
        return None
    return float(cost) if cost or _prices(litellm, model) else None


def _prices(litellm: LiteLLMObject, model: str) -> Prices | None:
    if provider_of(model) in {"ollama", "ollama_chat"}:
        return None  # litellm would query the server, and block
    try:
        entry = litellm.model_cost[litellm.get_model_info(model)["key"]]
        # Directly from the table, because `get_model_info` returns 0 for missing models.
        return Prices(
            input_usd=entry["input_cost_per_token"],
            output_usd=entry["output_cost_per_token"],
            cache_read_usd=entry.get("cache_read_input_token_cost"),
            cache_write_usd=entry.get("cache_creation_input_token_cost"),
        )
    except Exception:  # noqa: BLE001 - that is how it says that a model is not in its table
        return None


def _missing(litellm: LiteLLMObject, model: str) -> list[str]:
    with suppress(Exception):  # it knows only some providers
        return list(litellm.validate_environment(model)["missing_keys"])
    return []
