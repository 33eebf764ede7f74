"""Calls in the syntax of a programming language: `read_file(path="a.txt")`. Nothing is evaluated."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.calls_in_text.found import Written
from playhead.kernel.healing.json_reading import value_at
from playhead.kernel.healing.words import folded

if TYPE_CHECKING:
    from collections.abc import Mapping

_START: Final = re.compile(
    r"(?:>>>\s?|[-=]>\s?|[→$@]\s?)?(?:(?:(?:const|let|var)\s)?[A-Za-z_]\w{0,60}\s?=\s?)?(?:await\s)?(?P<print>print\()?"
    r"(?P<name>[A-Za-z_][\w.:-]{0,100})\("
)
_SPACE: Final = re.compile(r"\s*")
_KEY: Final = re.compile(r"[\"']?([A-Za-z_][\w-]{0,60})[\"']?\s*[=:](?!=)\s*")
_NUMBER: Final = re.compile(r"[+-]?(?!0\d)\d[\d_]{0,40}(?:\.\d{1,40})?(?:[eE][+-]?\d{1,3})?(?![\w.])")
_WORD: Final = re.compile(r"true|True|false|False|null|None(?!\w)")
_WORDS: Final = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_QUOTE: Final = re.compile(r'"""|\'\'\'|"|\'')
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "'": "'", '"': '"', "\\": "\\", "\n": ""}
_REST: Final = re.compile(r"[ \t]*(?:;|\.)?[ \t]*(?:#[^\n]*)?(?=\n|\Z|```)")
_IDENTIFIER: Final = re.compile(r"(?<![\w.\"'])[A-Za-z_]\w{0,60}(?![\w.(\[\"'])")
_ALL_NAMED: Final = re.compile(r"\*\*(?=\{|([A-Za-z_]\w{0,60})\s?\))")
"""What stands before an object in place of all arguments."""
_IDLE: Final = re.compile(r"(?:[ \t]*(?:#[^\n]*|(?:from [\w.]{1,80} )?import [\w, *]{1,200})?\n)*")
_GIVEN: Final = re.compile(r"([A-Za-z_]\w{0,60})[ ]?=(?!=)[ ]?")
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})
MAX_ARGUMENTS: Final = 60
MAX_END: Final = 40
"""Characters at the end of a text that show whether its last value is whole."""
SHOWN_END: Final = re.compile(r"(?:[\"'}\]]|\b(?:[Tt]rue|[Ff]alse|[Nn]one|null))\s*\Z")
"""A last value that is whole where the text ends: of a number more digits may be missing."""
FENCED_END: Final = re.compile(r"[\"'}\]\w]\s*\Z")
"""One that is whole where its fence ends."""
_CALLERS: Final = frozenset(
    ("calltool", "usetool", "invoketool", "runtool", "executetool", "callfunction", "toolcall", "invoke")
)
"""Functions, folded, that make the call which their first two values are."""


class _NoCallError(ValueError):
    """What stands there is no call with literal arguments."""


def call_at(
    text: str,
    start: int,
    *,
    ends_line: bool = True,
    constants: Mapping[str, Any] = _NONE,
    unclosed: re.Pattern[str] | None = None,
) -> tuple[Written, int] | None:
    """Return the call that begins at a place, and where it ends; None when none does, or it has to end its line and does not.

    `constants` are the values of the names that may stand in it. `unclosed` says how a text may end in which only the last
    parenthesis is missing; None when it may not.
    """
    found = _START.match(text, start)
    if found is None:
        return None
    try:
        arguments, beside, place = _Reading(text, found.end(), constants, unclosed).arguments()
    except _NoCallError:
        return None
    if found["print"]:
        if text[place : place + 1] != ")":
            return None
        place += 1
    rest = _REST.match(text, place)
    name = found["name"]
    if folded(name) in _CALLERS and isinstance(arguments, tuple) and _is_call(arguments) and not beside:
        name, arguments = arguments
    written = Written(name, arguments, in_order=isinstance(arguments, tuple), beside=beside)
    return (written, place) if rest or not ends_line else None


