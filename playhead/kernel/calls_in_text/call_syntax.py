"""Calls in the syntax of a programming language: `read_file(path="a.txt")`. Nothing is evaluated."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from playhead.kernel.calls_in_text.found import Written
from playhead.kernel.healing.json_reading import value_at
from playhead.kernel.healing.words import folded

_START: Final = re.compile(
    r"(?:>>>\s?|[-=]>\s?|[→$@]\s?)?(?:(?:(?:const|let|var)\s)?[A-Za-z_]\w{0,60}\s?=\s?)?(?:await\s)?(?P<print>print\()?"
    r"(?P<name>[A-Za-z_][\w.:-]{0,100})\("
)
_SPACE: Final = re.compile(r"\s*")
_KEY: Final = re.compile(r"[\"']?([A-Za-z_][\w-]{0,60})[\"']?\s*[=:](?!=)\s*")
_NUMBER: Final = re.compile(r"[+-]?\d[\d_]{0,40}(?:\.\d{1,40})?(?:[eE][+-]?\d{1,3})?(?![\w.])")
_WORD: Final = re.compile(r"true|True|false|False|null|None(?!\w)")
_WORDS: Final = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_QUOTE: Final = re.compile(r'"""|\'\'\'|"|\'')
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "'": "'", '"': '"', "\\": "\\", "\n": ""}
_REST: Final = re.compile(r"[ \t]*(?:;|\.)?[ \t]*(?:#[^\n]*)?(?=\n|\Z|```)")
MAX_ARGUMENTS: Final = 60
_CALLERS: Final = frozenset(
    ("calltool", "usetool", "invoketool", "runtool", "executetool", "callfunction", "toolcall", "invoke")
)
"""Functions, folded, that make the call which their first two values are."""


class _NoCallError(ValueError):
    """What stands there is no call with literal arguments."""


def call_at(text: str, start: int, *, ends_line: bool = True) -> tuple[Written, int] | None:
    """Return the call that begins at a place, and where it ends; None when none does, or it has to end its line and does not."""
    found = _START.match(text, start)
    if found is None:
        return None
    try:
        arguments, place = _Reading(text, found.end()).arguments()
    except _NoCallError:
        return None
    if found["print"]:
        if text[place : place + 1] != ")":
            return None
        place += 1
    rest = _REST.match(text, place)
    name = found["name"]
    if folded(name) in _CALLERS and isinstance(arguments, tuple) and _is_call(arguments):
        name, arguments = arguments
    written = Written(name, arguments, in_order=isinstance(arguments, tuple))
    return (written, place) if rest or not ends_line else None


def _is_call(values: tuple[Any, ...]) -> bool:
    """Return whether two values are a tool's name and its arguments."""
    return len(values) == 2 and isinstance(values[0], str) and isinstance(values[1], dict)  # noqa: PLR2004 - name, arguments


def _is_json(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    return isinstance(value, str) and value.strip()[:1] in ("{", "[")


@dataclass(slots=True)
class _Reading:
    text: str
    place: int

    def arguments(self) -> tuple[Any, int]:
        """Return what stands up to the closing parenthesis: by name, one value alone, or a tuple of values without names."""
        named: dict[str, Any] = {}
        alone: list[Any] = []
        if self.text.startswith("**{", self.place):
            self.place += 2
        while not self._is_next(")"):
            key = _KEY.match(self.text, self.place)
            if key is not None:
                self.place = key.end()
                if key[1] in named:
                    raise _NoCallError
                named[key[1]] = self._value()
            else:
                alone.append(self._value())
            if not self._is_next(",") and self.text[self.place : self.place + 1] != ")":
                raise _NoCallError
            if len(named) + len(alone) > MAX_ARGUMENTS:
                raise _NoCallError
        if len(alone) > 1 and not named:
            return tuple(alone), self.place
        if len(alone) > 1 or (alone and named and isinstance(alone[0], (dict, list))) or "0" in named:
            raise _NoCallError  # which is which cannot be said
        if alone and not isinstance(alone[0], (dict, list)) and not _is_json(alone[0]):
            return {"0": alone[0], **named}, self.place  # its name is known where one has to be there
        return (alone[0] if alone else named), self.place

    def _is_next(self, mark: str) -> bool:
        """Return whether a mark comes next, and go past it."""
        self._skip()
        if not self.text.startswith(mark, self.place):
            return False
        self.place += 1
        self._skip() if mark == "," else None
        return True

    def _skip(self) -> None:
        found = _SPACE.match(self.text, self.place)
        self.place = found.end() if found else self.place

    def _value(self) -> Any:  # noqa: ANN401 - any JSON value
        if quote := _QUOTE.match(self.text, self.place):
            return self._string(quote[0])
        if self.text[self.place : self.place + 1] in ("{", "["):
            found = value_at(self.text, self.place, may_end=False)
            if found is None:
                raise _NoCallError
            self.place = found[1]
            return found[0]
        if number := _NUMBER.match(self.text, self.place):
            self.place = number.end()
            digits = number[0].replace("_", "")
            return float(digits) if any(mark in digits for mark in ".eE") else int(digits)
        if word := _WORD.match(self.text, self.place):
            self.place = word.end()
            return _WORDS[word[0]]
        raise _NoCallError

    def _string(self, quote: str) -> str:
        """Return a string as Python reads it; an escape that is not one of the usual ones is none of ours."""
        self.place += len(quote)
        stop = re.compile(rf"\\|{quote}" if len(quote) > 1 else rf"[\\\n{quote}]")
        out: list[str] = []
        while found := stop.search(self.text, self.place):
            out.append(self.text[self.place : found.start()])
            self.place = found.end()
            if found[0] == quote:
                return "".join(out)
            if found[0] == "\\":
                escaped = self.text[self.place : self.place + 1]
                if escaped in ("x", "u", "U", "N", "") or escaped.isdigit():
                    raise _NoCallError
                out.append(_ESCAPES.get(escaped, f"\\{escaped}"))
                self.place += 1
            else:
                out.append("\n")  # a line break within one string, as models write it
        raise _NoCallError
