"""How many tokens an answer may have: where a request says so, and how to say less."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.trace.types import Request
    from playhead.trace.values import JsonValue

NAMES: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
"""The parameters that cap an answer, by the names that providers have for it."""


def output_cap(parameters: Mapping[str, JsonValue]) -> int | None:
    """Return the lowest cap that a request states, or None when it states none; 0, for some servers no limit, is 1."""
    caps = [max(1, value) for name in NAMES if type(value := parameters.get(name)) is int and value >= 0]
    return min(caps, default=None)


def with_output_cap(request: Request, cap: int) -> Request:
    """Return the request with an answer of at most `cap` tokens: under the names that it uses, else `max_tokens`."""
    parameters = request.parameters
    used = [name for name in NAMES if name in parameters] or [NAMES[0]]
    lowered: dict[str, JsonValue] = {}
    for name in used:
        stated = parameters.get(name)
        if type(stated) is not int or not 1 <= stated <= cap:
            lowered[name] = cap
    return replace(request, parameters={**parameters, **lowered}) if lowered else request
