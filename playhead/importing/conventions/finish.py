"""Why a model stopped, where a span says it in the provider's own answer alone."""

from __future__ import annotations

from typing import Any, Final

from playhead.importing.values import first_text

_NAMES: Final = ("finish_reason", "stop_reason", "finishReason")
_WITHIN: Final = ("generation_info", "response_metadata", "incomplete_details", "message", "kwargs", "data")
_LISTS: Final = ("choices", "generations", "candidates")
_MOST_DEEP: Final = 6


def finish_reason_of(answered: Any) -> str | None:  # noqa: ANN401 - any JSON value
    """Return it of an answer of OpenAI, Anthropic, Gemini or LangChain, or of the first one of several."""
    waiting, depth = [answered], 0
    while waiting and depth < _MOST_DEEP:
        waiting = [_first(each) for each in waiting]
        objects = [each for each in waiting if isinstance(each, dict)]
        names = (*_NAMES, "reason") if depth else _NAMES
        found = first_text(each.get(name) for each in objects for name in names)
        if found is not None:
            return found
        waiting = [each[name] for each in objects for name in (*_WITHIN, *_LISTS) if name in each]
        depth += 1
    return None


def _first(value: Any) -> Any:  # noqa: ANN401
    """Return the first item of a list, also of one that is in it: LangChain has a list for each prompt of a batch."""
    for _ in range(2):
        value = value[0] if isinstance(value, list) and value else value
    return value