def constants_of(text: str, start: int, end: int) -> tuple[dict[str, Any], int]:
    """Return the literal values that the first lines of a code give to names, and where those lines, and its imports, end.

    No name is given a value twice, and each is used behind them; else there are none.
    """
    found: dict[str, Any] = {}
    idle = _IDLE.match(text, start, end)
    place = start = idle.end() if idle else start
    while len(found) < MAX_ARGUMENTS and (line := _IDLE.match(text, place, end)):
        place = line.end()
        given = _GIVEN.match(text, place, end)
        if given is None:
            break
        reading = _Reading(text, given.end())
        try:
            value = reading.value()
        except _NoCallError:
            break
        rest = _REST.match(text, reading.place)
        if rest is None or reading.place > end or given[1] in found:
            return {}, start
        found[given[1]] = value
        place = rest.end()
    names = {each[0] for each in _IDENTIFIER.finditer(text, place, end)}
    return (found, place) if found and found.keys() <= names else ({}, start)


def _is_call(values: tuple[Any, ...]) -> bool:
    """Return whether two values are a tool's name and its arguments."""
    return len(values) == 2 and isinstance(values[0], str) and isinstance(values[1], dict)  # noqa: PLR2004 - name, arguments


def _is_json(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    return isinstance(value, str) and value.strip()[:1] in ("{", "[")


@dataclass(slots=True)
class _Reading:
    text: str
    place: int
    constants: Mapping[str, Any] = field(default_factory=dict)
    unclosed: re.Pattern[str] | None = None

    def arguments(self) -> tuple[Any, dict[str, Any], int]:
        """Return what stands up to the closing parenthesis: by name, one value alone, or a tuple of values without names and those with one."""
        named: dict[str, Any] = {}
        alone: list[Any] = []
        if (all_named := _ALL_NAMED.match(self.text, self.place)) and isinstance(
            self.constants.get(all_named[1], {}), dict
        ):
            self.place += 2
        while not self._is_next(")"):
            self._read_one(named, alone)
            if not self._is_next(",") and self.text[self.place : self.place + 1] != ")":
                if named and not alone and self._lacks_only_the_end():
                    break
                raise _NoCallError
            if len(named) + len(alone) > MAX_ARGUMENTS:
                raise _NoCallError
        if "0" in named:
            raise _NoCallError
        if len(alone) > 1 or (alone and named and isinstance(alone[0], (dict, list))):
            return tuple(alone), named, self.place  # which is which has to be said by their order
        if alone and not isinstance(alone[0], (dict, list)) and not _is_json(alone[0]):
            return {"0": alone[0], **named}, {}, self.place  # its name is known where one has to be there
        return (alone[0] if alone else named), {}, self.place

    def _lacks_only_the_end(self) -> bool:
        """Return whether the text ends here, behind a value that shows its end."""
        if self.unclosed is None or self.place != len(self.text):
            return False
        return self.unclosed.search(self.text, max(0, self.place - MAX_END)) is not None

    def _read_one(self, named: dict[str, Any], alone: list[Any]) -> None:
        """Read the next value into those with a name, or those without, which come first."""
        key = _KEY.match(self.text, self.place)
        if (key is not None and key[1] in named) or (key is None and named):
            raise _NoCallError
        if key is None:
            alone.append(self.value())
            return
        self.place = key.end()
        named[key[1]] = self.value()

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

    def value(self) -> Any:  # noqa: ANN401 - any JSON value
        """Return the literal that stands here, or the value of the name, and go past it."""
        if quote := _QUOTE.match(self.text, self.place):
            return self._string(quote[0])
        if self.text[self.place : self.place + 1] in ("{", "["):
            found = value_at(self.text, self.place, may_end=False)
            if found is None:
                return self._fields()
            self.place = found[1]
            return found[0]
        if number := _NUMBER.match(self.text, self.place):
            self.place = number.end()
            digits = number[0].replace("_", "")
            return float(digits) if any(mark in digits for mark in ".eE") else int(digits)
        if word := _WORD.match(self.text, self.place):
            self.place = word.end()
            return _WORDS[word[0]]
        if (name := _IDENTIFIER.match(self.text, self.place)) and name[0] in self.constants:
            self.place = name.end()
            return self.constants[name[0]]
        raise _NoCallError

    def _fields(self) -> dict[str, Any]:
        """Return an object whose fields stand as in a call: `{begins="22:00", dock=4}`; of fields only, no object within."""
        self.place += 1
        found: dict[str, Any] = {}
        while not self._is_next("}"):
            key = _KEY.match(self.text, self.place)
            if (
                key is None
                or key[1] in found
                or self.text[key.end() : key.end() + 1] in ("{", "[")
                or len(found) >= MAX_ARGUMENTS
            ):
                raise _NoCallError
            self.place = key.end()
            found[key[1]] = self.value()
            if not self._is_next(",") and self.text[self.place : self.place + 1] != "}":
                raise _NoCallError
        return found

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
