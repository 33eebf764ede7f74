"""What a provider's client raises, told in Playhead's errors.

The HTTP status says what an error means; without one the names of its class and bases do, so that reading it needs no
provider's package. The message says who failed, why, and what to do about it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

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
from playhead.kernel.models.credentials import IN_ADDRESS
from playhead.trace.redacted_errors import shows_secret
from playhead.trace.redaction import Redactor
from playhead.trace.usage import Usage
from playhead.trace.values import scrub

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.trace.values import JsonValue

LONGEST: Final = 300
"""Characters of a provider's message that are kept; some send whole pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Whom a request was for, as far as an error message has to say it."""

    model: str
    """`provider/model`."""
    address: str
    """Where the request went, fit to be shown, or the provider's name."""
    secrets: Mapping[str, str]
    """What no message may show."""
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    """Of the request: no message may show what of them is not recorded."""
    get_key: str
    """What to do when there is no key."""
    start: str = "Is the server running?"
    """What to do when nobody answers."""
    known: str = ""
    """What to do when nobody knows the model."""


_BY_STATUS: Final[Mapping[int, type[PlayheadError]]] = {
    HTTPStatus.UNAUTHORIZED: MissingApiKeyError,
    HTTPStatus.NOT_FOUND: UnknownModelError,
    HTTPStatus.REQUEST_TIMEOUT: ModelUnavailableError,
    HTTPStatus.TOO_MANY_REQUESTS: RateLimitError,
}
"""What a refusal means; any other one would be refused again, and what is none, such as 503, may pass."""
_MAY_PASS: Final = frozenset(
    {"ClientError", "HTTPError", "InvalidURL", "JSONDecodeError", "OSError", "OpenAIError", "StreamError"}
)
"""Classes of errors without a status that may pass: the connection, or half an answer."""

_NOBODY: Final = frozenset({"ConnectError", "ConnectionError", "ConnectionRefusedError", "InvalidURL", "gaierror"})
_TOO_LATE: Final = frozenset({"APITimeoutError", "Timeout", "TimeoutError", "TimeoutException"})
_NO_KEY: Final = re.compile(
    r"missing [\w ]{0,20}(api.?key|credentials)|unable to locate credentials|api.?key (not valid|not found|is missing)",
    re.IGNORECASE,
)
_NO_PACKAGE: Final = "No module named "
_NO_PROVIDER: Final = "LLM Provider NOT provided"
"""How messages begin for which litellm has no better class than "internal server error" or "bad request"."""

_CLASS_PREFIX: Final = re.compile(r"\s*(litellm\.)?\w*(Error|Exception|Timeout)( \w*Error)?\s*[:-]\s+")
_TAIL: Final = re.compile(
    r"\s*(\nTraceback |Received Messages=|Give Feedback|\. Handle with `litellm|LiteLLM Retried|To drop these, set"
    r"|\(status code: \d+\)$).*",
    re.DOTALL,
)


def playhead_error(error: Exception, target: Target) -> PlayheadError:
    """Return the error to raise for what a provider's client raised; none of the target's secrets is in it."""
    told = _told(error, target)
    if isinstance(told, (ModelUnavailableError, RateLimitError)):
        told.retry_after_s = retry_after_s(error)
        if _was_nobody(error):
            spent(told, Usage())
    return told


def spent(error: ModelError, usage: Usage, cost_usd: float | None = None) -> ModelError:
    """Return the error, which now says what the attempt has spent all the same; of one that does not, nobody knows."""
    known = {"usage": usage, "cost_usd": cost_usd if usage.total_tokens else 0.0}
    vars(error).update(known)
    return error


def retry_after_s(error: BaseException) -> float | None:
    """Return the seconds that the provider asks to wait, by its headers `retry-after-ms` or `retry-after`."""
    for cause in _causes(error):
        given = getattr(getattr(cause, "response", None), "headers", None) or {}
        headers = {str(name).lower(): str(value) for name, value in given.items()}
        thousandths, seconds = _number(headers.get("retry-after-ms")), _number(headers.get("retry-after"))
        if thousandths is not None or seconds is not None:
            return seconds if thousandths is None else thousandths / 1000
    return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < math.inf else None


