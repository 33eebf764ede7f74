"""Model adapters, each imported when the first model of its kind is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import UnknownModelError

if TYPE_CHECKING:
    from playhead.kernel.models.base import Model, ToolFormat


def resolve_model(
    name: str, *, api_base: str | None = None, api_key: str | None = None, tool_format: ToolFormat = "native"
) -> Model:
    """Return the adapter for `provider/model`; nothing is sent and no provider package is imported yet.

    `ollama/…` goes through Ollama's own client, everything else through litellm.

    Raises:
        UnknownModelError: the string has no provider.
    """
    provider, slash, rest = name.partition("/")
    if not slash or not provider or not rest:
        raise UnknownModelError(
            f"{name!r} names no provider; write provider/model, such as 'openai/{name or 'gpt-4o-mini'}'"
        )
    if provider == "ollama":
        from playhead.kernel.models.ollama import Ollama  # noqa: PLC0415 - only for this provider

        return Ollama(name, api_base=api_base, tool_format=tool_format)
    from playhead.kernel.models.litellm import LiteLLM  # noqa: PLC0415 - for all the others

    return LiteLLM(name, api_base=api_base, api_key=api_key, tool_format=tool_format)
