"""Shared by adapters: a provider's address and credentials, and the mapping of its client's exceptions to Playhead's errors.

The HTTP status decides the error; without a status, a retry may succeed. The message says who failed, why, and what to do.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from copy import copy
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

from playhead.errors import (
    MissingApiKeyError,
    MissingDependencyError,
    ModelError,
    ModelRequestError,
    ModelUnavailableError,
    PlayheadError,
    RateLimitError,
    UnknownModelError,
)
from playhead.kernel.describe import redact_error
from playhead.kernel.models.base import ToolFormat, checked_tool_format
from playhead.trace.parameters import unrecorded_values
from playhead.trace.redaction import Redactor, looks_secret
from playhead.trace.types import Usage
from playhead.trace.values import scrub

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping

    from playhead.trace.types import Request


LONGEST: Final = 300
"""Characters of a provider's message that are kept, because some send whole pages."""
MOST_CAUSES: Final = 20
"""The number of chained errors that are examined."""
_BY_STATUS: Final = {401: MissingApiKeyError, 404: UnknownModelError, 408: ModelUnavailableError, 429: RateLimitError}
"""The errors of 4xx statuses; any other 4xx would fail again, and any other status, such as 503, may be temporary."""
_UNREACHABLE: Final = frozenset({"ClientConnectorError", "ConnectionRefusedError", "InvalidURL", "gaierror"})
"""Names of exception classes which mean that no server was reached and nothing was sent."""
_NO_KEY: Final = re.compile(
    r"missing [\w ]{0,20}(api.?key|credentials)|unable to locate credentials|api.?key (not valid|not found|is missing)",
    re.IGNORECASE,
)
_NO_PACKAGE: Final = "No module named "
_NO_PROVIDER: Final = "LLM Provider NOT provided"
"""Beginnings of messages that litellm only classifies as "internal server error" or "bad request"."""
_BEFORE: Final = re.compile(r"((litellm\.)?\w*(Error|Exception|Timeout)( \w*Error)? ?[:-] )*")
_AFTER: Final = re.compile(
    r" ?(Traceback \(most recent call|Received Messages=|Give Feedback|\. Handle with `litellm|LiteLLM Retried"
    r"|To drop these, set|\(status code: \d+\)$).*"
)
"""Class names before a provider's own message, and advice, traces and prompts after it."""
IN_ADDRESS: Final = "address of "
"""Prefix of the names of secrets in an address."""
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
"""Names of providers in environment variables, where litellm uses another name."""


class Adapter(ABC):
    """A model behind a client; nothing is sent or imported before the first request."""

    usual_address: str
    """The usual address, in the words of errors."""

    def __init__(self, name: str, *, api_base: str | None = None, tool_format: ToolFormat = "native") -> None:
        """Describe a model; nothing is sent or imported before the first request.

        Args:
            name: `provider/model`.
            api_base: the server's address, if it is neither the usual one nor set in the environment.
            tool_format: `native`, or `text` for models without native calls: tools and calls are part of the prompt.
        """
        self.tool_format = checked_tool_format(tool_format)
        self._name = name
        self._provider = provider_of(name)
        self._api_base = api_base
        self._api_key: str | None = None

    @property
    def name(self) -> str:
        """Return `provider/model`."""
        return self._name

    @property
    def secrets(self) -> Mapping[str, str]:
        """Return every secret that a request to the provider may carry, by name.

        These are the given key, the environment's keys and tokens for the provider, and the parts of addresses other than host
        and path. They are only used for redaction, so including too many is harmless.
        """
        found = _environment(self._provider, _SECRET_ENDINGS)
        if self._api_key:
            found["api_key"] = self._api_key
        addresses = {"api_base": self._api_base or "", **_environment(self._provider, _ADDRESS_ENDINGS)}
        for name, url in addresses.items():
            found |= _in_address(name, url)
        return found

    @property
    def address(self) -> str | None:
        """Return the provider's address without credentials; None for its usual address."""
        return public_address(base) if (base := self._base()) else None

    def beside(self, name: str) -> Adapter:
        """Return another model of the same provider, at the same address and with the same key."""
        other = copy(self)
        other._name = name  # noqa: SLF001 - of the same class
        return other

    def _base(self) -> str | None:
        return self._api_base or next(iter(_environment(self._provider, ("BASE", "BASE_URL", "HOST")).values()), None)

    @abstractmethod
    def _advice(self, kind: type[PlayheadError]) -> str:
        """Return how to fix a missing key, an unknown model or a server that does not answer."""

    @contextmanager
    def _as_ours(self, request: Request | None = None) -> Iterator[None]:
        """Raise the client's exceptions as our own errors, without secrets, including those in request parameters."""
        try:
            yield
        except PlayheadError:
            raise
        except Exception as error:  # noqa: BLE001 - every exception becomes one of our errors
            redactor = Redactor()
            for name, secret in self.secrets.items():
                redactor.add_secret(secret, name)
            redactor.add_parameters({} if request is None else request.parameters)
            ours = self._as_error(error, _own_words(redactor.redact_error(scrub(str(error) or type(error).__name__))))
            ours.__cause__ = error
            redact_error(ours, redactor, of_provider=True)
            raise ours from ours.__cause__

    def _as_error(self, error: Exception, reason: str) -> PlayheadError:
        name, address = self._name, self.address or self.usual_address
        kind, causes = _kind(error, reason), list(islice(_causes(error), MOST_CAUSES))
        names = {type(each).__name__ for each in causes}
        is_unreachable = bool(names & _UNREACHABLE) and not any("Timeout" in each for each in names)
        keys = " or ".join(each for each in self.secrets if not each.startswith(IN_ADDRESS))
        if is_unreachable and kind is ModelUnavailableError:
            message = f"no server answers at {address} ({name}). {self._advice(kind)}"
        elif kind is MissingApiKeyError and not keys:
            message = f"no API key for {name}: {self._advice(kind)}"
        elif kind is MissingApiKeyError:
            message = f"{address} does not accept the key for {name}, from {keys}: {reason}"
        elif kind is UnknownModelError:
            message = f"{address} does not know the model {name!r} ({reason}).{self._advice(kind)}"
        elif kind is MissingDependencyError:
            message = f"{name} needs a package that is not installed: {reason}"
        else:
            done = "failed" if kind is ModelUnavailableError else "refused the request"
            message = f"{address} {done} ({name}): {reason}"
        ours = kind(message)
        if isinstance(ours, ModelError):
            ours.retry_after_s = _retry_after_s(causes)
            if is_unreachable:
                spent(ours, Usage())
        return ours

    async def _next(self, parts: AsyncGenerator[Any], request: Request) -> Any:  # noqa: ANN401 - the client's
        """Return the next part of a streamed answer; None at its end."""
        with self._as_ours(request):
            return await anext(parts, None)


