"""Models and their providers in the words of OpenInference, by which backends look prices up."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from openinference.instrumentation import infer_llm_provider_from_host, infer_llm_system_from_model_name
from openinference.semconv.trace import OpenInferenceLLMProviderValues as Provider
from openinference.semconv.trace import SpanAttributes

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

_PROVIDERS: Final[dict[str, str]] = {
    **{each.value: each.value for each in Provider},
    "bedrock": Provider.AWS.value,
    "azure_ai": Provider.AZURE.value,
    "cohere_chat": Provider.COHERE.value,
    "fireworks_ai": Provider.FIREWORKS.value,
    "gemini": Provider.GOOGLE.value,
    "mistral": Provider.MISTRALAI.value,
    "ollama_chat": Provider.OLLAMA.value,
    "sagemaker": Provider.AWS.value,
    "together_ai": Provider.TOGETHER.value,
    "vertex_ai": Provider.GOOGLE.value,
}
"""What litellm calls a provider, and what OpenInference does, where these differ."""


@lru_cache(maxsize=256)
def provider_of(model: str, address: str | None = None) -> str:
    """Return the provider of a `provider/model`: the one at the address, when that is a known one's."""
    host = _host(address)
    found = infer_llm_provider_from_host(host) if host else None
    prefix = model.partition("/")[0] if "/" in model else ""
    return found.value if found else _PROVIDERS.get(prefix, prefix)


@lru_cache(maxsize=256)
def model_attributes(model: str, address: str | None = None) -> dict[str, AttributeValue]:
    """Return the attributes that say which model was asked; not to be changed."""
    name = model.partition("/")[2] or model
    provider = provider_of(model, address)
    system = infer_llm_system_from_model_name(name.rpartition("/")[2])
    attributes: dict[str, AttributeValue] = {SpanAttributes.LLM_MODEL_NAME: name}
    if provider:
        attributes[SpanAttributes.LLM_PROVIDER] = provider
    if system or provider:
        attributes[SpanAttributes.LLM_SYSTEM] = system.value if system else provider
    return attributes


def _host(address: str | None) -> str | None:
    try:
        return urlsplit(address).hostname if address else None
    except ValueError:
        return None
