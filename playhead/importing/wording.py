"""Whether two values say the same: frameworks write a result for a prompt in forms of their own.

Quotes, brackets, commas, colons, space, the case of letters and marks at the end of a sentence are form; every other letter,
digit and sign is not. So `{'height': 4}` is `{"height": 4}` and `height: 4`, and is neither `{"height": -4}` nor `{"width": 4}`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal

from playhead.importing.values import parsed_json
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

Shown = Literal["same", "around", "inside", "other"]
MOST_AROUND: Final = 12
"""Words of its own that a framework puts around a result or a call; what is more is said to the model."""
_ESCAPED: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[nrt])")
_FORM: Final = re.compile(r"[\s\"'`{}\[\](),:;=\\]+|(?<![.!?])[.!?]++(?=[\s\"'`{}\[\](),:;=\\]|\Z)")
_SPACES: Final = re.compile(" +")
_NULL: Final = re.compile(r"\bnull\b")


def how_shown(value: Any, told: str) -> Shown:  # noqa: ANN401 - any JSON value
    """Tell how a text shows a value: the `same`, with words `around` it, as a text that is `inside` it, or as an `other` one."""
    if told == value or told == as_text(value):
        return "same"
    said, shown = plain(value), plain(told)
    if said == shown or _equal(value, told):
        return "same"
    if said in ("", "none") or stands_in(said, shown):
        return "around"
    return "inside" if any(plain(text) == shown for text in _texts_in(value)) else "other"


def plain(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return the words of a value without what is form, each after a space."""
    container = _container(value)
    text = as_text(value) if container is None else " ".join(map(as_text, _leaves(container)))
    text = _ESCAPED.sub(_unescaped, text) if "\\" in text else text
    words = _SPACES.sub(" ", _FORM.sub(" ", text.casefold())).strip(" ")
    return _NULL.sub("none", words)


def same_json(one: Any, other: Any) -> bool:  # noqa: ANN401 - any JSON values
    """Tell whether two values are the same JSON: numbers by value, names in any order, and nothing of another type."""
    waiting = [(one, other)]
    while waiting:
        first, second = waiting.pop()
        if isinstance(first, dict) and isinstance(second, dict):
            if first.keys() != second.keys():
                return False
            waiting += [(each, second[name]) for name, each in first.items()]
        elif isinstance(first, list) and isinstance(second, list):
            if len(first) != len(second):
                return False
            waiting += zip(first, second, strict=True)
        elif isinstance(first, bool) != isinstance(second, bool) or first != second:
            return False
    return True


def stands_in(words: str, others: str) -> bool:
    """Tell whether plain words stand in others in one piece."""
    return f" {words} " in f" {others} "


def without(words: str, others: str) -> str | None:
    """Return plain words without others that stand in them in one piece; None when they do not."""
    if not others:
        return words
    before, found, after = f" {words} ".partition(f" {others} ")
    return f"{before.strip()} {after.strip()}".strip() if found else None


def count(words: str) -> int:
    """Return how many words there are."""
    return words.count(" ") + 1 if words else 0


def _container(value: Any) -> list[Any] | dict[str, Any] | None:  # noqa: ANN401
    """Return an object or a list, also one that was written as JSON."""
    if isinstance(value, str):
        value = parsed_json(value) if value.lstrip()[:1] in ("{", "[") else None
    return value if isinstance(value, (list, dict)) else None


def _equal(one: Any, other: Any) -> bool:  # noqa: ANN401
    """Tell whether both are the same JSON, whatever the order of names."""
    first, second = _container(one), _container(other)
    return first is not None and first == second


def _leaves(value: Any) -> Iterator[Any]:  # noqa: ANN401
    """Yield names and plain values, in their order."""
    waiting: list[Any] = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            waiting += [each for name, inner in reversed(found.items()) for each in (inner, name)]
        elif isinstance(found, list):
            waiting += reversed(found)
        else:
            yield found


def _texts_in(value: Any) -> Iterator[str]:  # noqa: ANN401
    """Yield the texts inside a value, and those of its parts together: a program wraps what it tells in an envelope."""
    container = _container(value)
    if container is None:
        return
    yield from (text for text in _leaves(container) if isinstance(text, str))
    parts = [part.get("text") for part in _content_of(container) if isinstance(part, dict)]
    yield "\n".join(text for text in parts if isinstance(text, str))


def _content_of(container: Any) -> list[Any]:  # noqa: ANN401
    found = container.get("content") if isinstance(container, dict) else container
    return found if isinstance(found, list) else []


def _unescaped(found: re.Match[str]) -> str:
    return " " if found[1] is None else chr(int(found[1], 16))