def _told(error: Exception, target: Target) -> PlayheadError:
    redactor = _redactor(target)
    reason = clean_message(str(error), redactor)
    if reason.startswith(_NO_PROVIDER):
        return UnknownModelError(f"{target.model!r}: there is no such provider.{target.known}")
    kind = _kind(error, reason)
    if kind is ModelUnavailableError:
        return ModelUnavailableError(_unavailable(error, reason, target, redactor))
    if kind is MissingApiKeyError:
        return MissingApiKeyError(_missing_key(reason, target))
    if kind is UnknownModelError:
        return UnknownModelError(f"{target.model!r} is no model that {target.address} knows ({reason}).{target.known}")
    if kind is MissingDependencyError:
        advice = "see whether pip install 'playhead[litellm]' brings it"
        return MissingDependencyError(f"{target.model} needs a package that is not installed ({reason}); {advice}")
    return kind(f"{target.address} refused the request to {target.model}: {reason}")


def shown_cause(error: Exception, target: Target) -> Exception | None:
    """Return the cause to raise a Playhead error from: none if it, or what led to it, shows a secret.

    A traceback prints the causes too, and some servers repeat the key that they refuse.
    """
    redactor = _redactor(target)
    return None if any(shows_secret(cause, redactor) for cause in _causes(error)) else error


def _redactor(target: Target) -> Redactor:
    redactor = Redactor()
    for name, secret in target.secrets.items():
        redactor.add_secret(secret, name)
    redactor.add_parameters(target.parameters)
    return redactor


def clean_message(text: str, redactor: Redactor) -> str:
    """Return the provider's own words: one line, no class names, no prompt, no secret, at most `LONGEST` characters."""
    text = _TAIL.sub("", redactor.redact_error(scrub(text)))
    while (prefix := _CLASS_PREFIX.match(text)) is not None:
        text = text[prefix.end() :]
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what led to it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _kind(error: Exception, reason: str) -> type[PlayheadError]:
    if _NO_KEY.match(reason):
        return MissingApiKeyError
    if reason.startswith(_NO_PACKAGE) or isinstance(error, ImportError):
        return MissingDependencyError
    status = getattr(error, "status_code", None) or getattr(getattr(error, "response", None), "status_code", None)
    if not isinstance(status, int):
        names = {base.__name__ for base in type(error).__mro__}
        return ModelUnavailableError if names & _MAY_PASS else ModelRequestError
    is_refusal = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
    return _BY_STATUS.get(status, ModelRequestError) if is_refusal else ModelUnavailableError


def _unavailable(error: Exception, reason: str, target: Target, redactor: Redactor) -> str:
    chain = list(_causes(error))
    if _names(error) & _TOO_LATE:
        return f"{target.address} did not answer in time ({target.model})"
    if _was_nobody(error):
        return f"no server answers at {target.address} ({target.model}). {target.start}"
    if reason == "Connection error.":  # what openai's client calls everything that is no answer
        reason = clean_message(f"{type(chain[-1]).__name__}: {chain[-1]}", redactor)
    return f"{target.address} failed ({target.model}): {reason}"


def _names(error: Exception) -> set[str]:
    return {base.__name__ for cause in _causes(error) for base in type(cause).__mro__}


def _was_nobody(error: Exception) -> bool:
    """Return whether nothing was sent, for nobody was there."""
    return bool(_names(error) & _NOBODY) and not _names(error) & _TOO_LATE


def _missing_key(reason: str, target: Target) -> str:
    used = [name for name in target.secrets if not name.startswith(IN_ADDRESS)]
    if used:
        return f"{target.address} does not accept the key for {target.model}, from {' or '.join(used)}: {reason}"
    return f"no API key for {target.model}: {target.get_key}"
