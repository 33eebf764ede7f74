"""How many tokens a prompt has, counted by the server that will get it: llama.cpp's and vLLM's can be asked.

Both have the endpoints beside the OpenAI-compatible ones, under the same address without `/v1`. Nobody else is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from httpx import AsyncClient

TIMEOUT_S: Final = 10.0
"""Seconds that a count may take."""
COUNTED: Final = ("messages", "tools", "tool_choice", "parallel_tool_calls", "response_format", "chat_template_kwargs")
"""What of a request may show in its prompt."""


async def count_on_server(address: str, key: str | None, arguments: Mapping[str, Any]) -> int | None:
    """Return the tokens of the prompt of a chat completion with these arguments; None when the server cannot tell.

    Args:
        address: the address of the OpenAI-compatible endpoints.
        key: the key that the server gets with every request, if it wants one.
        arguments: those of the completion, in OpenAI's form.

    Raises:
        httpx.HTTPError: nobody answered.
    """
    import httpx  # noqa: PLC0415 - takes long, and litellm has it loaded where this is used

    root = address.rstrip("/").removesuffix("/v1")
    body = {name: arguments[name] for name in COUNTED if name in arguments}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(base_url=root, timeout=TIMEOUT_S, headers=headers, trust_env=False) as client:
        return await _llama_cpp(client, body) or await _vllm(client, body, str(arguments["model"]))


async def _llama_cpp(client: AsyncClient, body: dict[str, Any]) -> int | None:
    prompt = _field(await client.post("/apply-template", json=body), "prompt")
    if not isinstance(prompt, str):
        return None
    asked = {"content": prompt, "add_special": True, "parse_special": True}
    tokens = _field(await client.post("/tokenize", json=asked), "tokens")
    return len(tokens) if isinstance(tokens, list) else None


async def _vllm(client: AsyncClient, body: dict[str, Any], model: str) -> int | None:
    asked = {"model": model.partition("/")[2], "add_generation_prompt": True, **body}
    counted = _field(await client.post("/tokenize", json=asked), "count")
    return counted if type(counted) is int and counted > 0 else None


def _field(response: Any, name: str) -> Any:  # noqa: ANN401 - a response of httpx, and JSON
    try:
        answer = response.json() if response.is_success else None
    except ValueError:  # something else answers there
        return None
    return answer.get(name) if isinstance(answer, dict) else None
