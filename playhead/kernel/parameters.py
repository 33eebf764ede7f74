"""Request parameters as a user gives them: what must not be among them, and what in them nobody may record."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from playhead.errors import SHORTEST_BEGINNING, UsageError, nearest
from playhead.trace import parameters as recorded

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

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

_KNOWN: Final = recorded.KNOWN | recorded.TEXTS | recorded.CONTAINERS
_LIKE_A_KNOWN_ONE: Final = frozenset({"cache", "model_config", "prompt_id", "stream_response", "verbose"})
"""Names that litellm takes, and that look like a slip in one of the known."""
_NEAR: Final = 0.75
"""Similarity from which an unknown name is taken for a slip."""

_SECRET_NAME: Final = re.compile(r"authorization|api[-_]?key|secret|password|access[-_]?token", re.IGNORECASE)
_SCHEME: Final = re.compile(r"(?:Bearer|Basic|Token)\s+", re.IGNORECASE)


def check_parameters(parameters: Mapping[str, JsonValue], accepted: Collection[str] | None = None) -> None:
    """Refuse, before anything is recorded, what is not a request's to set, and what is a slip in a known name.

    `accepted` are all names that the model takes, when it says so (`known_parameters`). Else an unknown name that is like
    none of the known goes to the provider, as litellm sends it: every provider has some of its own.

    Raises:
        UsageError: such a parameter is given; the message says where it belongs, or the nearest name.
    """
    meant = {name: _meant(name) for name in parameters}
    reserved = sorted(name for name, known in meant.items() if known in NOT_PARAMETERS)
    if reserved:
        raise UsageError(
            f"{', '.join(reserved)}: no request parameter. The key and the address are arguments of Agent "
            "(api_key=, api_base=) or environment variables; the rest is the agent's to decide"
        )
    for name, known in meant.items():
        if accepted is not None and name not in accepted:
            raise UsageError(f"this model has no request parameter {name!r}.{nearest(name, accepted)}")
        if accepted is None and known not in (None, name):
            raise UsageError(
                f"there is no request parameter {name!r}. Did you mean {known!r}? One that has this very name goes into "
                f"extra_body={{{name!r}: …}}"
            )


def _meant(name: str) -> str | None:
    """Return the known name that is meant by a name, or None when it is like none of them."""
    known = _KNOWN | NOT_PARAMETERS
    if name in known or name in _LIKE_A_KNOWN_ONE:
        return name
    folded = name.replace("-", "_").lower()
    begun = [each for each in known if len(name) >= SHORTEST_BEGINNING and each.startswith(folded)]
    close = get_close_matches(folded, sorted(known), n=1, cutoff=_NEAR)
    return begun[0] if len(begun) == 1 else close[0] if close else None


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
