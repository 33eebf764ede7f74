"""Request parameters as a user gives them, and what must not be among them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from playhead.errors import UsageError, nearest, nearest_name
from playhead.trace import parameters as recorded
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from playhead.trace.values import JsonValue

NOT_PARAMETERS: Final = frozenset(
    """
    api_base api_key base_url context_window_fallback_dict fallbacks max_retries messages model n num_retries stream tools
    """.split()  # noqa: SIM905 - a list of words reads better as words
)
"""What would change who answers, how often, or what is asked behind the recording's back."""

_KNOWN: Final = recorded.KNOWN | recorded.TEXTS | recorded.CONTAINERS
_LIKE_A_KNOWN_ONE: Final = frozenset({"cache", "model_config", "prompt_id", "stream_response", "verbose"})
"""Names that litellm takes, and that look like a slip in one of the known."""
_NEAR: Final = 0.75
"""Similarity from which an unknown name is taken for a slip."""


def checked_parameters(
    parameters: Mapping[str, JsonValue], accepted: Collection[str] | None = None
) -> dict[str, JsonValue]:
    """Return request parameters as JSON; refuse what is not a request's to set, and what is a slip in a known name.

    `accepted` are all names that the model takes, when it says so (`known_parameters`). Else an unknown name that is like
    none of the known goes to the provider, as litellm sends it: every provider has some of its own.

    Raises:
        UsageError: such a parameter is given; the message says where it belongs, or the nearest name. Or one is of a
            recording, which does not hold its value.
    """
    if not isinstance(parameters, Mapping) or not all(isinstance(name, str) for name in parameters):
        raise UsageError(f"parameters must be a dict by name; it is {type(parameters).__name__}")
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
    missing = [path for path, _ in recorded.unrecorded(parameters)]
    if missing:
        raise UsageError(f"{', '.join(missing)}: a recording says that it was there, not what it was; give its value")
    checked: dict[str, JsonValue] = to_json(parameters)
    return checked


def _meant(name: str) -> str | None:
    """Return the known name that is meant by a name, or None when it is like none of them."""
    known = _KNOWN | NOT_PARAMETERS
    if name in known or name in _LIKE_A_KNOWN_ONE:
        return name
    return nearest_name(name.replace("-", "_").lower(), known, _NEAR)
