"""Finds credentials in text by their formats, in time linear in the text.

The formats are data, in `credentials.toml` beside this file. One pass over the text looks for the keywords of all rules; only
the rules whose keyword occurs are applied. All expressions are RE2's: they never backtrack, so no text takes long.
"""

from __future__ import annotations

import atexit
import math
import threading
import time
import tomllib
from bisect import bisect_right
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# A colour of a terminal, as it is and in JSON; and where a credential may begin: at a word, or after an escape of JSON, a URL or a terminal, whose last letter belongs to no word.
_COLOUR: Final = r"(?:\x1b|\\{1,3}u001[bB])\[[0-9;]{0,12}m"
_BEGINNING: Final = rf"(?:\b|_|\\[bfnrtv0]|\\u[0-9a-fA-F]{{4}}|%[0-9a-fA-F]{{2}}|{_COLOUR})"
# Between a name and its value: `NAME = "…"`, `"name": "…"`, `--name …`, `NAME: str = '…'`, `<name>…`. Of a name that says no more
# than whose it is, only what is assigned counts: a hash may follow the name of a service anywhere.
_KEY_WORD: Final = r"[\w .-]{0,30}?(?i:key|token|secret|pass|pwd|auth|cred|api|pat|sid|licen[cs]e)[\w.-]{0,20}?"
_QUOTE: Final = r"(?:\*\*|\\{0,3}[\"'`]?)"
_ASSIGNS: Final = r"(?:(?::\s?&?\w{1,20}|\s[Ss]tring)\s?=|=>|:=|={1,3}|:{1,2}|\\{0,3}[\"']?,?\s{0,20}\\{0,3}[\"']?value\\{0,3}[\"']?\s?[:=])"
_ASSIGNMENT: Final = rf"(?:{_KEY_WORD}{_QUOTE}[\])]?\s{{0,4}}(?:{_ASSIGNS}|,|>|\(|\||\s(?:(?:--body|to|is)\s)?)|{_QUOTE}\s{{0,4}}{_ASSIGNS})\s{{0,4}}(?:{_COLOUR})?{_QUOTE}"
# The value of an option of a command: in quotes, which JSON escapes, or a word.
_VALUE: Final = r"(?:\\{0,3}'(?P<single>[^'\s\\]{4,})|\\{0,3}\"(?P<double>[^\"\s\\]{4,})|(?P<bare>[^\s\"'`\\|;&<>()$-][^\s\"'`\\|;&<>()]{3,}))"
_LONGEST_NAME: Final = 64
_MARKER: Final = r"\[redacted:([a-z0-9-]{1,60})(?::[0-9a-f]{8})?\]"
_MEMORY: Final = 64 << 20
"""Bytes that an expression's automaton may take: with too few of them it is built again and again."""


class Found(NamedTuple):
    """A credential in a text."""

    start: int
    """Where it begins, in characters."""
    end: int
    """Where it ends."""
    rule: str
    """The name of its format."""


class _Rule:
    """One format of credentials: an entry of `credentials.toml`."""

    def __init__(self, place: int, fields: dict[str, Any]) -> None:
        self.place = place
        self.name: str = fields["name"]
        names: str = fields.get("names", "")
        self._is_named = bool(names)
        self.keywords = "|".join(fields["keywords"]).replace("{names}", names)
        self._entropy: float = fields.get("entropy", 0)
        self._length: int = fields.get("length", 0)
        self._digits: bool = fields.get("digits", False)
        self._mixed: bool = fields.get("mixed", False)
        self._unless = "|".join(fields.get("unless", ()))
        self._not_named = "|".join(fields.get("not_named", ()))
        if "assigned" in fields:
            self._expression = rf"(?:{self.keywords}){_ASSIGNMENT}(?P<secret>{fields['assigned']})(?:[^\w-]|$)"
        else:
            said = fields["expression"].replace("{names}", names).replace("{value}", _VALUE)
            inside = said if "(?P<" in said else f"(?P<secret>{said})"
            self._expression = inside if fields.get("open") else f"{_BEGINNING}(?:{inside})"

    def spans(self, data: bytes) -> Iterator[tuple[int, int, int]]:
        """Yield where credentials of this format are, in bytes, each after the beginning of what it is named by."""
        expression, position = compiled(self._expression), 0
        while (match := expression.search(data, position)) is not None:
            start, end = next(span for span in map(match.span, range(1, expression.groups + 1)) if span != (-1, -1))
            position = match.end()
            named = not self._not_named or compiled(self._not_named).search(data[match.start() : start]) is None
            if named and self._is_credential(data[start:end]):
                yield match.start(), start, end
            elif self._is_named and end - start < _LONGEST_NAME:  # it may be the name of one: `password: password: …`
                position = start

    def _is_credential(self, value: bytes) -> bool:
        """Return whether a match is neither a word nor a placeholder."""
        text = value.decode("utf-8", "replace")
        has_digit = any(map(str.isdigit, text))
        if (self._digits and not has_digit) or (self._mixed and not has_digit and text.isalpha()):
            return False
        if len(text) < self._length or (self._entropy and entropy(text) < self._entropy):
            return False
        placeholders = (_formats()["placeholder"], self._unless)
        return not any(each and compiled(each).fullmatch(value) for each in placeholders)


