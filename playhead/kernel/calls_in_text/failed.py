"""A reply that is nothing but a call of a tool which cannot be made: no answer, though it stands in the text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import nearest
from playhead.kernel.healing.json_reading import parsed, value_at
from playhead.kernel.healing.words import folded, words
from playhead.kernel.json_text import BrokenJsonError, CutOffError, mend
from playhead.kernel.text_calls import FIELD_PAIRS

if TYPE_CHECKING:
    from collections.abc import Collection

    from playhead.kernel.session import Session

MAX_TEXT: Final = 200_000
"""Characters; a longer reply is an answer."""
LIKE: Final = 60
"""Likeness of two names, of 100, from which one may stand for the other; a common word of five letters is enough, too."""
MAX_END: Final = 200
"""Characters at the end in which what is around a call may stand."""
_LONG_WORD: Final = 5
_WRAP: Final = re.compile(r"\s*(?:```[\w-]{0,20}|</?tool_call>|<\|[\w-]{1,30}\|>)?\s*")
_CLOSING: Final = re.compile(r"(?:\s|```|</tool_call>|<\|[\w-]{1,30}\|>)+\Z")
_BEGINNING: Final = re.compile(
    r"\[?\s{0,20}\{\s{0,20}[\"']?(?P<name_field>\w{1,20})[\"']?\s{0,20}:\s{0,20}[\"'](?P<name>[^\"'\n]{1,120})[\"']"
    r"\s{0,20},\s{0,20}[\"']?(?P<arguments_field>\w{1,20})[\"']?\s{0,20}:\s{0,20}[{\[\"']"
)
"""How a call in JSON begins that ends nowhere."""
_PROMPTED: Final = re.compile(r"\{\s{0,20}\"tool\"\s{0,20}:")
"""How a call begins as `text_format.py` tells models to write it."""
BROKEN: Final = "its JSON is broken, or ends too early"
NO_CALL: Final = "Your last reply is a call of a tool that could not be made: {}. Make the call again as a whole, or reply with the answer."


def failed_call(text: str, session: Session) -> str | None:
    """Return what the model is told of a reply that is only such a call; None when the reply is an answer.

    Where the model was told to call in text, a call in that very form counts also behind words, and whatever tool it names.
    """
    in_text = session.header.tool_format == "text"
    if len(text) > MAX_TEXT or not session.toolset or not (in_text or session.header.healing):
        return None
    known = [name for name in session.toolset if session.offers(name)]
    prompted = _PROMPTED.search(text) if in_text else None
    why = _why(text, known) if prompted is None else _why_prompted(text[prompted.start() :], known)
    return None if why is None else NO_CALL.format(why.rstrip("."))


def _why_prompted(text: str, known: Collection[str]) -> str | None:
    """Return what is wrong with the call that a text begins with; None when it could be made, and only was not meant so."""
    found = value_at(text, 0)
    if found is None:
        return BROKEN
    name, arguments = found[0].get("tool"), _called(found[0])
    if isinstance(name, str) and name not in known:
        return f"there is no tool {name!r}.{nearest(name, known)}"
    return None if arguments is not None else "its arguments are missing"


def _why(text: str, known: Collection[str]) -> str | None:
    text = text[_end_of_wraps(text) :]
    closing = _CLOSING.search(text[-MAX_END:])
    text = text[: len(text) - len(closing[0])] if closing else text
    if text[:1] not in ("{", "["):
        return None
    value = parsed(text)
    if value is None:
        return BROKEN if _is_begun(text, known) else None
    names = [_called(each) for each in (value if isinstance(value, list) else [value])]
    if not names or not all(name is not None and _is_like(name, known) for name in names):
        return None
    unknown = next((name for name in names if name not in known), None)
    return (
        "its arguments are not to be read"
        if unknown is None
        else f"there is no tool {unknown!r}.{nearest(unknown, known)}"
    )


def _is_begun(text: str, known: Collection[str]) -> bool:
    """Return whether a text is the beginning of a call, or a broken one of a known tool; with prose behind it, it is none."""
    begun = _BEGINNING.match(text)
    if begun is None or (begun["name_field"], begun["arguments_field"]) not in FIELD_PAIRS:
        return False
    try:
        mend(text)
    except CutOffError:
        return True
    except BrokenJsonError:
        return _is_like(begun["name"], known)
    return value_at(text, 0) is None


def _end_of_wraps(text: str) -> int:
    """Return where the text begins behind a fence and marks of calls."""
    place = 0
    for _ in range(3):
        found = _WRAP.match(text, place)
        place = found.end() if found else place
    return place


def _called(value: Any) -> str | None:  # noqa: ANN401 - any JSON value
    """Return the name in an object that has the form of a call."""
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    value = inner if isinstance(inner, dict) else value
    for name_field, arguments_field in FIELD_PAIRS:
        name = value.get(name_field)
        if isinstance(name, str) and isinstance(value.get(arguments_field), (dict, str)):
            return name
    return None


def _is_like(name: str, known: Collection[str]) -> bool:
    """Return whether a name is like that of a tool; of others nobody knows that a tool is meant."""
    from rapidfuzz.fuzz import ratio  # noqa: PLC0415 - only for a reply in the form of a call

    own = {word for word in words(name) if len(word) >= _LONG_WORD}
    return any(ratio(folded(name), folded(each)) >= LIKE or not own.isdisjoint(words(each)) for each in known)
