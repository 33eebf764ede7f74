"""The output cap of a request: which parameters state it, how to lower it, and which parameters would bypass it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.trace.types import Request
    from playhead.trace.values import JsonValue

NAMES: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
"""The parameters that cap an answer, under the names that providers use."""
_SEVERAL: Final = frozenset({"n", "bestof", "numreturnsequences", "candidatecount"})
"""Names for the number of answers, without `_` and in lower case."""
_CAPS: Final = frozenset(
    {*(each.replace("_", "") for each in NAMES), "npredict", "maxnewtokens", "maxgenlen", "maxtokenstosample"}
)
"""Names for the longest answer, normalised in the same way."""
_WITHIN: Final = frozenset({"extra_body", "options"})
"""Parameters that are sent in the body of a request unchanged."""
_NOT_SEARCHED: Final = frozenset(
    {"format", "guided_json", "json_schema", "logit_bias", "properties", "response_format", "schema"}
)
"""Parameters that contain the user's own names, such as a JSON Schema."""


def output_cap(parameters: Mapping[str, JsonValue]) -> int | None:
    """Return the lowest cap that a request states, or None; 0 becomes 1, because some servers take 0 as no limit."""
    caps = [max(1, value) for name in NAMES if type(value := parameters.get(name)) is int and value >= 0]
    return min(caps, default=None)


def with_output_cap(request: Request, cap: int) -> Request:
    """Return the request with its answer capped at `cap` tokens, under the names that it uses, otherwise `max_tokens`."""
    parameters = request.parameters
    used = [name for name in NAMES if name in parameters] or [NAMES[0]]
    lowered: dict[str, JsonValue] = {}
    for name in used:
        stated = parameters.get(name)
        if type(stated) is not int or not 1 <= stated <= cap:
            lowered[name] = cap
    return replace(request, parameters={**parameters, **lowered}) if lowered else request


def past_the_cap(parameters: Mapping[str, JsonValue]) -> str | None:
    """Return why a budget cannot bound the answer to a request with these parameters, or None."""
    within = {name: value for name, value in parameters.items() if name in _WITHIN}
    named = [*((name, name) for name in parameters if name not in NAMES), *_keys(within)]
    return next(filter(None, itertools.starmap(_unbound, named)), None) or _dropped(parameters)


def _unbound(path: str, key: str) -> str | None:
    plain = key.replace("_", "").replace("-", "").lower()
    if plain in _SEVERAL:
        return f"{path} asks for several answers, and a budget sets aside one"
    if plain in _CAPS:
        return f"{path} is a cap that a budget cannot lower: state max_tokens, beside the other parameters"
    return None


def _keys(parameters: dict[str, JsonValue]) -> Iterator[tuple[str, str]]:
    """Yield the path of each name in these parameters, and the name; without recursion, because they may have any depth."""
    left: list[tuple[str, JsonValue]] = [("", parameters)]
    while left:
        above, value = left.pop()
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, item in items:
            if key not in _NOT_SEARCHED:
                yield f"{above}{key}", str(key)
                left.append((f"{above}{key}.", item))


def _dropped(parameters: Mapping[str, JsonValue]) -> str | None:
    """Return why a parameter of litellm would remove the cap, or None."""
    if parameters.get("drop_params"):
        return "drop_params may take away the cap that a budget lowers: name what to drop in additional_drop_params"
    dropped = parameters.get("additional_drop_params")
    named = dropped if isinstance(dropped, list) else [dropped]
    cap = next((each for each in NAMES if each in named), None)
    return f"additional_drop_params.{cap} takes away the cap that a budget lowers" if cap else None
