"""Request parameters as a user gives them: what must not be among them, and what in them nobody may record."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from playhead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.trace.values import JsonValue

NOT_PARAMETERS: Final = frozenset(
    {
        "api_base",
        "api_key",
        "base_url",
        "context_window_fallback_dict",
        "fallbacks",
        "max_retries",
        "messages",
        "model",
        "n",
        "num_retries",
        "stream",
        "tools",
    }
)
"""What would change who answers, how often, or what is asked behind the recording's back."""

_SECRET_NAME: Final = re.compile(r"authorization|api[-_]?key|secret|password|access[-_]?token", re.IGNORECASE)
_SCHEME: Final = re.compile(r"(?:Bearer|Basic|Token)\s+", re.IGNORECASE)


def check_parameters(parameters: Mapping[str, JsonValue]) -> None:
    """Refuse, before anything is recorded, what is not a request's to set.

    Raises:
        UsageError: such a parameter is given; the message says where it belongs.
    """
    reserved = sorted(NOT_PARAMETERS & parameters.keys())
    if reserved:
        raise UsageError(
            f"{', '.join(reserved)}: no request parameter. The key and the address are arguments of Agent "
            "(api_key=, api_base=) or environment variables; the rest is the agent's to decide"
        )


def secrets_in(value: JsonValue, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield name and value of every text that is a secret by its name, such as an `Authorization` header."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from secrets_in(item, key if _SECRET_NAME.search(key) else name)
    elif isinstance(value, list):
        for item in value:
            yield from secrets_in(item, name)
    elif isinstance(value, str) and name:
        yield name, value
        yield name, _SCHEME.sub("", value)
