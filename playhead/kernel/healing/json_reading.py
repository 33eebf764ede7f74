"""JSON that a model wrote where a value belongs: strict, or mended where nothing is guessed."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from itertools import pairwise
from typing import Any, Final

from playhead.kernel.json_text import mend

MAX_TEXT: Final = 200_000
"""Characters; a longer text is not read."""
MAX_TUPLES: Final = 20_000
"""Characters of a text in which tuples of Python, lost quotes and brackets, and Windows paths are looked for."""
_FENCE: Final = re.compile(r"\s*```[\w-]*\s(.*)```\s*", re.DOTALL)
_NUMBER_AT_END: Final = re.compile(r"\d\s*\Z")
_AFTER: Final = re.compile(
    r"[\s}\]\x00]*+(?:;|//[^\n]*+|/\*[^*]*+\*/)?\s*+"
    r"(?:\"{1,3}|'{1,3})?+[\s\x00]*+"
    r"(?:(?:</?[\w:-]{1,40}>|<[|\uff5c][^<>\n]{1,40}[|\uff5c]>|```)[\s\x00]*+){0,4}"
)
"""What may stand behind a whole value; closing brackets too many, and tags and tokens that end a call, say nothing."""
_MEMBERS: Final = re.compile(r"\s*[\"']\w{1,60}[\"']\s*:")
_SPACE: Final = re.compile(r"\s*")
_MOST: Final = 5
"""Values behind each other that may be one and the same."""
_COMMENT: Final = re.compile(
    r"\"(?:[^\"\\]|\\.)*+\"?|(?<=[\s{\[(,:])'(?:[^'\\\n]|\\.)*+'|(/\*.*?(?:\*/|\Z))", re.DOTALL
)
_TUPLE: Final = re.compile(
    r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|((?<=[:,(\[{])\s{0,20}\(|,?\s{0,20}\)(?=\s{0,20}[,})\]]))", re.DOTALL
)
"""A bracket of a tuple, outside of strings."""
_HALF_KEY: Final = re.compile(r"[{,]\s{0,20}[A-Za-z_]\w{0,60}\"\s{0,4}:")
_KEYS: Final = re.compile(r"\"(?:[^\"\\]|\\.)*+\"?|([{,]\s{0,20})([A-Za-z_]\w{0,60})\"(?=\s{0,4}:)", re.DOTALL)
"""A string, or a key without the quote before it."""
_DRIVE: Final = re.compile(r"\"[A-Za-z]:\\[^\"\n]*\"")
_NO_ESCAPE: Final = re.compile(r"\\[^\"\\/bfnrtu]")
"""A string that begins as a Windows path, and what begins no escape."""
_PART: Final = re.compile(r"\"[^\"\\\n]*\"|'[^'\\\n]*'")
_QUOTED: Final = re.compile(rf"(?:{_PART.pattern})(?:\s{{0,9}},\s{{0,9}}(?:{_PART.pattern}))+")
_BRACKETS: Final = str.maketrans("()", "[]")


class AmbiguousJsonError(ValueError):
    """One name stands twice in an object, so it cannot be said which value was meant."""


def parsed(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the object or list that a whole text is, or None when it is none or was cut off in a value.

    It may be fenced, stand with its quotes escaped, lack both its outer brackets, or stand there twice.
    """
    if len(text) > MAX_TEXT:
        return None
    fenced = _FENCE.fullmatch(text)
    text = (fenced[1] if fenced else text).strip()
    if text.startswith('{\\"'):
        with suppress(ValueError, RecursionError):
            text = json.loads(f'"{text}"')
    if _MEMBERS.match(text) and text[-1:] in ('"', "'", "]", "}"):
        found = value_at(f"{{{text}}}", 0, may_end=False)
        return found[0] if found is not None and found[1] == len(text) + 2 else None
    return _one_value(text) if text[:1] in ("{", "[") else None


def decoded(text: str) -> str:
    """Return the text that a text is as JSON, where that is an object or a list: one that was written as text twice."""
    bare = text.strip()
    if len(text) > MAX_TEXT or bare[:1] != '"' or bare[-1:] != '"' or bare[1:].lstrip()[:1] not in ("{", "["):
        return text
    with suppress(ValueError, RecursionError):
        inner = json.loads(bare)
        return inner if isinstance(inner, str) else text
    return text


