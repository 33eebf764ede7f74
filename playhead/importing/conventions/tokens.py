"""Numbers of tokens, and which of them cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.importing.values import NOTHING, integer_of
from playhead.trace.usage import LARGEST_COUNT, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.importing.attributes import Attributes


def usage_of(
    attributes: Attributes, names: Mapping[str, tuple[str, ...]], total: str
) -> tuple[Usage | None, tuple[str, ...]]:
    """Return the tokens, None when nothing can be read of them, and the attributes that cannot be.

    Args:
        attributes: those of the span.
        names: the attributes of each field of `Usage`, the first that holds a number counts.
        total: the attribute of the sum, which says too little when it stands alone.
    """
    given = {name: attributes.value(name) for field in names.values() for name in field}
    given = {name: value for name, value in given.items() if value is not NOTHING and value is not None}
    counts = {name: count for name, value in given.items() if (count := tokens_of(value)) is not None}
    unread = [name for name in given if name not in counts]
    if not given and attributes.value(total) is not NOTHING:
        unread.append(total)
    if not counts:
        return None, tuple(unread)
    fields = {field: next((n for name in each if (n := counts.get(name))), 0) for field, each in names.items()}
    known = {field for field, each in names.items() if counts.keys() & set(each)}
    partly = not {"input_tokens", "output_tokens"} <= known or any(
        given.keys() & set(names[field]) for field in names.keys() - known
    )
    return Usage.model_validate({**fields, "unknown": 1 if partly else None}), tuple(unread)


def tokens_of(value: Any) -> int | None:  # noqa: ANN401 - any JSON value
    """Return a number of tokens, also of digits in a text; None when it can be none: negative, broken, too large."""
    if isinstance(value, float) and not value.is_integer():
        return None
    count = integer_of(value)
    return count if count is not None and 0 <= count <= LARGEST_COUNT else None
