"""What an adapter sends but nobody may record or print: keys, tokens, and passwords inside addresses."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

from playhead.trace.parameters import unrecorded_values
from playhead.trace.redaction import looks_secret

if TYPE_CHECKING:
    from collections.abc import Mapping

IN_ADDRESS: Final = "address of "
"""How the names of secrets begin that stand in an address."""
_SECRET_ENDINGS: Final = ("KEY", "KEY_ID", "TOKEN", "SECRET", "PASSWORD", "CREDENTIALS")
_ADDRESS_ENDINGS: Final = ("BASE", "URL", "HOST", "ENDPOINT")
_OTHER_PREFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "bedrock": ("aws",),
    "bedrock_converse": ("aws",),
    "cohere": ("coapi",),
    "cohere_chat": ("cohere", "coapi"),
    "fireworks_ai": ("fireworks",),
    "gemini": ("google",),
    "github_copilot": ("github",),
    "huggingface": ("hf",),
    "meta_llama": ("llama",),
    "sagemaker": ("aws",),
    "sagemaker_chat": ("aws",),
    "text-completion-openai": ("openai",),
    "vertex_ai": ("google",),
    "volcengine": ("arkapi",),
}
"""What the environment calls a provider that litellm calls otherwise."""


def provider_of(model: str) -> str:
    """Return the provider of `provider/model`."""
    return model.partition("/")[0]


def key_variable(provider: str) -> str:
    """Return the environment variable that a provider's key is in by custom: `OPENAI_API_KEY`."""
    return re.sub(r"\W", "_", provider).upper() + "_API_KEY"


def secrets_of(provider: str, *, api_key: str | None = None, address: str | None = None) -> dict[str, str]:
    """Return every secret that a request to this provider may carry, by name.

    That is the given key, the environment's keys and tokens for the provider, and what addresses hold beside host and
    path. Too many is fine, for all they are used for is redaction; too few is not.
    """
    found = _environment(provider, _SECRET_ENDINGS)
    if api_key:
        found["api_key"] = api_key
    for name, url in {"api_base": address, **_environment(provider, _ADDRESS_ENDINGS)}.items():
        found |= _in_address(name, url)
    return found


def base_in_environment(provider: str) -> str | None:
    """Return the address that the environment names for the provider, as in `OPENAI_BASE_URL`."""
    return next(iter(_environment(provider, ("BASE", "BASE_URL", "HOST")).values()), None)


def public_address(url: str) -> str:
    """Return the address as it may be shown: without user info, query and fragment."""
    parts = _split(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")).removeprefix("//")


def _environment(provider: str, endings: tuple[str, ...]) -> dict[str, str]:
    prefixes = tuple(_squash(name) for name in (provider, *_OTHER_PREFIXES.get(provider, ())))
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if value and name.upper().endswith(endings) and _squash(name).startswith(prefixes)
    }


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url if "//" in url else f"//{url}")  # OLLAMA_HOST is often a bare host and port
    except ValueError:  # such as half of an IPv6 address
        return SplitResult("", "", "an address that cannot be read", "", "")


def _squash(name: str) -> str:
    # litellm says together_ai where the environment says TOGETHERAI_API_KEY and TOGETHER_AI_TOKEN.
    return re.sub(r"[\W_]", "", name).lower()


def _in_address(name: str, url: str | None) -> dict[str, str]:
    """Return the password (or the lone user name, which is then a token) and the query of an address, raw and decoded."""
    parts = _split(url or "")
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    found = {"password": password or user, **dict(unrecorded_values(dict(parse_qsl(parts.query))))}
    if password and looks_secret(user):
        found["user"] = user
    found |= {f"{what} decoded": unquote(value) for what, value in found.items()}
    return {f"{IN_ADDRESS}{name}: {what}": value for what, value in found.items() if value}