def quoted_parts(text: str) -> list[str] | None:
    """Return texts in quotes with commas between them, as in `'a','b'`; None where a text is something else."""
    bare = text.strip()
    found = _QUOTED.fullmatch(bare) if len(text) <= MAX_TUPLES else None
    return [part[1:-1] for part in _PART.findall(bare)] if found else None


def _one_value(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the one value that a text holds: alone, as often as it is there, or beside `{}`."""
    values: list[Any] = []
    place = 0
    while (found := value_at(text, place)) is not None and len(values) < _MOST:
        value, end = found
        if value != {} and value not in values:
            values.append(value)
        if _AFTER.fullmatch(text, end):
            return (values or [value])[0] if len(values) <= 1 else None
        space = _SPACE.match(text, end)
        place = space.end() if space else end
        if text[place : place + 1] != "{":
            return None
    return None


def value_at(text: str, start: int, *, may_end: bool = True) -> tuple[Any, int] | None:
    """Return the object or list that begins at a bracket, and where it ends; None when it cannot be said what it is.

    Args:
        text: the text.
        start: place of the bracket.
        may_end: whether the text may end before the brackets are closed; then the last value has to be whole.
    """
    try:
        return _DECODER.raw_decode(text, start)
    except AmbiguousJsonError:
        return None
    except (ValueError, RecursionError):
        pass
    text = _with_drives(without_comments(text, start))
    return (
        _mended(text, start, may_end=may_end)
        or _mended_keys(text, start, may_end=may_end)
        or _mended_tuples(text, start, may_end=may_end)
        or (_mended(text, start, may_end=may_end, inner=True) if len(text) <= MAX_TUPLES else None)
    )


def _with_drives(text: str) -> str:
    """Return the text with each backslash of a Windows path doubled, where one of them would begin no escape of JSON."""
    if len(text) > MAX_TUPLES or ":\\" not in text:
        return text

    def doubled(found: re.Match[str]) -> str:
        is_raw = _NO_ESCAPE.search(found[0]) is not None and "\\\\" not in found[0]
        return found[0].replace("\\", "\\\\") if is_raw else found[0]

    return _DRIVE.sub(doubled, text)


def _mended_keys(text: str, start: int, *, may_end: bool) -> tuple[Any, int] | None:
    """Return the value, where keys in it have only the quote behind them."""
    if len(text) - start > MAX_TUPLES or _HALF_KEY.search(text, start) is None:
        return None
    places = [found.start(2) for found in _KEYS.finditer(text, start) if found[2]]
    bounds = [0, *places, len(text)]
    found = _mended('"'.join(text[one:other] for one, other in pairwise(bounds)), start, may_end=may_end)
    if not places or found is None:
        return None
    return found[0], found[1] - sum(place + more < found[1] for more, place in enumerate(places))


def _mended_tuples(text: str, start: int, *, may_end: bool) -> tuple[Any, int] | None:
    """Return the value, where a tuple of Python stands in it as a list."""
    if text.find("(", start) < 0 or len(text) - start > MAX_TUPLES:
        return None
    as_lists = text[:start] + _TUPLE.sub(
        lambda found: found[0].translate(_BRACKETS) if found[1] else found[0], text[start:]
    )
    return _mended(as_lists, start, may_end=may_end) if as_lists != text else None


def _mended(text: str, start: int, *, may_end: bool, inner: bool = False) -> tuple[Any, int] | None:
    try:
        mended, end, closed = mend(text, start, inner=inner)
        if not closed and (not may_end or _NUMBER_AT_END.search(text)):
            return None
        return _DECODER.decode(mended), end
    except (ValueError, RecursionError):
        return None


def is_strict(text: str, start: int) -> bool:
    """Return whether the object or list that begins at a bracket is JSON as it stands."""
    try:
        _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return False
    return True


def without_comments(text: str, start: int) -> str:
    """Return the text with blanks in place of each `/* … */` behind a place, outside of strings; in one pass."""
    if text.find("/*", start) < 0:
        return text
    return text[:start] + _COMMENT.sub(lambda found: " " * len(found[1]) if found[1] else found[0], text[start:])


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise AmbiguousJsonError("a name stands twice")
    return found


def _no_number(name: str) -> Any:  # noqa: ANN401 - never returns
    raise ValueError(f"{name} is no JSON number")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unambiguous, parse_constant=_no_number)
