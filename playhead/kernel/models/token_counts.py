"""How many tokens a prompt has, counted by the server that will get it: llama.cpp's and vLLM's can be asked.

Both have the endpoints beside the OpenAI-compatible ones, under the same address without `/v1`. Nobody else is asked.
"""

from __future__ import annotations

import logging
from contextlib import suppress
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
"""Seconds for which a server that did not count is not asked again."""
COUNTED: Final = ("messages", "tools", "tool_choice", "parallel_tool_calls", "response_format", "chat_template_kwargs")
"""What of a request may show in its prompt."""


class ServerCounter:
    """Asks a server for counts; after one that did not come, not for a minute."""

    def __init__(self) -> None:
        self._not_before = 0.0

    async def count(self, address: str, key: str | None, arguments: Mapping[str, Any]) -> int | None:
        """Return the tokens of the prompt of a chat completion with these arguments; None when that is not known.

        Args:
            address: the address of the OpenAI-compatible endpoints.
            key: the key that the server gets with every request, if it wants one.
            arguments: those of the completion, in OpenAI's form.
        """
        counted = None
        if monotonic() >= self._not_before:
            with suppress(Exception), anyio.move_on_after(TIMEOUT_S):
                counted = await _count_on_server(address, key, arguments)
            if counted is None:
                self._not_before = monotonic() + PAUSE_S
                model, seconds = arguments["model"], f"{PAUSE_S:g} seconds"
                log.warning(
                    "%s does not count tokens: prompts of %s are estimated for %s",
                    public_address(address),
                    model,
                    seconds,
                )
        return counted


async def _count_on_server(address: str, key: str | None, arguments: Mapping[str, Any]) -> int | None:
    import httpx  # noqa: PLC0415 - takes long, and litellm has it loaded where this is used

    root = address.rstrip("/").removesuffix("/v1")
    body = {name: arguments[name] for name in COUNTED if name in arguments}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(base_url=root, timeout=None, headers=headers, trust_env=False) as client:  # noqa: S113 - all requests have one limit
        prompt = await _field(client, "/apply-template", body, "prompt")
        if isinstance(prompt, str):  # llama.cpp
            text = {"content": prompt, "add_special": True, "parse_special": True}
            tokens = await _field(client, "/tokenize", text, "tokens")
            return (len(tokens) or None) if isinstance(tokens, list) else None
        model = str(arguments["model"]).partition("/")[2]
        counted = await _field(client, "/tokenize", {"model": model, "add_generation_prompt": True, **body}, "count")
        return counted if type(counted) is int and counted > 0 else None


async def _field(client: AsyncClient, path: str, body: dict[str, Any], name: str) -> Any:  # noqa: ANN401 - of JSON
    """Return what a server answers under this name; None when it does not."""
    response = await client.post(path, json=body)
    answer = response.json() if response.is_success else None
    return answer.get(name) if isinstance(answer, dict) else None
