"""How many tokens a prompt has, counted by the server that will get it: llama.cpp's and vLLM's can be asked.

Both have the endpoints beside the OpenAI-compatible ones, under the same address without `/v1`. Nobody else is asked.
"""

from __future__ import annotations

import logging
import math
from enum import Enum, auto
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import anyio

from playhead.kernel.models.credentials import public_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from httpx import AsyncClient

log = logging.getLogger("playhead")

TIMEOUT_S: Final = 10.0
"""Seconds that a count may take, with all its requests."""
PAUSE_S: Final = 60.0
"""Seconds for which a server that took longer is not asked again."""
_ABSENT: Final = frozenset({404, 405, 501})
"""Statuses by which a server says that it has no such endpoint."""
COUNTED: Final = ("messages", "tools", "tool_choice", "parallel_tool_calls", "response_format", "chat_template_kwargs")
"""What of a request may show in its prompt."""


class _No(Enum):
    """Why there is no count."""

    ENDPOINT = auto()
    """The server has none for this, or another one of that name."""
    COUNT = auto()
    """It could not tell this time."""


class ServerCounter:
    """Asks a server for counts, for as long as it can tell."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._not_before = 0.0
        self._said = False

    async def count(self, address: str, key: str | None, arguments: Mapping[str, Any]) -> int | None:
        """Return the tokens of the prompt of a chat completion with these arguments; None when that is not known.

        A server without such an endpoint is never asked again; one that does not answer in time, not for a minute.

        Args:
            address: the address of the OpenAI-compatible endpoints.
            key: the key that the server gets with every request, if it wants one.
            arguments: those of the completion, in OpenAI's form.
        """
        if monotonic() < self._not_before:
            return None
        try:
            with anyio.fail_after(TIMEOUT_S):
                counted = await _count_on_server(address, key, arguments)
        except TimeoutError:
            self._pause(PAUSE_S, f"{public_address(address)} did not count tokens within {TIMEOUT_S:g} s")
            return None
        except Exception:  # noqa: BLE001 - nobody is there now: the request itself will say so
            return None
        if counted is _No.ENDPOINT:
            self._pause(math.inf, f"{public_address(address)} does not count tokens")
        return counted if isinstance(counted, int) else None

    def _pause(self, seconds: float, why: str) -> None:
        """Do not ask for so long; the first time, say so."""
        self._not_before = monotonic() + seconds
        if not self._said:
            self._said = True
            until = "from now on" if seconds == math.inf else f"for the next {seconds:g} s"
            log.warning("%s: prompts of %s are estimated %s", why, self._model, until)


async def _count_on_server(address: str, key: str | None, arguments: Mapping[str, Any]) -> int | _No:
    import httpx  # noqa: PLC0415 - takes long, and litellm has it loaded where this is used

    root = address.rstrip("/").removesuffix("/v1")
    body = {name: arguments[name] for name in COUNTED if name in arguments}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(base_url=root, timeout=None, headers=headers, trust_env=False) as client:  # noqa: S113 - all requests have one limit
        counted = await _llama_cpp(client, body)
        return await _vllm(client, body, str(arguments["model"])) if counted is _No.ENDPOINT else counted


async def _llama_cpp(client: AsyncClient, body: dict[str, Any]) -> int | _No:
    prompt = await _field(client, "/apply-template", body, "prompt")
    if isinstance(prompt, _No):
        return prompt
    if not isinstance(prompt, str):
        return _No.ENDPOINT
    tokens = await _field(
        client, "/tokenize", {"content": prompt, "add_special": True, "parse_special": True}, "tokens"
    )
    if isinstance(tokens, _No):
        return tokens
    return (len(tokens) or _No.COUNT) if isinstance(tokens, list) else _No.ENDPOINT


async def _vllm(client: AsyncClient, body: dict[str, Any], model: str) -> int | _No:
    asked = {"model": model.partition("/")[2], "add_generation_prompt": True, **body}
    counted = await _field(client, "/tokenize", asked, "count")
    if isinstance(counted, _No):
        return counted
    return counted if type(counted) is int and counted > 0 else _No.ENDPOINT


async def _field(client: AsyncClient, path: str, body: dict[str, Any], name: str) -> Any:  # noqa: ANN401 - of JSON
    """Return what a server answers under this name."""
    response = await client.post(path, json=body)
    if not response.is_success:
        return _No.ENDPOINT if response.status_code in _ABSENT else _No.COUNT
    try:
        answer = response.json()
    except ValueError:  # something else answers there
        return _No.ENDPOINT
    return answer.get(name, _No.ENDPOINT) if isinstance(answer, dict) else _No.ENDPOINT
