"""Checks stated reasons against the arguments of their calls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from playhead.diagnose.deeds import deeds_of_tool, is_named, words_of
from playhead.diagnose.vocabulary import KEY, form_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.trace.types import ToolSpec

_LABELS: Final = frozenset({"id", "number", "no", "nr", "key", "code", "ref", "name", "value"})


def contradiction(reason: str, spec: ToolSpec, arguments: object, tools: Mapping[str, ToolSpec]) -> str | None:
    """Return how a call, or one of its arguments, contradicts its stated reason; None when neither does."""
    reason = reason.lower()
    return _other_tool(reason, spec, tools) or next(_other_values(reason, spec, arguments), None)


def _other_values(reason: str, spec: ToolSpec, arguments: object) -> Iterator[str]:
    values = (
        {str(name): each for name, each in arguments.items() if isinstance(each, str | int | float)}
        if isinstance(arguments, dict)
        else {}
    )
    said = [key for key in KEY.findall(reason) if not any(_same(key, value) for value in values.values())]
    for name, value in values.items():
        if isinstance(value, bool) or len(str(value)) > 60 or any(_same(key, value) for key in KEY.findall(reason)):  # noqa: PLR2004 - a text
            continue
        forms = {form_of(key) for key in KEY.findall(str(value).lower())}
        for key in said:
            if form_of(key) in forms and (_is_labelled(key, name, reason) or form_of(key) == "@"):
                yield f"the reason for {spec.name} says {key}; the call has {name}={value!r}"


def _same(key: str, value: str | float) -> bool:
    return key in str(value).lower()


def _is_labelled(key: str, parameter: str, reason: str) -> bool:
    words = "|".join(re.escape(word) for word in words_of(parameter) if word not in _LABELS and len(word) > 2)  # noqa: PLR2004 - "to", "in"
    label = rf"\b(?:{words})s?(?: (?:id|no\.?|nr\.?|number))?[\s:#]*"
    return bool(words) and re.search(rf"{label}{re.escape(key)}\b", reason) is not None


def _other_tool(reason: str, spec: ToolSpec, tools: Mapping[str, ToolSpec]) -> str | None:
    """Return that the reason for a call with a side effect speaks of another tool, and not of this one."""
    if spec.read_only or is_named(deeds_of_tool(spec.name, spec.description), reason):
        return None
    own = set(words_of(spec.name))
    for other in tools.values():
        words = set(words_of(other.name))
        if (
            len(words) > 1
            and all(_has(reason, word) for word in words)
            and not any(_has(reason, word) for word in own - words)
        ):
            return f"the reason for {spec.name} speaks of what {other.name} does"
    return None


def _has(reason: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word.removesuffix('e'))}", reason) is not None