def spent(error: ModelError, usage: Usage, cost_usd: float | None = None) -> ModelError:
    """Return the error with the tokens and cost that the attempt has spent; without them they are unknown."""
    known = {"usage": usage, "cost_usd": cost_usd if usage.total_tokens else 0.0}
    vars(error).update(known)
    return error


def _kind(error: Exception, reason: str) -> type[PlayheadError]:
    if _NO_KEY.match(reason):
        return MissingApiKeyError
    if reason.startswith(_NO_PACKAGE) or isinstance(error, ImportError):
        return MissingDependencyError
    if reason.startswith(_NO_PROVIDER):
        return UnknownModelError
    status: Any = getattr(error, "status_code", None) or getattr(getattr(error, "response", None), "status_code", None)
    if status not in range(400, 500):
        return ModelUnavailableError
    return _BY_STATUS.get(status, ModelRequestError)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _retry_after_s(causes: list[BaseException]) -> float | None:
    """Return the seconds that the provider asks to wait, from its headers `retry-after-ms` or `retry-after`."""
    for cause in causes:
        given = getattr(getattr(cause, "response", None), "headers", None) or {}
        headers = {str(name).lower(): value for name, value in given.items()}
        for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
            with suppress(KeyError, ValueError, TypeError):
                if 0 <= (seconds := float(headers[name]) / unit) < inf:
                    return seconds
    return None


def _own_words(text: str) -> str:
    """Return the provider's own message: one line, no class names, no prompt, at most `LONGEST` characters."""
    text = _BEFORE.sub("", _AFTER.sub("", " ".join(text.split())), count=1)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def provider_of(model: str) -> str:
    """Return the provider of `provider/model`."""
    return model.partition("/")[0]


def key_variable(provider: str) -> str:
    """Return the usual environment variable for a provider's key, such as `OPENAI_API_KEY`."""
    return re.sub(r"\W", "_", provider).upper() + "_API_KEY"


def public_address(url: str) -> str:
    """Return the address without user info, query and fragment, so that it may be shown."""
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
    # litellm's name is together_ai; the environment has TOGETHERAI_API_KEY and TOGETHER_AI_TOKEN.
    return re.sub(r"[\W_]", "", name).lower()


def _in_address(name: str, url: str) -> dict[str, str]:
    """Return the password (or the lone user name, which is then a token) and the query of an address, raw and decoded."""
    parts = _split(url)
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    found = {"password": password or user, **dict(unrecorded_values(dict(parse_qsl(parts.query))))}
    if password and looks_secret(user):
        found["user"] = user
    found |= {f"{what} decoded": unquote(value) for what, value in found.items()}
    return {f"{IN_ADDRESS}{name}: {what}": value for what, value in found.items() if value}
