"""Whether texts were cut off when they were exported."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.importing.spans import ForeignSpan

_ENDS: Final = re.compile(
    r"(?:…|\[truncated\]|<truncated>|\(truncated\)|\.\.\. ?\[?\d+ (?:more )?(?:characters|chars|bytes)[^\n]{0,20})\s*\Z",
    re.IGNORECASE,
)
_TAIL: Final = 80
_LEAST: Final = 64
"""Characters: a limit below this nobody sets."""
_STEPS: Final = (1000, 512, 100)
"""Limits are round numbers, or one less."""


def attribute_limit(spans: Iterable[ForeignSpan]) -> int | None:
    """Return the length to which texts were cut (`OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT`), None when nothing looks so.

    That is the greatest length of all, when several different texts have it, and it is a round number.
    """
    texts = {
        value for span in spans for value in span.attributes.values() if isinstance(value, str) and len(value) >= _LEAST
    }
    lengths = Counter(map(len, texts))
    longest = max(lengths, default=0)
    is_round = any((longest + one) % step == 0 for step in _STEPS for one in (0, 1))
    return longest if is_round and lengths[longest] > 1 else None


def is_cut(value: Any, limit: int | None) -> bool:  # noqa: ANN401 - any JSON value
    """Tell whether a text looks cut off: by its end, or by its length."""
    return isinstance(value, str) and (len(value) == limit or bool(_ENDS.search(value[-_TAIL:])))
