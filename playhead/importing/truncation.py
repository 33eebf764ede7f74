"""Whether texts were cut off when they were exported.

A cut is certain where several different texts end at the same round length and none is longer, as SDKs cut attributes, or
where JSON breaks off. A text that ends in "…" may be cut, or be so in truth: it is in truth where the model was told the same
text, and a longer one shows that nothing cuts at that length.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic_core import from_json

from playhead.importing.limits import MAX_INNER_VALUES
from playhead.importing.values import NOTHING, parsed_json
from playhead.importing.weight import too_many_in_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from playhead.importing.spans import ForeignSpan

Cut = Literal["cut", "doubt"]
_ENDS: Final = re.compile(
    r"(?:…|\[truncated\]|<truncated>|\(truncated\)|\.\.\. ?\[?\d+ (?:more )?(?:characters|chars|bytes)[^\n]{0,20})\s*\Z",
    re.IGNORECASE,
)
_DOTS: Final = re.compile(r"\.\.\.\s*\Z")
"""So end results that programs shorten for their spans; and prompts in truth."""
_TAIL: Final = 80
_LEAST: Final = 64
"""Characters: a limit below this nobody sets."""
_STEPS: Final = (1000, 512, 100)
"""Limits are round numbers, or one less."""
_ROUNDEST: Final = (1000, 1024)
"""Of these one text alone is a doubt."""
_USUAL: Final = 128
"""Attributes of a span at which SDKs stop, unless they are told otherwise."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """The lengths of the texts of a trace."""

    limit: int | None = None
    """The length to which texts were cut (`OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT`), None when nothing looks so."""
    longest: int = 0

    def cut(self, value: Any, told: object = None, *, is_prompt: bool = False) -> Cut | None:  # noqa: ANN401 - any JSON value
        """Tell whether a text is cut off, or may be; `told` is what the model was told of it."""
        if not isinstance(value, str):
            return None
        if len(value) == self.limit:
            return "cut"
        if value == told and len(value) < self.longest:
            return None
        if not is_prompt and breaks_off(value):
            return "cut"
        if len(value) < _LEAST:
            return None
        is_round = len(value) == self.longest and any(len(value) % step == 0 for step in _ROUNDEST)
        tail = value[-_TAIL:]
        return "doubt" if is_round or _ENDS.search(tail) or (not is_prompt and _DOTS.search(tail)) else None


def lengths_of(spans: Iterable[ForeignSpan]) -> Lengths:
    """Return how long the texts of spans are.

    The limit is the greatest length of all, when several different texts have it, and it is a round number.
    """
    texts = {text for span in spans for text in _texts(span.attributes) if len(text) >= _LEAST}
    lengths = Counter(map(len, texts))
    longest = max(lengths, default=0)
    is_round = any((longest + one) % step == 0 for step in _STEPS for one in (0, 1))
    return Lengths(longest if is_round and lengths[longest] > 1 else None, longest)


def stops_at_usual_count(spans: Iterable[ForeignSpan]) -> bool:
    """Tell whether several spans have as many attributes as SDKs allow, and none has more."""
    counts = Counter(len(span.attributes) for span in spans)
    return max(counts, default=0) == _USUAL and counts[_USUAL] > 1


def breaks_off(text: str) -> bool:
    """Tell whether a text is the beginning of a JSON document."""
    if text[:1] not in ("{", "[") or too_many_in_json(text, MAX_INNER_VALUES) or parsed_json(text) is not NOTHING:
        return False
    try:
        from_json(text, allow_partial=True)
    except (TypeError, ValueError):
        return False
    return True


def without_mark(text: str) -> str:
    """Return a text without what stands at its end in place of the rest."""
    start = max(0, len(text) - _TAIL)
    found = _ENDS.search(text, start) or _DOTS.search(text, start)
    return text if found is None else text[: found.start()]


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    waiting: list[Any] = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            yield found
        elif isinstance(found, (list, dict)):
            waiting += found.values() if isinstance(found, dict) else found