def find(text: str) -> list[Found]:
    """Return the credentials in a text, in order and without overlaps.

    The marker of a redacted credential is not a credential.
    """
    data = text.encode("utf-8", "surrogatepass")
    applicable = [_rules()[place] for place in keywords()(data)]
    if not applicable:
        return []
    known = {rule.name for rule in _rules()}
    markers = [each.span() for each in compiled(_MARKER).finditer(data) if each[1].decode() in known]
    ends = [end for _, end in markers]
    spans = sorted(
        (start, end, rule.place)
        for rule in applicable
        for named, start, end in rule.spans(data)
        if (after := bisect_right(ends, named)) == len(ends) or end <= markers[after][0]  # overlaps no marker
    )
    merged: list[tuple[int, int, int]] = []
    for start, end, place in spans:
        before = merged.pop() if merged and start < merged[-1][1] else (start, end, place)
        merged.append((before[0], max(end, before[1]), min(place, before[2])))
    return list(_in_characters(data, merged))


def entropy(text: str) -> float:
    """Return the entropy of a text in bits per character (Shannon)."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


@cache
def compiled(expression: str) -> Any:  # noqa: ANN401 - re2 has no types
    """Return an expression of RE2's, compiled for text in UTF-8.

    Raises:
        re2.error: RE2 does not accept it.
    """
    import re2  # noqa: PLC0415 - takes 6 ms, and reading a trace needs none

    options = re2.Options()
    options.log_errors = False
    return re2.compile(expression.encode(), options)


@cache
def _formats() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("credentials.toml").read_text(encoding="utf-8"))


@cache
def _rules() -> tuple[_Rule, ...]:
    return tuple(_Rule(place, fields) for place, fields in enumerate(_formats()["rules"]))


_ending: Final[list[bool]] = []  # true when Python ends


@atexit.register
def _leave() -> None:
    """Let daemon threads come back from re2, and enter it no more: one that waits in it for the GIL when Python ends aborts the process.

    This module is imported before what flushes at exit, so those functions have run: the last registered runs first.
    """
    _ending.append(True)
    time.sleep(0.01)


@cache
def keywords() -> Callable[[bytes], list[int]]:
    """Return a function that says, in one pass over a text or JSON in UTF-8, which rules' keywords occur.

    Without one it holds no credential that `find` knows.
    """
    import re2  # noqa: PLC0415

    options = re2.Options()
    options.max_mem = _MEMORY  # with too little of it, a set says that nothing occurs
    made = re2.Set.SearchSet(options)
    for rule in _rules():
        made.Add(rule.keywords.encode())
    made.Compile()
    occurring = getattr(made, "_set", made).Match  # without re2's own layer, which costs as much as 100 bytes of text

    def look(data: bytes) -> list[int]:
        if _ending and threading.current_thread().daemon:
            threading.Event().wait()
        return occurring(data) or []

    return look


def _in_characters(data: bytes, spans: list[tuple[int, int, int]]) -> Iterator[Found]:
    """Yield the spans of bytes as spans of characters."""
    characters = position = 0
    for start, end, place in spans:
        characters += len(data[position:start].decode("utf-8", "surrogatepass"))
        length = len(data[start:end].decode("utf-8", "surrogatepass"))
        yield Found(characters, characters + length, _rules()[place].name)
        characters, position = characters + length, end
